"""Finds secrets in requests and responses, by their type and by the names of their fields.

One list of names decides everywhere: which strings of a response become secrets, which strings of a
request are hidden in errors and logs, and which bodies are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, SecretStr

from airflow_provider_platform.client.redaction import SHORTEST_SECRET

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
        return SecretStr(value) if under_credential else value
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
    found = _found(hide_credentials(value), shortest_in_json=SHORTEST_SECRET)
    return (text for _, text in found)


def credentials_in(answer: Any) -> dict[str, str]:
    """Return the credentials in plain JSON, by their position, such as `data.0.token`."""
    return dict(_found(hide_credentials(answer), shortest_in_json=1))


def _found(
    value: Any, place: str = "", *, shortest_in_json: int, shortest: int = 1
) -> Iterator[tuple[str, str]]:
    """Yield the position and the text of each SecretStr."""
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
        inside = f"{place}.{name}" if place else str(name)
        yield from _found(item, inside, shortest_in_json=shortest_in_json, shortest=shortest)
