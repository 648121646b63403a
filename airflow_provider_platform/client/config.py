"""`PlatformConfig`: where the platform is, who we are there and how patient we are.

Built once from loose fields (a connection form, a URI, a JSON document, keyword arguments) and
checked before any request; every error names its field and the rule, never the value of a secret.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.client.formats.addresses import (
    chat_address,
    data_address,
    management_address,
    split_address,
)
from airflow_provider_platform.client.formats.booleans import read_boolean
from airflow_provider_platform.client.formats.durations import in_seconds
from airflow_provider_platform.client.formats.web_links import check_patterns
from airflow_provider_platform.client.operations.operation import check_deployment_id
from airflow_provider_platform.client.service_token import unverified_claims
from airflow_provider_platform.client.session_settings import SessionSettings, session_settings

SERVICE_TOKEN_HEADERS = ("X-Service-Auth-Token", "X-Cube-Auth-Token")
MASK = "***"


class PlatformConfig(BaseModel):
    """Addresses, credentials, time-outs (seconds) and TLS of one platform account.

    Use `build`; one side, management or chat, may be absent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    management_url: str | None = None
    management_token: SecretStr | None = None
    chat_url: str | None = None
    chat_api_key: SecretStr | None = None
    chat_service_token: SecretStr | None = None
    chat_service_header: Literal["X-Service-Auth-Token", "X-Cube-Auth-Token"] = (
        "X-Service-Auth-Token"
    )
    session_settings: SessionSettings | None = None
    deployment_id: int | None = Field(default=None, gt=0)
    data_api_url: str | None = None
    request_timeout: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    stream_idle_timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    max_attempts: int = Field(default=5, ge=1, le=100)
    verify_tls: bool = True
    ca_bundle: Path | None = None
    proxy: SecretStr | None = None
    allow_http: bool = False
    web_links: dict[str, str] | None = None
    """Patterns of addresses for people (see `formats.web_links`)."""

    @field_validator(
        "deployment_id", "request_timeout", "stream_idle_timeout", "max_attempts", mode="before"
    )
    @classmethod
    def _numbers_are_no_booleans(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("must be a number")
        return in_seconds(value)

    @field_validator("ca_bundle")
    @classmethod
    def _ca_bundle_exists(cls, value: Path | None) -> Path | None:
        if value is not None and not value.exists():
            raise ValueError("names no file or folder on this machine")
        return value

    @classmethod
    def build(
        cls,
        *,
        host: str | None = None,
        port: int | str | None = None,
        management_token: str | None = None,
        **fields: Any,
    ) -> PlatformConfig:
        """The checked configuration from loose fields.

        None and empty strings count as absent, numbers and booleans may be strings, and
        `session_settings` a JSON text. Raises PlatformConfigError.
        """
        given = {name: _clean(value) for name, value in fields.items()}
        given = {name: value for name, value in given.items() if value is not None}
        allow_http = _as_bool(given.get("allow_http", False), "allow_http")
        token = _secret(management_token, "password")
        address = _clean(host)
        if token and not address:
            raise PlatformConfigError(
                "host is missing: the management token is given without the management address.",
                field="host",
            )
        if address and not token:
            raise PlatformConfigError(
                "password is missing: it holds the management token, and host is given. For a "
                "chat-only connection leave host empty.",
                field="password",
            )
        checked: dict[str, Any] = {**given, "allow_http": allow_http}
        if address:
            checked["management_url"] = management_address(
                str(address), port=_as_port(port), allow_http=allow_http
            )
            checked["management_token"] = token
        checked.update(_chat_side(given, allow_http))
        if not address and "chat_url" not in checked:
            raise PlatformConfigError(
                "The connection is empty: give host and password (management API), or chat_url "
                "and a chat credential, or both.",
                field="host",
            )
        if "data_api_url" in given:
            checked["data_api_url"] = data_address(
                str(given["data_api_url"]), field="data_api_url", allow_http=allow_http
            )
        if "web_links" in given:
            checked["web_links"] = _web_links(given["web_links"])
        if "proxy" in given:
            checked["proxy"] = _proxy(str(given["proxy"]))
        return cls._validated(checked)

    @classmethod
    def _validated(cls, checked: dict[str, Any]) -> PlatformConfig:
        try:
            return cls.model_validate(checked)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            rule = first["msg"].removeprefix("Value error, ")
            raise PlatformConfigError(f"{field}: {rule}.", field=field) from None

    @cached_property
    def place(self) -> str:
        """What errors call the place of a setting. It is no setting itself: two configurations
        that differ in it are equal."""
        return "the connection"

    def of_connection(self, connection_id: str) -> Self:
        """The same, as that of a connection which errors name."""
        named = self.model_copy()
        vars(named)["place"] = f"connection {connection_id!r}"
        return named

    def require_chat_url(self) -> str:
        """The chat address. Raises PlatformConfigError for a connection without the chat side."""
        if self.chat_url is None:
            raise PlatformConfigError(
                f"Chat calls need chat_url and a chat credential in {self.place}. Chat access "
                "needs the premium or enterprise plan.",
                field="chat_url",
            )
        return self.chat_url

    def require_management_url(self) -> str:
        """The management address. Raises PlatformConfigError for a connection without that side."""
        if self.management_url is None:
            raise PlatformConfigError(
                f"Calls of the management API need host and password in {self.place}: its "
                "address and a token.",
                field="host",
            )
        return self.management_url

    @property
    def secrets(self) -> list[str]:
        """Every secret in clear, for masking."""
        fields = [self.management_token, self.chat_api_key, self.chat_service_token]
        found = [secret.get_secret_value() for secret in fields if secret is not None]
        proxy = self.proxy.get_secret_value() if self.proxy is not None else ""
        user, at, _ = proxy.partition("://")[2].rpartition("@")
        if at:
            password = user.partition(":")[2]
            found += [proxy, *dict.fromkeys(filter(None, (password, unquote(password))))]
        return found

    def resolve_session_settings(self, given: dict[str, Any] | None) -> SessionSettings | None:
        """The settings of a chat call: the given ones replace the connection's as a whole.

        None with a service token, whose claims say who the user is. Raises PlatformInputError
        where an API key is used and nobody says who the user is.
        """
        if self.chat_service_token is not None:
            return None
        if given:
            return session_settings(given)
        if self.session_settings is None:
            raise PlatformInputError(
                "Nothing was sent: session_settings must name the user of the chat (externalId or "
                f"internalId), in {self.place} or in the call; an API key alone does not.",
                field="session_settings",
            )
        return self.session_settings

    def resolve_deployment_id(self, given: int | str | None = None) -> int:
        """The given deployment, else the connection's. Raises PlatformInputError."""
        deployment_id = check_deployment_id(given) or self.deployment_id
        if deployment_id is None:
            raise PlatformInputError(
                f"Nothing was sent: deployment_id must be given, in {self.place} or in the call.",
                field="deployment_id",
            )
        return deployment_id

    def chat_identity(self, settings: SessionSettings | None) -> dict[str, str]:
        """Who a chat call acts as; with a service token its `externalId` or `sub` claim."""
        if self.chat_service_token is not None:
            claims = unverified_claims(self.chat_service_token.get_secret_value()) or {}
            name = str(claims.get("externalId") or claims.get("sub") or "")
            return {"externalId": name.lower()}
        return settings.identity if settings else {}

    def same_places(self, other: PlatformConfig) -> bool:
        """Whether the other configuration differs in credentials, and in links for people, only."""
        others = {"management_token", "chat_api_key", "chat_service_token", "web_links"}
        return self.model_dump(exclude=others) == other.model_dump(exclude=others)


def fingerprint(*parts: object) -> str:
    """SHA-256 over plain JSON values, the same in every process."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _chat_side(given: Mapping[str, Any], allow_http: bool) -> dict[str, Any]:
    key = _secret(given.get("chat_api_key"), "chat_api_key")
    token = _secret(given.get("chat_service_token"), "chat_service_token")
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
        rule = error.message.removeprefix("Nothing was sent: ")
        raise PlatformConfigError(f"session_settings: {rule}", field="session_settings") from None


def _web_links(value: Any) -> dict[str, str] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    try:
        return check_patterns(value) or None
    except ValueError as error:
        raise PlatformConfigError(f"web_links {error}.", field="web_links") from None


def _secret(value: Any, field: str) -> SecretStr | None:
    text = _clean(value)
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


def _proxy(text: str) -> SecretStr:
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


def _clean(value: Any) -> Any:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, str):
        value = value.strip()
    return None if value in ("", {}, []) else value


def _as_bool(value: Any, field: str) -> bool:
    try:
        return read_boolean(value)
    except ValueError as error:
        raise PlatformConfigError(f"{field} {error}.", field=field) from None


def _as_port(value: int | str | None) -> int | None:
    text = _clean(value)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 65536:
        raise PlatformConfigError("port must be a number from 0 to 65535.", field="port")
    return number
