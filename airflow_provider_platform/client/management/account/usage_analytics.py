"""Usage analytics: a token for the account's own usage data."""

from __future__ import annotations

from pydantic import SecretStr

from airflow_provider_platform.client.operations.models import ResponseModel
from airflow_provider_platform.client.operations.operation import ADMINISTRATOR, endpoint


class UsageAnalyticsTokenResponse(ResponseModel):
    """A token (an hour) for the data API at `api_url`."""

    token: SecretStr
    api_url: str | None = None
    deployment_id: int | None = None
    expires_at: str | None = None


@endpoint("POST", "/v1/usage-analytics/token", operation_id="createToken", permission=ADMINISTRATOR)
def create_usage_analytics_token() -> UsageAnalyticsTokenResponse:
    """A token (an hour, a SecretStr) for the usage data of the account at `api_url`. Raises
    PlatformNotFoundError where usage analytics is off."""
