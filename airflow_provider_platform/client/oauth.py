"""OAuth: integrations with outside services, and the tokens that users have given for them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_platform.client.models import (
    AnswerModel,
    InputModel,
    InputSecret,
    SecretJson,
    Timestamp,
)
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.paging import Page


class UserOAuthToken(AnswerModel):
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


class OAuthIntegration(AnswerModel):
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
    config: SecretJson | None = None
    scopes: list[Any] | None = None


class OAuthIntegrationInput(InputModel):
    """What an integration is made of."""

    name: str = Field(min_length=1)
    type: str = Field(min_length=1)
    auth_url: str = Field(min_length=1)
    token_url: str = Field(min_length=1)
    client_id: str = Field(min_length=1)
    redirect_uri: str = Field(min_length=1)
    config: dict[str, Any] | None = Field(default=None, repr=False)
    scopes: list[str] | None = None


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

LIST_OAUTH_INTEGRATIONS = Endpoint(
    operation_id="listOAuthIntegrations",
    method="GET",
    path=_INTEGRATIONS,
    answer=Page[OAuthIntegration],
    description="OAuth integration list",
    permission=_MANAGE,
)
CREATE_OAUTH_INTEGRATION = Endpoint(
    operation_id="createOAuthIntegration",
    method="POST",
    path=_INTEGRATIONS,
    body=CreateOAuthIntegrationInput,
    body_required=True,
    answer=OAuthIntegration,
    description="OAuth integration create",
    permission=_MANAGE,
)
GET_OAUTH_INTEGRATION = Endpoint(
    operation_id="getOAuthIntegration",
    method="GET",
    path=_INTEGRATION,
    answer=OAuthIntegration,
    description="OAuth integration get",
    permission=_MANAGE,
)
UPDATE_OAUTH_INTEGRATION = Endpoint(
    operation_id="updateOAuthIntegration",
    method="PUT",
    path=_INTEGRATION,
    body=UpdateOAuthIntegrationInput,
    body_required=True,
    answer=OAuthIntegration,
    description="OAuth integration update",
    permission=_MANAGE,
)
DELETE_OAUTH_INTEGRATION = Endpoint(
    operation_id="deleteOAuthIntegration",
    method="DELETE",
    path=_INTEGRATION,
    answer=type(None),
    description="OAuth integration delete",
    permission=_MANAGE,
)
LIST_USER_OAUTH_TOKENS = Endpoint(
    operation_id="listUserOAuthTokens",
    method="GET",
    path=_TOKENS,
    answer=Page[UserOAuthToken],
    description="user OAuth token list",
    permission=_ISSUE,
)
GET_USER_OAUTH_TOKEN = Endpoint(
    operation_id="getUserOAuthToken",
    method="GET",
    path=_TOKEN,
    answer=UserOAuthToken,
    description="user OAuth token get",
    permission=_ISSUE,
)
REVOKE_USER_OAUTH_TOKEN = Endpoint(
    operation_id="revokeUserOAuthToken",
    method="DELETE",
    path=_TOKEN,
    answer=type(None),
    description="user OAuth token revoke",
    permission=_ISSUE,
)
INITIATE_OAUTH_FLOW = Endpoint(
    operation_id="initiateOAuthFlow",
    method="POST",
    path=f"{_TOKEN}/initiate",
    answer=type(None),
    description="OAuth flow start",
    permission=_ISSUE,
)
