"""`PlatformConfig`: where the platform is, who we are there and how patient we are.

Built once from loose fields (a connection form, a URI, a JSON document, keyword arguments) and
checked before any request; every error names its field and the rule, never the value of a secret.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.client.formats.addresses import (
    data_address,
    management_address,
)
from airflow_provider_platform.client.formats.durations import in_seconds
from airflow_provider_platform.client.formats.service_token import unverified_claims
from airflow_provider_platform.client.operations.paths import check_deployment_id
from airflow_provider_platform.client.settings.fields import (
    as_boolean,
    as_port,
    as_proxy,
    as_secret,
    as_web_links,
    chat_side,
    clean,
)
from airflow_provider_platform.client.settings.session_settings import (
    SessionSettings,
    session_settings,
)


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
    default_row_limit: int | None = Field(default=None, ge=1)
    max_row_limit: int | None = Field(default=None, ge=1)
    """Row limits of the deployment for queries without a LIMIT and with one, if they are known."""
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
        "deployment_id",
        "default_row_limit",
        "max_row_limit",
        "request_timeout",
        "stream_idle_timeout",
        "max_attempts",
        mode="before",
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
        given = {name: clean(value) for name, value in fields.items()}
        given = {name: value for name, value in given.items() if value is not None}
        allow_http = as_boolean(given.get("allow_http", False), "allow_http")
        token = as_secret(management_token, "password")
        address = clean(host)
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
                str(address), port=as_port(port), allow_http=allow_http
            )
            checked["management_token"] = token
        checked.update(chat_side(given, allow_http))
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
            checked["web_links"] = as_web_links(given["web_links"])
        if "proxy" in given:
            checked["proxy"] = as_proxy(str(given["proxy"]))
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

    def resolve_session_settings(
        self, given: dict[str, Any] | None, *, required: bool = True
    ) -> SessionSettings | None:
        """Return the settings of a chat call: the given ones replace the connection's as a whole.

        None with a service token, whose claims name the user; the connection's settings are not
        sent then. Raises PlatformInputError for settings given with a service token, because they
        would name another user than the token does, and, if settings are `required`, where an API
        key is used and neither the call nor the connection has any.
        """
        if self.chat_service_token is not None:
            if given:
                raise PlatformInputError(
                    f"Nothing was sent: {self.place} uses chat_service_token, whose claims name "
                    "the user; the service would ignore session_settings. Leave session_settings "
                    "out, or use a connection with chat_api_key.",
                    field="session_settings",
                )
            return None
        if given:
            return session_settings(given)
        if self.session_settings is None and required:
            raise PlatformInputError(
                "Nothing was sent: session_settings must name the user of the chat (externalId or "
                f"internalId), in {self.place} or in the call; an API key alone does not.",
                field="session_settings",
            )
        return self.session_settings

    def settings_of_identity(self, identity: dict[str, str]) -> SessionSettings | None:
        """Return the settings that name the user of an earlier call (see `chat_identity`); None
        where the connection uses a service token by now."""
        return None if self.chat_service_token is not None else session_settings(identity)

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

    def same_endpoints(self, other: PlatformConfig) -> bool:
        """Whether the other configuration differs in credentials, and in links for people, only."""
        others = {"management_token", "chat_api_key", "chat_service_token", "web_links"}
        return self.model_dump(exclude=others) == other.model_dump(exclude=others)


def fingerprint(*parts: object) -> str:
    """SHA-256 over plain JSON values, the same in every process."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
