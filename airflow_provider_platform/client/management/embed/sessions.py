"""Embed sessions: generate one for a user, redeem it for a token, revoke it.

A session id is a credential: who has it gets a token for it, once.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

from pydantic import Field, SecretStr, model_validator

from airflow_provider_platform.client.management.account.user_attributes import (
    UserAttributeDefinition,
    UserAttributeInput,
)
from airflow_provider_platform.client.operations.models import (
    InputModel,
    InputSecret,
    KnownId,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import ADMINISTRATOR, endpoint
from airflow_provider_platform.client.operations.rules import Rule, at_most_one

_SESSION_ID = re.compile(r"[0-9a-f]{32}")


class GroupDefinition(InputModel):
    """A group to make where it does not exist yet."""

    name: str = Field(min_length=1)
    description: str | None = None


class EmbedTenantProfile(InputModel):
    """How an embed tenant is shown."""

    display_name: str | None = None


class EmbedUserProfile(InputModel):
    """How a user is shown."""

    display_name: str | None = None
    picture: str | None = None


class EmbedSessionSettings(InputModel):
    """What the embedded pages offer; `locale` is a BCP 47 tag, `timezone` an IANA name."""

    allow_ai: bool | None = None
    allow_chat_workspace_authoring: bool | None = None
    locale: str | None = None
    show_ai_widgets: bool | None = None
    show_dashboard_chat: bool | None = None
    show_dashboard_settings: bool | None = None
    show_group_by_cube: bool | None = None
    show_member_names: bool | None = None
    show_workbook_chat: bool | None = None
    show_workbook_share: bool | None = None
    timezone: str | None = None


class GenerateSession(InputModel):
    """Who the session is for, and what it may show. The groups of an embed tenant are separate from
    the account's `groups`; they need `creator_mode` and `embed_tenant_name`."""

    deployment_id: KnownId = None
    branch_name: str | None = None
    creator_mode: bool | None = None
    email: str | None = None
    embed_tenant_name: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9-]{0,34}[a-z0-9]$")
    embed_tenant_profile: EmbedTenantProfile | None = None
    embed_theme: dict[str, Any] | None = None
    external_id: str | None = None
    groups: list[str] | None = None
    internal_id: str | None = None
    is_ephemeral: bool | None = None
    public_dashboard_id: str | None = None
    roles: list[str] | None = None
    security_context: dict[str, Any] | None = None
    settings: EmbedSessionSettings | None = None
    tenant_group_definitions: list[GroupDefinition] | None = None
    tenant_groups: list[str] | None = None
    user_attribute_definitions: list[UserAttributeDefinition] | None = None
    user_attributes: list[UserAttributeInput] | None = None
    user_profile: EmbedUserProfile | None = None

    rules: ClassVar[tuple[Rule, ...]] = ((("external_id", "internal_id"), at_most_one),)

    @model_validator(mode="after")
    def _groups_have_a_tenant(self) -> Self:
        of_tenant = self.tenant_groups is not None or self.tenant_group_definitions is not None
        if of_tenant and not (self.creator_mode and self.embed_tenant_name):
            raise ValueError(
                "tenant_groups and tenant_group_definitions need creator_mode and embed_tenant_name"
            )
        return self


class GenerateSessionResponse(ResponseModel):
    """A session; its id can be redeemed once."""

    session_id: SecretStr


class PostTokenBySessionIdInput(InputModel):
    """The session to redeem."""

    session_id: InputSecret = Field(min_length=1)


class GenerateEmbedTokenResponse(ResponseModel):
    """A token for embedded pages; it lives a day."""

    token: SecretStr


class RevokeEmbedSessionInput(InputModel):
    """The session to revoke."""

    session_id: InputSecret

    @model_validator(mode="after")
    def _is_a_session_id(self) -> Self:
        if not _SESSION_ID.fullmatch(self.session_id.get_secret_value()):
            raise ValueError("session_id must be 32 digits of 0-9 and a-f")
        return self


@endpoint(
    "POST", "/v1/embed/generate-session", operation_id="generateSession", permission=ADMINISTRATOR
)
def generate_embed_session(*, body: GenerateSession) -> GenerateSessionResponse:
    """Generate a session for a user; `session_id` is a SecretStr that can be redeemed once.

    `tenant_groups` and `tenant_group_definitions` are groups of the embed tenant and need
    `creator_mode` and `embed_tenant_name`; further fields are those of `GenerateSession`. Not
    repeated when its outcome is unknown. Raises PlatformPermissionError where the credential
    is not an administrator's or embedding is off."""


@endpoint("POST", "/v1/embed/session/token", operation_id="postTokenBySessionId")
def create_embed_token(*, body: PostTokenBySessionIdInput) -> GenerateEmbedTokenResponse:
    """Redeem a session (a SecretStr or text) for a token, a SecretStr that lives a day.

    Raises PlatformAuthenticationError for a session that is unknown or redeemed."""


@endpoint(
    "POST", "/v1/embed/session/revoke", operation_id="revokeSession", permission=ADMINISTRATOR
)
def revoke_embed_session(*, body: RevokeEmbedSessionInput) -> None:
    """Revoke a session (a SecretStr or text); one that is over already is fine."""
