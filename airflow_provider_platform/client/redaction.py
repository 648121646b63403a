"""What errors, log lines and data may show: no known secret, and printable text only.

A whole secret is hidden as it is, in JSON and in a URL. In errors and log lines this module cuts
long texts of the service, so the beginning of a secret is hidden in front of such a cut. Data
(results, rows) is changed only where it contains a secret of the connection.

A log line or the message of an error is one line, without control characters and not too long, also
if it quotes the service.

Secrets become known in two ways: the connection declares its secrets, and those of requests and
responses are found by their type and by the names of their fields (`SECRET_NAMES`). This list
decides everywhere: which strings of a response become secrets, which strings of a request are
hidden in errors and logs, which bodies are searched, and which values `failed_calls` hides in the
service's messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

HIDDEN = "***"
SHORTEST_SECRET = 8
"""Characters. A shorter secret is never looked for in data. In errors and log lines it is hidden as
a whole word only, because it could be a part of ordinary words."""
SHORTEST_WORD = 5
"""A secret with fewer characters is not hidden at all."""
MOST_LEARNED = 1000
"""How many secrets of requests and responses one client keeps: the latest. A page with a hundred
thousand tokens must not slow down every log line."""

T = TypeVar("T")


def forms(secret: str) -> tuple[str, ...]:
    """Return the secret in every form in which it is looked for, the longest first: as it is and in
    JSON, each also as a URL holds it."""
    in_json = (json.dumps(secret), json.dumps(secret, ensure_ascii=False))
    found: dict[str, None] = {}
    for text in dict.fromkeys((secret, *(quoted[1:-1] for quoted in in_json))):
        plain = text.encode("utf-8", "surrogatepass")
        found.update(dict.fromkeys((text, quote(plain, safe=""), quote(plain), quote_plus(plain))))
    return tuple(sorted(found, key=len, reverse=True))


class KnownSecrets:
    """The secrets of one client: those of its connection, and those that it sends or receives."""

    def __init__(self, secrets: Iterable[str] = (), learned: Iterable[str] = ()) -> None:
        self._own = _forms_of(secrets)
        self._in_data = [
            form
            for secret, written in self._own.items()
            if len(secret) >= SHORTEST_SECRET
            for form in written
        ]
        self._learned = _forms_of(learned)

    @cached_property
    def _in_json(self) -> list[bytes]:
        """What is looked for in data, as JSON writes it."""
        from pydantic_core import to_json

        return [to_json(form)[1:-1] for form in self._in_data]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._learned))

    def learn(self, secrets: Iterable[str]) -> list[str]:
        """Hide these secrets in errors and log lines from now on. Return the new ones. Only the
        latest `MOST_LEARNED` are kept."""
        known = self._own.keys() | self._learned.keys()
        new = [secret for secret in dict.fromkeys(secrets) if secret and secret not in known]
        self._learned.update(_forms_of(new[-MOST_LEARNED:]))
        for oldest in list(islice(self._learned, max(0, len(self._learned) - MOST_LEARNED))):
            del self._learned[oldest]
        return new

    def redact_text(self, text: str) -> str:
        """Return an error's text or a log line without secrets."""
        known = [*self._own.items(), *self._learned.items()]
        for secret, written in sorted(known, key=lambda item: len(item[0]), reverse=True):
            if len(secret) < SHORTEST_SECRET:
                if len(secret) >= SHORTEST_WORD and secret in text:
                    text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
                continue
            text = _without_whole(text, written)
            if CUT in text:
                text = _without_cut(text, written)
        return text

    def redact_data(self, value: T, *, keep: Collection[str] = ()) -> T:
        """Return JSON without whole secrets of the connection, so that it can be stored. The same
        object, if there are none. Fields with a name in `keep` are left as they are."""
        from pydantic_core import to_json

        with suppress(ValueError):  # half a character
            if isinstance(value, str):
                found = any(form in value for form in self._in_data)
            else:
                text = to_json(value)
                found = any(form in text for form in self._in_json)
            if not found:
                return value
        changed: T = _changed(value, lambda text: _without_whole(text, self._in_data), keep)
        return changed

    def hide_in(self, error: BaseException) -> None:
        """Remove the secrets from an error and its causes, in place. A cause that
        cannot be changed and still shows a secret is unlinked."""
        seen: set[int] = set()
        pending = [error]
        while pending:
            current = pending.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            self._change(current)
            for link in ("__cause__", "__context__"):
                other = getattr(current, link)
                if other is None:
                    continue
                self._change(other)
                if any(self.redact_text(shown) != shown for shown in (str(other), repr(other))):
                    suppress = current.__suppress_context__
                    setattr(current, link, None)
                    current.__suppress_context__ = suppress
                else:
                    pending.append(other)

    def _change(self, error: BaseException) -> None:
        for name, value in list(vars(error).items()):
            if (clean := _changed(value, self.redact_text)) is not value:
                vars(error)[name] = clean
        if (args := _changed(error.args, self.redact_text)) is not error.args:
            error.args = args


