"""Takes secrets out of texts, also where a text quotes them encoded or cut.

A secret is found as it is, as it stands in an address, in JSON (twice over, too) and in a line
where control characters are escaped, in base64 at whatever place, and, of at least
`SHORTEST_SECRET` characters, as the beginning that is left where a text was cut.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

HIDDEN = "***"
CUT = "…"
"""Stands where a text of the service was cut."""
SHORTEST_SECRET = 8
"""Characters of the shortest secret that is hidden wherever it stands; a shorter one, of at least
`SHORTEST_WORD`, is hidden where it stands alone: it would blot out parts of words."""
SHORTEST_WORD = 5

T = TypeVar("T")

_BASE64 = string.ascii_letters + string.digits + "+/-_"
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


def forms(secret: str) -> list[str]:
    """The secret in every form in which a text may quote it, base64 excepted."""
    written = _written(secret)
    in_address = [form(text) for text in written for form in (_quote, quote, quote_plus)]
    found = (
        *written,
        *(json.dumps(text)[1:-1] for text in written),
        *in_address,
        *(_ESCAPE.sub(lambda escape: escape.group().lower(), text) for text in in_address),
        printable(secret),
        repr(secret)[1:-1],
    )
    return list(dict.fromkeys(found))


def _written(secret: str) -> list[str]:
    """The secret as a body holds it: as it is, and in JSON."""
    in_json = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    return list(dict.fromkeys((secret, secret.strip(), *in_json)))


def _quote(text: str) -> str:
    return quote(text, safe="")


def base64_forms(secret: str) -> list[str]:
    """What base64 makes of the secret inside a longer text: of the three ways in which it can
    fall on groups of three bytes, the characters that depend on nothing beside it."""
    return list(dict.fromkeys(form for text in _written(secret) for form in _in_base64(text)))


def _in_base64(text: str) -> Iterator[str]:
    plain = text.encode("utf-8", "surrogatepass")
    for shift in range(3):
        first, end = (8 * shift + 5) // 6, 8 * (shift + len(plain)) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * shift + plain).decode()[first:end]


def maskable(secrets: Iterable[str]) -> list[str]:
    """The secrets, those that are long enough in every form: for a log that masks whole texts."""
    found: dict[str, None] = {}
    for secret in secrets:
        found[secret] = None
        if len(secret) >= SHORTEST_SECRET:
            found.update(dict.fromkeys((*forms(secret), *base64_forms(secret))))
    return list(found)


def printable(text: str) -> str:
    """The text in one line: control characters (line ends, escape codes) are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Redactor:
    """Puts `***` in the place of some secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = list(dict.fromkeys(secrets))

    @cached_property
    def _long(self) -> list[str]:
        return [secret for secret in self._secrets if len(secret) >= SHORTEST_SECRET]

    @cached_property
    def _forms(self) -> list[str]:
        found = {form for secret in self._long for form in forms(secret)}
        return sorted(found, key=len, reverse=True)

    @cached_property
    def _base64(self) -> list[str]:
        return [form for secret in self._long for form in base64_forms(secret)]

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        words = (s for s in self._secrets if SHORTEST_WORD <= len(s) < SHORTEST_SECRET)
        alone = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in words]
        # A pattern of nothing would match everywhere.
        return re.compile("|".join([*map(re.escape, self._forms), *alone]) or r"(?!)")

    @cached_property
    def _coded(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._base64)) or r"(?!)")

    def text(self, text: str, *, cut: bool = True) -> str:
        """The text without the secrets; with `cut` also without the beginning of one at its end
        and where it was cut."""
        text = self._without_base64(self._whole.sub(HIDDEN, text))
        if not cut and CUT not in text:
            return text
        return CUT.join(map(self._without_beginning, text.split(CUT)))

    def value(self, value: T, *, cut: bool = True) -> T:
        """JSON, or a part of it, with every text redacted; what holds no secret is returned as the
        very object that it is."""
        found: Any = self._value(value, cut)
        return value if found is None else found

    def finds(self, text: str) -> bool:
        """Whether the text holds a secret."""
        return self.text(text) != text

    def error(self, error: BaseException) -> None:
        """Take the secrets out of an error and of those it came of, in place. One that cannot be
        changed and shows a secret is no longer told as the cause."""
        seen: set[int] = set()
        pending = [error]
        while pending:
            one = pending.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            self._in_place(one)
            for link in ("__cause__", "__context__"):
                other = getattr(one, link)
                if other is None:
                    continue
                self._in_place(other)
                if self.finds(str(other)) or self.finds(repr(other)):
                    suppress = one.__suppress_context__
                    setattr(one, link, None)
                    one.__suppress_context__ = suppress
                else:
                    pending.append(other)

    def _in_place(self, error: BaseException) -> None:
        for name, value in list(vars(error).items()):
            if (clean := self._value(value, True)) is not None:
                vars(error)[name] = clean
        if (args := self._value(error.args, True)) is not None:
            error.args = args

    def _value(self, value: Any, cut: bool) -> Any:
        """The value redacted, None where there was nothing to hide."""
        if isinstance(value, str):
            clean = self.text(value, cut=cut)
            return None if clean == value else clean
        if type(value) in (list, tuple):
            items = [self._value(item, cut) for item in value]
            if all(item is None for item in items):
                return None
            pairs = zip(items, value, strict=True)
            return type(value)(old if new is None else new for new, old in pairs)
        if type(value) is dict:
            return self._object(value, cut)
        return None

    def _object(self, value: dict[Any, Any], cut: bool) -> dict[Any, Any] | None:
        """An object redacted, its names too; None where there was nothing to hide."""
        changed = {
            name: clean
            for name, item in value.items()
            if (clean := self._value(item, cut)) is not None
        }
        names = {name: clean for name in value if (clean := self._value(name, cut)) is not None}
        if not names:
            return {**value, **changed} if changed else None
        return {names.get(name, name): changed.get(name, item) for name, item in value.items()}

    def _without_base64(self, text: str) -> str:
        """Hides the whole run of base64 characters that a secret stands in."""
        parts: list[str] = []
        done = 0
        for match in self._coded.finditer(text):
            if match.start() < done:
                continue
            before = text[done : match.start()].rstrip(_BASE64)
            rest = text[match.end() :]
            parts += [before, HIDDEN]
            done = len(text) - len(rest.lstrip(_BASE64 + "="))
        return "".join([*parts, text[done:]]) if parts else text

    def _without_beginning(self, text: str) -> str:
        tail = text[-SHORTEST_SECRET:]
        if len(tail) < SHORTEST_SECRET:
            return text
        plain = max((_overlap(text, form) for form in self._forms if tail in form), default=0)
        coded = max((_overlap(text, form) for form in self._base64 if tail in form), default=0)
        if not plain and not coded:
            return text
        rest = text[: -max(plain, coded)]
        return (rest.rstrip(_BASE64) if coded > plain else rest) + HIDDEN


@lru_cache(maxsize=16)
def redactor(secrets: tuple[str, ...]) -> Redactor:
    """The Redactor of these secrets, which a thousand clients of one connection share."""
    return Redactor(secrets)


def _overlap(text: str, form: str) -> int:
    """How many characters at the end of the text are the beginning of the form, 0 for too few."""
    for length in range(min(len(form) - 1, len(text)), SHORTEST_SECRET - 1, -1):
        if text.endswith(form[:length]):
            return length
    return 0


class KnownSecrets:
    """The secrets that one client has sent or received; none is ever forgotten."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._redactor = Redactor(())
        self._known: tuple[str, ...] = ()
        self.learn(secrets)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def learn(self, secrets: Iterable[str]) -> list[str]:
        """Hide these from now on; returns those that are new."""
        new = [secret for secret in dict.fromkeys(secrets) if secret and secret not in self._known]
        if new:
            self._known = (*self._known, *new)
            self._redactor = Redactor(self._known)
        return new

    def redact(self, value: T) -> T:
        """JSON, or a text, as it may be shown or stored."""
        return self._redactor.value(value)

    def redact_data(self, value: T) -> T:
        """`redact` for what was not cut by us: a text that merely ends alike stays."""
        return self._redactor.value(value, cut=False)

    def hide_in(self, error: BaseException) -> None:
        """Take the secrets out of an error, in place."""
        self._redactor.error(error)
