"""Who a chat session acts as: the `sessionSettings` of chat requests and their rules."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.argument_rules import (
    check_timezone,
    is_absent,
    read_boolean,
    read_json_string,
)
from airflow_provider_platform.client.models import InputModel

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

    external_id: str | None = None
    internal_id: str | None = None
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
    not. Raises PlatformInputError."""
    present = {
        name: value for name, value in values.items() if not is_absent(value) and value != {}
    }
    return SessionSettings.of(present)
