"""`PlatformConfig`: addresses, credentials and limits of one connection, checked when it is made.

It is built once from loose values: a connection form, a URI, a JSON document or keyword arguments.
Every error names its field and the rule, and never the value of a secret. `connection_fields`
declares the fields. This module has the rules over several fields, the user of a chat
(`SessionSettings`, the `sessionSettings` of chat requests), and the warnings about a service token
whose claims show that the service will refuse it, now or soon.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Self,
    get_args,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.argument_rules import (
    check_deployment_id,
    check_timezone,
    is_absent,
    read_boolean,
    read_json_string,
    refuse,
)
from airflow_provider_platform.client.connection_fields import (
    AnyField,
    ConnectionField,
    ConnectionFields,
    agent_address,
    agent_in,
    clean,
    fields_of,
    fill_patterns,
    passwords_in,
    with_label,
)
from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.client.models import InputModel, rule_of

# The user of a chat.


TimeZone = Annotated[str, AfterValidator(check_timezone)]

NOT_WITH_INTERNAL_ID = ("roles", "groups", "userAttributes", "securityContext")


class UserAttribute(InputModel):
    """One attribute for row-level security; its name must be configured on the platform."""

    name: str = Field(min_length=1)
    value: str

    @field_validator("value", mode="before")
    @classmethod
    def _boolean_is_sent_as_text(cls, value: Any) -> Any:
        """The service takes text only."""
        return str(value).lower() if isinstance(value, bool) else value


class TurnSettings(InputModel):
    """The nested `settings` of the session: `timezone` counts if the session names none itself."""

    model_config = ConfigDict(extra="forbid", strict=True)

    timezone: TimeZone | None = None


class SessionSettings(InputModel):
    """`sessionSettings` of a chat request: exactly one of `externalId` and `internalId`.

    `externalId` is lowercase without white space; with `internalId` (an existing user) the user's
    own permissions apply, so none may be given here. `ephemeralTtlSeconds` is in seconds,
    `timezone` an IANA name. With `allowChatWorkspaceAuthoring` false the agent may not save
    reports, workbooks or dashboards.

    A template renders to text: booleans and numbers may be texts, lists and objects JSON texts.
    An empty list is sent, because it means "none".
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    # A template can render digits to a number.
    external_id: str | None = Field(default=None, strict=False)
    internal_id: str | None = Field(default=None, strict=False)
    email: str | None = None
    user_attributes: list[UserAttribute] | None = None
    groups: list[str] | None = None
    roles: list[str] | None = None
    security_context: dict[str, Any] | None = None
    is_ephemeral: bool | None = None
    ephemeral_ttl_seconds: int | None = Field(default=None, gt=0, strict=False)
    public_dashboard_id: str | None = None
    timezone: TimeZone | None = None
    settings: TurnSettings | None = None
    allow_chat_workspace_authoring: bool | None = None

    @staticmethod
    def caller_name(name: str) -> str:
        """Settings are one object, written as the service spells it."""
        return to_camel(name)

    @staticmethod
    def is_left_out(value: Any) -> bool:
        """Return whether the value is None, "", "None" or {}."""
        return is_absent(value) or value == {}

    @field_validator("external_id")
    @classmethod
    def _external_id_is_normal(cls, value: str | None) -> str | None:
        if value is not None and (value != value.lower() or any(c.isspace() for c in value)):
            raise ValueError("must be lowercase and without spaces")
        return value

    @field_validator("is_ephemeral", "allow_chat_workspace_authoring", mode="before")
    @classmethod
    def _boolean_may_be_text(cls, value: Any) -> bool:
        return read_boolean(value)

    @field_validator("user_attributes", mode="before")
    @classmethod
    def _attributes_are_a_list(cls, value: Any) -> Any:
        if isinstance(value, dict):
            raise ValueError('must be a list such as [{"name": "region", "value": "emea"}]')
        return value

    @field_validator(
        "user_attributes", "groups", "roles", "security_context", "settings", mode="before"
    )
    @classmethod
    def _container_may_be_json_text(cls, value: Any) -> Any:
        try:
            return read_json_string(value)
        except ValueError:
            raise ValueError(
                "must be a list, an object, or a JSON string of one of these (in a template, add "
                "| tojson)"
            ) from None

    @model_validator(mode="after")
    def _names_one_user(self) -> Self:
        if (self.external_id is None) == (self.internal_id is None):
            raise ValueError("exactly one of externalId and internalId must be given")
        if self.internal_id is not None:
            fields = self.to_json()
            refused = [name for name in NOT_WITH_INTERNAL_ID if name in fields]
            if refused:
                raise ValueError(f"{', '.join(refused)} cannot be given together with internalId")
        return self

    @property
    def identity(self) -> dict[str, str]:
        """The one id that names the user, as an abort request carries it."""
        if self.external_id is not None:
            return {"externalId": self.external_id}
        return {"internalId": str(self.internal_id)}


