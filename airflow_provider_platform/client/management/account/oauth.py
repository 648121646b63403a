"""OAuth: integrations with outside services, and the tokens that users have given for them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from airflow_provider_platform.client.operations.models import (
    NEVER_NULL,
    InputModel,
    InputSecret,
    JsonObject,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import endpoint
from airflow_provider_platform.client.operations.paging import Page


class UserOAuthToken(ResponseModel):
    """A user's token for an integration. `status` is free text; `last_error` may be anything."""

    id: int
    user_id: int
    integration_id: int
    status: str
    created_at: Timestamp
    updated_at: Timestamp
    access_token_expires_at: Timestamp | None = None
    last_error: Any = None
    refresh_token_expires_at: Timestamp | None = None


class OAuthIntegration(ResponseModel):
    """An integration with an outside service."""

    id: int
    name: str | None = None
    type: str | None = None
    auth_url: str | None = None
    token_url: str | None = None
    client_id: str | None = None
    redirect_uri: str | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    config: JsonObject | None = None
    scopes: list[Any] | None = None


class OAuthIntegrationInput(InputModel):
    """What an integration is made of."""

    name: str = Field(min_length=1)
    type: str = Field(min_length=1)
    auth_url: str = Field(min_length=1)
    token_url: str = Field(min_length=1)
    client_id: str = Field(min_length=1)
    redirect_uri: str = Field(min_length=1)
    config: Annotated[dict[str, Any] | None, NEVER_NULL] = Field(default=None, repr=False)
    scopes: Annotated[list[str] | None, NEVER_NULL] = None


class CreateOAuthIntegrationInput(OAuthIntegrationInput):
    """An integration to create."""

    client_secret: InputSecret


class UpdateOAuthIntegrationInput(OAuthIntegrationInput):
    """An integration as it shall be; without `client_secret` the stored one stays."""

    client_secret: InputSecret | None = None


_INTEGRATIONS = "/v1/oauth-integrations"
_INTEGRATION = _INTEGRATIONS + "/{id}"
_TOKENS = "/v1/user-oauth-tokens"
_TOKEN = _TOKENS + "/{integrationId}"
_MANAGE = "OAuthIntegrationsManage"
_ISSUE = "OAuthIntegrationsIssueTokens"


@endpoint("GET", _INTEGRATIONS, operation_id="listOAuthIntegrations", permission=_MANAGE)
def list_oauth_integrations() -> Page[OAuthIntegration]:
    """The OAuth integrations of the account."""


@endpoint("POST", _INTEGRATIONS, operation_id="createOAuthIntegration", permission=_MANAGE)
def create_oauth_integration(*, body: CreateOAuthIntegrationInput) -> OAuthIntegration:
    """Create an OAuth integration; `client_secret` is a SecretStr or text."""


@endpoint("GET", _INTEGRATION, operation_id="getOAuthIntegration", permission=_MANAGE)
def get_oauth_integration(*, integration_id: int | str) -> OAuthIntegration:
    """One OAuth integration."""


@endpoint("PUT", _INTEGRATION, operation_id="updateOAuthIntegration", permission=_MANAGE)
def update_oauth_integration(
    *, integration_id: int | str, body: UpdateOAuthIntegrationInput
) -> OAuthIntegration:
    """Write an OAuth integration anew; without `client_secret` the stored one stays."""


@endpoint("DELETE", _INTEGRATION, operation_id="deleteOAuthIntegration", permission=_MANAGE)
def delete_oauth_integration(*, integration_id: int | str) -> None:
    """Delete an OAuth integration."""


@endpoint("GET", _TOKENS, operation_id="listUserOAuthTokens", permission=_ISSUE)
def list_user_oauth_tokens() -> Page[UserOAuthToken]:
    """The tokens that users have given for OAuth integrations; `status` is free text."""


@endpoint("GET", _TOKEN, operation_id="getUserOAuthToken", permission=_ISSUE)
def get_user_oauth_token(*, integration_id: int | str) -> UserOAuthToken:
    """The caller's token for an integration. Raises PlatformNotFoundError without one."""


@endpoint("DELETE", _TOKEN, operation_id="revokeUserOAuthToken", permission=_ISSUE)
def revoke_user_oauth_token(*, integration_id: int | str) -> None:
    """Give up the caller's token for an integration."""


@endpoint("POST", f"{_TOKEN}/initiate", operation_id="initiateOAuthFlow", permission=_ISSUE)
def initiate_oauth_flow(*, integration_id: int | str) -> None:
    """Start the authorization of an integration for the caller."""
