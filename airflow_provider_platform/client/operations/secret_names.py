"""Finds secrets in requests and responses, by their type and by the names of their fields.

One list of names decides everywhere: which strings of a response become secrets, which strings of a
request are hidden in errors and logs, which bodies are searched, and which cookies are credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, SecretStr

from airflow_provider_platform.client.known_secrets import SHORTEST_SECRET

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
)
"""What the name of a field with a secret ends in, whatever its case and with or without `_`:
`clientSecret`, `ACCESS_TOKENS`, `apiKeyValue`."""

SHORT_SECRET_NAMES: tuple[str, ...] = ("pass", "passwd", "pwd", "auth", "dsn", "cookie", "bearer")
"""The same for names that count as a whole word only: `dbPass` and `DB_PASS`, not `compass`."""

_SESSION_NAMES: tuple[str, ...] = ("sess", "auth")
"""Further parts of the names of session cookies, such as `PHPSESSID`."""

_LABELS = ("name", "key", "field", "header", "type")
"""Names, whatever their case, under which a list of pairs says what a value is, as
`{"name": "apiKey", "value": …}`."""
_VALUES = re.compile(r"^(raw_?|plain_?)?(value|text|string|content|data)$", re.IGNORECASE)
"""Names of the value itself, in such a pair and inside `tokens: [{"value": …}]`."""


def is_credential_name(name: object) -> bool:
    """Return whether a field with this name, such as `clientSecret` or `session_id`, is a
    credential."""
    text = str(name)
    return any(names.search(text) for names in _field_patterns(SECRET_NAMES, SHORT_SECRET_NAMES))


def is_session_cookie(name: str, *, http_only: bool) -> bool:
    """Whether a cookie is a credential, and not the mark by which a load balancer finds a server.

    Sites add to the name at both ends (`__Host-token.v2`), so a name of the list counts anywhere.
    """
    return (
        http_only
        or is_credential_name(name)
        or _cookie_pattern(SECRET_NAMES).search(name) is not None
    )


def may_hold_secrets(body: bytes) -> bool:
    """Return whether a body must be searched: it contains one of the names, or an escape, which may
    hide a name. Most bodies do not."""
    folded = body.lower()
    return any(part in folded for part in _body_parts(SECRET_NAMES, SHORT_SECRET_NAMES))


@lru_cache(maxsize=4)
def _field_patterns(
    names: tuple[str, ...], short: tuple[str, ...]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern for the names of fields."""
    return (
        re.compile(rf"({_any_of(names)})s?(_?(value|text))?$", re.IGNORECASE),
        re.compile(rf"(^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:{_any_of(short)})s?$"),
    )


@lru_cache(maxsize=4)
def _cookie_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern for the names of session cookies: `sid` counts only at the end, as in
    `connect.sid`."""
    return re.compile(rf"{_any_of((*names, *_SESSION_NAMES))}|sid$", re.IGNORECASE)


@lru_cache(maxsize=4)
def _body_parts(names: tuple[str, ...], short: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return strings (in lower case) of which a body with such a field contains at least one."""
    written = {form for name in (*names, *short) for form in (name, name.replace("_", ""))}
    # A name that contains another name needs no separate search.
    least = [name for name in written if not any(part in name for part in written - {name})]
    return (*(name.encode() for name in sorted(least)), b"\\u")


def _any_of(names: tuple[str, ...]) -> str:
    return "|".join(name.replace("_", "_?") for name in names)


def hide_credentials(value: Any) -> Any:
    """Return JSON of the service in which each string under a name like `clientSecret` is a
    SecretStr, and each value of a pair like `{"name": "apiKey", "value": …}`. For JSON without a
    model: fields of a later release, free-form settings.
    """
    return _hide(value, under_credential=False)


def _hide(value: Any, *, under_credential: bool) -> Any:
    if isinstance(value, str):
        return SecretStr(value) if under_credential else value
    if isinstance(value, list):
        return [_hide(item, under_credential=under_credential) for item in value]
    if isinstance(value, dict):
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


def shown_credentials(value: Any) -> Any:
    """Undo `hide_credentials`."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, list):
        return [shown_credentials(item) for item in value]
    if isinstance(value, dict):
        return {name: shown_credentials(item) for name, item in value.items()}
    return value


def secrets_in(value: Any) -> Iterator[str]:
    """Return all secrets in a model or in JSON: each SecretStr, and each long enough string under a
    name like `clientSecret`."""
    return (text for text in _walk(value) if text.strip("* "))


def _walk(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        # In a model, secret fields have a secret type.
        for item in (*vars(value).values(), *(value.model_extra or {}).values()):
            yield from _walk(item)
    elif isinstance(value, dict):
        yield from (
            text for text in _hidden(hide_credentials(value)) if len(text) >= SHORTEST_SECRET
        )
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _walk(item)


def _hidden(value: Any) -> Iterator[str]:
    """Yield the strings in JSON that are a SecretStr, also in models."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _hidden(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _hidden(item)
    else:
        yield from _walk(value)


def credentials_in(answer: Any) -> dict[str, str]:
    """Return the credentials in plain JSON, by their position, such as `data.0.token`."""
    credentials: dict[str, str] = {}
    _collect(hide_credentials(answer), "", credentials)
    return credentials


def _collect(value: Any, place: str, credentials: dict[str, str]) -> None:
    if isinstance(value, SecretStr):
        text = value.get_secret_value()
        if text.strip("* "):
            credentials[place] = text
    elif isinstance(value, dict):
        for name, item in value.items():
            _collect(item, f"{place}.{name}" if place else str(name), credentials)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _collect(item, f"{place}.{position}" if place else str(position), credentials)
