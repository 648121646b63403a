"""Loose fields of a connection as checked values: what may be written in each, and what may not.

Each function raises PlatformConfigError, which names the field and the rule and never a secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.client.formats.addresses import chat_address, split_address
from airflow_provider_platform.client.formats.booleans import read_boolean
from airflow_provider_platform.client.formats.web_links import check_patterns
from airflow_provider_platform.client.settings.session_settings import (
    SessionSettings,
    session_settings,
)

SERVICE_TOKEN_HEADERS = ("X-Service-Auth-Token", "X-Cube-Auth-Token")
MASK = "***"


def chat_side(given: Mapping[str, Any], allow_http: bool) -> dict[str, Any]:
    """The checked fields of the chat side: its address and exactly one credential, or neither."""
    key = as_secret(given.get("chat_api_key"), "chat_api_key")
    token = as_secret(given.get("chat_service_token"), "chat_service_token")
    chat_url = given.get("chat_url")
    if chat_url is None:
        if key or token:
            raise PlatformConfigError(
                "chat_url is missing: a chat credential is given without the agent's address.",
                field="chat_url",
            )
        return {"session_settings": _settings(given.get("session_settings"), service_token=False)}
    address = chat_address(str(chat_url), allow_http=allow_http)
    if key and token:
        raise PlatformConfigError(
            "chat_api_key and chat_service_token are both given: the service would ignore one. "
            "Keep exactly one.",
            field="chat_service_token",
        )
    if not key and not token:
        raise PlatformConfigError(
            "chat_api_key is missing: chat_url needs exactly one of chat_api_key and "
            "chat_service_token.",
            field="chat_api_key",
        )
    return {
        "chat_url": address,
        "chat_api_key": key,
        "chat_service_token": token,
        "chat_service_header": _header(given.get("chat_service_header")),
        "session_settings": _settings(
            given.get("session_settings"), service_token=token is not None
        ),
    }


def _header(value: Any) -> str:
    if value is None:
        return SERVICE_TOKEN_HEADERS[0]
    for name in SERVICE_TOKEN_HEADERS:
        if str(value).lower() == name.lower():
            return name
    raise PlatformConfigError(
        f"chat_service_header must be {' or '.join(SERVICE_TOKEN_HEADERS)}.",
        field="chat_service_header",
    )


def _settings(value: Any, *, service_token: bool) -> SessionSettings | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise PlatformConfigError(
                'session_settings must be a JSON object, as in {"externalId": "nightly"}.',
                field="session_settings",
            ) from None
    if value is None:
        return None
    if not isinstance(value, dict):
        raise PlatformConfigError(
            'session_settings must be a JSON object, as in {"externalId": "nightly"}.',
            field="session_settings",
        )
    if service_token or all(item in (None, "", [], {}) for item in value.values()):
        return None
    try:
        return session_settings(value)
    except PlatformInputError as error:
        rule = error.reason.removeprefix("Nothing was sent: ")
        raise PlatformConfigError(f"session_settings: {rule}", field="session_settings") from None


def as_web_links(value: Any) -> dict[str, str] | None:
    """Patterns of addresses for people, from an object or its JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    try:
        return check_patterns(value) or None
    except ValueError as error:
        raise PlatformConfigError(f"web_links {error}.", field="web_links") from None


def as_secret(value: Any, field: str) -> SecretStr | None:
    """A secret that can stand in a header; None where there is none."""
    text = clean(value)
    if text is None:
        return None
    text = str(text)
    if text == MASK:
        raise PlatformConfigError(
            f"{field} is the literal {MASK}: a masked value was saved in place of the secret. "
            "Enter the secret again.",
            field=field,
        )
    for scheme in ("bearer ", "api-key "):
        if text.lower().startswith(scheme):
            raise PlatformConfigError(
                f"{field} must be the bare secret, without the word {scheme.strip()!r}.",
                field=field,
            )
    if not text.isascii() or not text.isprintable() or " " in text:
        raise PlatformConfigError(
            f"{field} contains white space or characters that cannot stand in a header: it was "
            "probably pasted with something else.",
            field=field,
        )
    return SecretStr(text)


def as_proxy(text: str) -> SecretStr:
    """The address of a proxy, a secret because it may hold a password."""
    if text == MASK:
        raise PlatformConfigError(
            f"proxy is the literal {MASK}: a masked value was saved in place of the address. "
            "Enter it again.",
            field="proxy",
        )
    if "://" not in text:
        text = f"http://{text}"
    scheme, rest = text.split("://", 1)
    if scheme not in ("http", "https", "socks5", "socks5h"):
        raise PlatformConfigError("proxy must begin with http:// or https://.", field="proxy")
    split_address(f"http://{rest.rpartition('@')[2]}", field="proxy", port=None, allow_http=True)
    return SecretStr(text)


def clean(value: Any) -> Any:
    """A value without white space around it; None where it is empty."""
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, str):
        value = value.strip()
    return None if value in ("", {}, []) else value


def as_boolean(value: Any, field: str) -> bool:
    """A boolean, which may be written as text."""
    try:
        return read_boolean(value)
    except ValueError as error:
        raise PlatformConfigError(f"{field} {error}.", field=field) from None


def as_port(value: int | str | None) -> int | None:
    """A port's number, which may be written as text."""
    text = clean(value)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 65536:
        raise PlatformConfigError("port must be a number from 0 to 65535.", field="port")
    return number
