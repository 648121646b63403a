"""OAuth tokens of users."""

from __future__ import annotations

from airflow_provider_platform.client.models import ResponseModel, Timestamp
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page


class UserOAuthToken(ResponseModel):
    """A user's token for an integration. `status` is free text."""

    user_id: int
    integration_id: int
    status: str
    access_token_expires_at: Timestamp | None = None
    refresh_token_expires_at: Timestamp | None = None


list_user_oauth_tokens = typed("listUserOAuthTokens", Page[UserOAuthToken])