def _forms_of(secrets: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {secret: forms(secret) for secret in secrets if secret.strip()}


def _without_whole(text: str, written: Iterable[str]) -> str:
    for form in written:
        if form in text:
            text = text.replace(form, HIDDEN)
    return text


def _without_cut(text: str, written: Iterable[str]) -> str:
    """Return the text without the beginning of a secret in front of a cut."""
    *parts, after = text.split(CUT)
    for form in written:
        for number, part in enumerate(parts):
            start = part.find(form[:SHORTEST_SECRET], max(0, len(part) - len(form)))
            while start >= 0 and not form.startswith(part[start:]):
                start = part.find(form[:SHORTEST_SECRET], start + 1)
            if start >= 0:
                parts[number] = part[:start] + HIDDEN
    return CUT.join([*parts, after])


def _changed(value: Any, change: Callable[[str], str], keep: Collection[str] = ()) -> Any:
    """Return JSON with every string and name changed, and the same object where nothing changed."""
    if isinstance(value, str):
        clean = change(value)
        return value if clean == value else clean
    if type(value) in (list, tuple):
        items = [_changed(item, change, keep) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if type(value) is dict:
        pairs = [
            (_changed(name, change), item if name in keep else _changed(item, change, keep))
            for name, item in value.items()
        ]
        old_pairs = zip(pairs, value.items(), strict=True)
        same = all(new[0] is old[0] and new[1] is old[1] for new, old in old_pairs)
        return value if same else dict(pairs)
    return value


CUT = "…"
"""Replaces the part that was cut from a text."""
MAX_LOG_LINE = 2000
"""Characters of a line: it may quote several texts of the service."""
_GROUP_MARK = re.compile(r"[:#](?=:(?:end)?group::|#\[(?:end)?group\])", re.IGNORECASE)


def printable(text: str) -> str:
    """Return the text as one line: control characters (line ends, escape codes) are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_texts(texts: Iterable[str]) -> list[str]:
    """Return each text as `printable` returns it."""
    return list(map(printable, texts))


def log_line(text: str, length: int = MAX_LOG_LINE) -> str:
    """Return the text as one printable line of at most so many characters.

    Control characters and the `::group::` marks that log viewers fold on, wherever they stand in a
    line, are escaped, so that text of the service cannot forge log lines. Every log line and every
    error with text of the service goes through this function.
    """
    line = _GROUP_MARK.sub(r"\g<0>\\", printable(text[: length + 1]))
    return line if len(line) <= length else line[: length - 1] + CUT


def split_log_lines(text: str, length: int) -> list[str]:
    """Return the lines of a text as `log_line` returns each. A line with more than `length`
    characters continues in the next line."""
    return [
        log_line(line[start : start + length])
        for line in text.split("\n")
        for start in range(0, max(len(line), 1), length)
    ]


MAX_SERVICE_TEXT = 500
MAX_CHART_CHARACTERS = 4 << 20
"""Characters of a chart's specification. A longer one is left out of the result: it would go to
XCom, and the drawing process refuses it."""


def quote_service(text: object) -> str:
    """Return text of the service as one line of at most 500 characters (see `log_line`); an object
    or a list as JSON."""
    if isinstance(text, dict | list | bool):
        text = json.dumps(text, ensure_ascii=False, default=str)
    return shortened(str(text), MAX_SERVICE_TEXT)


def shortened(text: str, length: int) -> str:
    """Return the text as one line of at most so many characters, without the spaces around it (see
    `log_line`)."""
    return log_line(text.strip(), length)


# Secrets by the names of their fields.


SECRET_NAMES: tuple[str, ...] = (
    "secret",
    "password",
    "passphrase",
    "token",
    "jwt",
    "session_id",
    "api_key",
    "private_key",
    "access_key",
    "account_key",
    "shared_key",
    "signing_key",
    "encryption_key",
    "credential",
    "authorization",
    "connection_string",
    "-pass",
    "-passwd",
    "-pwd",
    "-auth",
    "-dsn",
    "-cookie",
    "-bearer",
)
"""What the name of a field with a secret ends in, whatever its case and with or without `_`:
`clientSecret`, `ACCESS_TOKENS`, `apiKeyValue`. A name that begins with `-` counts as a whole word
only: `dbPass` and `DB_PASS`, not `compass`."""

_LABELS = ("name", "key", "field", "header", "type")
"""Names, whatever their case, under which a list of pairs says what a value is, as
`{"name": "apiKey", "value": …}`."""
_VALUES = re.compile(r"^(raw_?|plain_?)?(value|text|string|content|data)$", re.IGNORECASE)
"""Names of the value itself, in such a pair and inside `tokens: [{"value": …}]`."""


def is_credential_name(name: object) -> bool:
    """Return whether a field with this name, such as `clientSecret` or `session_id`, is a
    credential."""
    return _pattern(SECRET_NAMES).search(str(name)) is not None


def may_hold_secrets(body: bytes) -> bool:
    """Return whether a body must be searched: it contains one of the names, or an escape, which may
    hide a name. Most bodies do not."""
    folded = body.lower().replace(b"_", b"")
    return any(map(folded.__contains__, _signs(SECRET_NAMES)))


@lru_cache(maxsize=4)
def _signs(names: tuple[str, ...]) -> tuple[bytes, ...]:
    return (b"\\u", *(name.strip("-").replace("_", "").encode() for name in names))


@lru_cache(maxsize=4)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    inside = "|".join(name.replace("_", "_?") for name in names if name[0] != "-")
    words = "|".join(name[1:] for name in names if name[0] == "-")
    return re.compile(
        rf"(?i:(?:{inside})s?(?:_?(?:value|text))?)$"
        rf"|(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:{words})s?$"
    )


def hide_credentials(value: Any) -> Any:
    """Return JSON of the service in which each string under a name like `clientSecret` is a
    SecretStr, and each value of a pair like `{"name": "apiKey", "value": …}`. For JSON without a
    model: fields of a later release, free-form settings.
    """
    return _hide(value, under_credential=False)


def _hide(value: Any, *, under_credential: bool) -> Any:
    if isinstance(value, str):
        if not under_credential:
            return value
        from pydantic import SecretStr  # the provider's metadata must not load it

        return SecretStr(value)
    if isinstance(value, list | tuple):
        return [_hide(item, under_credential=under_credential) for item in value]
    if isinstance(value, Mapping):
        named = under_credential or any(
            is_credential_name(item) for name, item in value.items() if str(name).lower() in _LABELS
        )
        return {
            name: _hide(
                item,
                under_credential=is_credential_name(name)
                or (named and _VALUES.match(str(name)) is not None),
            )
            for name, item in value.items()
        }
    return value


def secrets_in(value: Any) -> Iterator[str]:
    """Return all secrets in a model or in JSON: each SecretStr, and each long enough string under a
    name like `clientSecret`."""
    return (text for _, text in _found(value, shortest_in_json=SHORTEST_SECRET))


def credentials_in(answer: Any) -> dict[str, str]:
    """Return the credentials in plain JSON, by their position, such as `data.0.token`."""
    return dict(_found(answer, shortest_in_json=1))


def _found(whole: Any, *, shortest_in_json: int) -> Iterator[tuple[str, str]]:
    """Return the position and the text of each secret."""
    from pydantic import BaseModel, SecretStr

    def inside(value: Any, place: str = "", shortest: int = 1) -> Iterator[tuple[str, str]]:
        if isinstance(value, SecretStr):
            text = value.get_secret_value()
            if len(text) >= shortest and text.strip("* "):
                yield place, text
            return
        items: Iterable[tuple[object, Any]] = ()
        if isinstance(value, BaseModel):
            fields = {**vars(value), **(value.model_extra or {})}
            items = ((name, hide_credentials(item)) for name, item in fields.items())
            shortest = 1  # in a model, secret fields have a secret type
        elif isinstance(value, Mapping):
            items, shortest = value.items(), shortest_in_json
        elif isinstance(value, list | tuple):
            items = enumerate(value)
        for name, item in items:
            yield from inside(item, f"{place}.{name}" if place else str(name), shortest)

    return inside(hide_credentials(whole))
