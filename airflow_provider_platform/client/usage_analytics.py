"""Usage analytics: a token for the account's own usage data."""

from __future__ import annotations

from pydantic import SecretStr

from airflow_provider_platform.client.models import AnswerModel
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.policies import ADMINISTRATOR


class UsageAnalyticsTokenResponse(AnswerModel):
    """A token (an hour) for the data API at `api_url`."""

    token: SecretStr
    api_url: str | None = None
    deployment_id: int | None = None
    expires_at: str | None = None


CREATE_USAGE_ANALYTICS_TOKEN = Endpoint(
    operation_id="createToken",
    method="POST",
    path="/v1/usage-analytics/token",
    answer=UsageAnalyticsTokenResponse,
    description="usage analytics token create",
    permission=ADMINISTRATOR,
)
