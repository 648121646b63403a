"""The tokens that users have given for OAuth integrations."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import ResponseModel
from airflow_provider_platform.client.operations.operation import typed
from airflow_provider_platform.client.operations.paging import Page


class UserOAuthToken(ResponseModel):
    """A user's token for an integration. `status` is free text."""

    user_id: int
    integration_id: int
    status: str


list_user_oauth_tokens = typed("listUserOAuthTokens", Page[UserOAuthToken])