def session_settings(values: dict[str, Any]) -> SessionSettings:
    """Return the checked settings. None, "", "None" and {} count as absent, an empty list does
    not. Raises PlatformInputError, also for a permission without a value: left out, the user may
    see rows that it was to hide."""
    settings = SessionSettings.of(values)
    sent = settings.to_json()
    for name in values:
        if to_camel(name) in NOT_WITH_INTERNAL_ID and _has_a_gap(sent.get(to_camel(name))):
            raise refuse(name, "has no value. Give one, or leave it out")
    return settings


def _has_a_gap(value: Any) -> bool:
    """Return whether the value, or a value inside, is none. An empty list is a value."""
    if isinstance(value, dict):
        return not value or any(map(_has_a_gap, value.values()))
    return any(map(_has_a_gap, value)) if isinstance(value, list) else is_absent(value)


def _of_connection(value: dict[str, Any]) -> SessionSettings:
    """Return the settings of a connection. Raises ValueError."""
    try:
        return SessionSettings.of(value)
    except PlatformInputError as error:
        raise ValueError(f": {error.reason.removeprefix('Nothing was sent: ')}") from None


# The claims of a service token.


SOON = 24 * 3600.0
"""Seconds: a token that lives no longer does not last until the next nightly run."""


def unverified_claims(token: str) -> dict[str, Any] | None:
    """The claims of a JWT, its signature unchecked; None where it is not a JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def token_warnings(token: str, now: float) -> list[str]:
    """A sentence for each fault of the token's claims; `now` is Unix time.

    The signature is not checked, and a custom check function of the deployment may make up for
    missing claims: only the service knows whether it accepts the token.
    """
    claims = unverified_claims(token)
    if claims is None:
        return [
            "Chat service token (chat_service_token) is not a JWT: it must have three parts "
            "separated by dots."
        ]
    return [*_missing_claims(claims), *_times(claims, now)]


def _missing_claims(claims: dict[str, Any]) -> Iterator[str]:
    scope = claims.get("scope")
    if not isinstance(scope, list) or "chat" not in scope:
        yield (
            "Chat service token (chat_service_token) lacks the scope 'chat'. Its claim scope "
            "must be a list that includes 'chat'."
        )
    if not claims.get("externalId") and not claims.get("sub"):
        yield (
            "Chat service token (chat_service_token) names no user: it has neither the claim "
            "externalId nor sub."
        )


def _times(claims: dict[str, Any], now: float) -> Iterator[str]:
    expires, begins = _seconds(claims.get("exp")), _seconds(claims.get("nbf"))
    if begins is not None and begins > now:
        yield f"Chat service token (chat_service_token) is not valid before {_when(begins)}."
    if expires is None:
        return
    if expires <= now:
        yield (
            f"Chat service token (chat_service_token) expired on {_when(expires)}. Enter a new "
            "token."
        )
    elif expires - now < SOON:
        yield (
            f"Chat service token (chat_service_token) expires soon, on {_when(expires)}. Runs "
            "after that need a new token."
        )


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        return f"an invalid date ({seconds:g})"


def model_fields_of(table: type[ConnectionFields]) -> dict[str, Any]:
    """Return the fields of a table as pydantic's `create_model` takes them.

    A field's declaration is part of its metadata. A field that needs others stands behind them.
    """
    types = get_type_hints(table, localns={"Path": Path, "SecretStr": SecretStr})
    settings = Annotated[SessionSettings, BeforeValidator(_of_connection)]
    types["session_settings"] = ConnectionField[settings | None]
    fields = sorted(fields_of(table), key=lambda field: bool(field.needs))
    return {field.name: _model_field(field, get_args(types[field.name])[0]) for field in fields}


def _model_field(declared: AnyField, value_type: Any) -> tuple[Any, Any]:
    limits = Field(
        ge=declared.minimum,
        le=declared.maximum,
        gt=declared.above,
        allow_inf_nan=False if value_type is float else None,
    )
    return Annotated[value_type, limits, BeforeValidator(declared.read), declared], declared.default


if TYPE_CHECKING:

    class _Fields(ConnectionFields, BaseModel):
        session_settings: ConnectionField[SessionSettings | None]

else:
    _Fields = create_model("_Fields", **model_fields_of(ConnectionFields))


class PlatformConfig(_Fields):
    """Addresses, credentials, time-outs (seconds) and TLS of one platform account.

    Use `build`; one side, management or chat, may be absent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @classmethod
    def build(cls, **values_by_name: Any) -> Self:
        """Return the checked configuration of loose values, each under its name in the connection
        or in the configuration (`host` or `management_url`).

        None and empty strings count as absent, numbers and booleans may be strings, and
        `session_settings` a JSON text. Raises PlatformConfigError.
        """
        names = {declared.stored_name: name for name, declared in cls.declared().items()}
        values = {names.get(name, name): clean(value) for name, value in values_by_name.items()}
        present = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.model_validate(present)
        except ValidationError as error:
            refusal = cls._refusal(error)
        except PlatformConfigError as error:
            refusal = error
        raise PlatformConfigError(with_label(refusal.reason), field=refusal.field) from None

    @classmethod
    def declared(cls) -> dict[str, AnyField]:
        """Return the declaration of each field."""
        return {
            name: metadata
            for name, field in cls.model_fields.items()
            for metadata in field.metadata
            if isinstance(metadata, ConnectionField)
        }

    @classmethod
    def _refusal(cls, error: ValidationError) -> PlatformConfigError:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        declared = cls.declared().get(name)
        field = name if declared is None else declared.stored_name
        rule = rule_of(first)
        separator = "" if rule.startswith(":") else " "
        return PlatformConfigError(f"{field}{separator}{rule.removesuffix('.')}.", field=field)

    @model_validator(mode="after")
    def _has_whole_sides(self) -> Self:
        """Each side has its address and exactly one credential, or neither."""
        if self.management_token and not self.management_url:
            raise PlatformConfigError(
                "Management API address (host) is missing, but Management token (password) is "
                "set. Enter the address, or remove the token.",
                field="host",
            )
        if self.management_url and not self.management_token:
            raise PlatformConfigError(
                "Management token (password) is missing, but Management API address (host) is "
                "set. Enter the token. For a chat-only connection leave the address empty.",
                field="password",
            )
        if not self.chat_url and (self.chat_api_key or self.chat_service_token):
            raise PlatformConfigError(
                "Chat address (chat_url) is missing, but a chat credential is set. Enter the "
                "agent's address, or remove the credential.",
                field="chat_url",
            )
        if self.chat_api_key and self.chat_service_token:
            raise PlatformConfigError(
                "Chat API key (chat_api_key) and Chat service token (chat_service_token) are "
                "both set, but the service would ignore one of them. Keep exactly one.",
                field="chat_service_token",
            )
        if self.chat_url and not self.chat_api_key and not self.chat_service_token:
            raise PlatformConfigError(
                "Chat API key (chat_api_key) or Chat service token (chat_service_token) is "
                "missing: Chat address (chat_url) needs exactly one of the two.",
                field="chat_api_key",
            )
        if not self.management_url and not self.chat_url:
            raise PlatformConfigError(
                "The connection is empty. Set Management API address (host) and Management token "
                "(password), or Chat address (chat_url) and a chat credential, or all of them.",
                field="host",
            )
        return self

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

    def require_chat_url(self, agent_id: int | str | None = None) -> str:
        """The chat address, of another agent if one is named. Raises PlatformConfigError for a
        connection without the chat side, PlatformInputError for a bad agent id."""
        if self.chat_url is None:
            raise PlatformConfigError(
                f"Chat calls need Chat address (chat_url) and a chat credential in {self.place}. "
                "Chat access needs the premium or enterprise plan.",
                field="chat_url",
            )
        return self.chat_url if agent_id is None else agent_address(self.chat_url, agent_id)

    def agent_name(self, agent: str | None, agent_id: int | str | None) -> str | None:
        """Return the name of the agent that a call asks: its own, else the connection's; None if it
        gives an id or asks the agent of the chat address."""
        return None if agent_id is not None else agent or self.agent

    def require_management_url(self) -> str:
        """The management address. Raises PlatformConfigError for a connection without that side."""
        if self.management_url is None:
            raise PlatformConfigError(
                "Calls of the management API need Management API address (host) and Management "
                f"token (password) in {self.place}.",
                field="host",
            )
        return self.management_url

    @property
    def secrets(self) -> list[str]:
        """Every secret in clear, for masking."""
        secrets: list[str] = []
        for name, declared in self.declared().items():
            if declared.kind != "secret" or (value := getattr(self, name)) is None:
                continue
            secret = value.get_secret_value()
            secrets += passwords_in(secret) if declared.is_address else [secret]
        return secrets

    def resolve_session_settings(
        self, settings: dict[str, Any] | None, *, required: bool = True
    ) -> SessionSettings | None:
        """Return the settings of a chat call: the given ones replace the connection's as a whole.

        None with a service token, whose claims name the user; the connection's settings are not
        sent then. Raises PlatformInputError for settings given with a service token, because they
        would name another user than the token does, and, if settings are `required`, where an API
        key is used and neither the call nor the connection has any.
        """
        if self.chat_service_token is not None:
            if settings:
                raise PlatformInputError(
                    "Nothing was sent: the service would ignore session_settings. Chat service "
                    f"token (chat_service_token) of {self.place} already names the user. Leave "
                    "session_settings out, or use a connection with Chat API key (chat_api_key).",
                    field="session_settings",
                )
            return None
        if settings is not None:
            return session_settings(settings)
        if self.session_settings is None and required:
            raise PlatformInputError(
                "Nothing was sent: the user of the chat is missing, and an API key alone does "
                "not name a user. Set externalId or internalId in session_settings of the task, "
                f"or in Session settings (session_settings) of {self.place}.",
                field="session_settings",
            )
        return self.session_settings

    def settings_of_identity(self, identity: dict[str, str]) -> SessionSettings | None:
        """Return the settings that name the user of an earlier call (see `chat_identity`); None
        where the connection uses a service token by now."""
        return None if self.chat_service_token is not None else session_settings(identity)

    def resolve_deployment_id(self, value: int | str | None = None) -> int:
        """The given deployment, else the connection's. Raises PlatformInputError."""
        deployment_id = self.deployment_id if value is None else check_deployment_id(value)
        if deployment_id is None:
            raise PlatformInputError(
                "Nothing was sent: deployment_id is missing. Set it in the task, or as "
                f"Deployment id (deployment_id) in {self.place}.",
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

    def web_addresses(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return the known web addresses, by the keys of `web_links`, and that of the platform as
        "". `values` are the ids of what they show. A file that is at a web address is its own
        address."""
        by_name = self.agent or values.get("agent")
        agent_id = None if by_name else agent_in(self.chat_url)
        known = {"deployment_id": self.deployment_id, "agent_id": agent_id, **values}
        addresses = fill_patterns(self.web_links or {}, known)
        if self.management_url:
            addresses[""] = self.management_url.removesuffix("/api")
        path = str(values.get("path") or "")
        if path.startswith(("https://", "http://")):
            addresses["file"] = path
        return addresses

    def same_endpoints(self, other: PlatformConfig) -> bool:
        """Whether the other configuration differs in credentials, and in links for people, only."""
        others = {"web_links"} | {
            name
            for name, declared in self.declared().items()
            if declared.kind == "secret" and not declared.is_address
        }
        return self.model_dump(exclude=others) == other.model_dump(exclude=others)


def fingerprint(*parts: object) -> str:
    """SHA-256 over plain JSON values, the same in every process."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
