"""Environments of a deployment, how each is reached, and tokens for them.

The service spells this resource's fields in snake_case.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, SecretStr

from airflow_provider_platform.client.operations.models import InputModel, ResponseModel
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import OffsetPageQuery, Page


class _AsSpelled(ResponseModel):
    model_config = ConfigDict(alias_generator=None)


class DeploymentEnvironmentApiCredential(ResponseModel):
    """Where an environment answers, by kind of API."""

    type: str | None = None
    version: int | None = None
    database: str | None = None
    host: str | None = None
    port: int | None = None
    url: str | None = None


class DeploymentEnvironment(_AsSpelled):
    """An environment of a deployment."""

    id: str
    type: str | None = None
    api_credentials: list[DeploymentEnvironmentApiCredential] | None = None
    branch: str | None = None
    user: str | None = None


class DeploymentEnvironmentToken(_AsSpelled):
    """A token for an environment."""

    token: SecretStr
    security_context: dict[str, Any] | None = None
    created_at: str | None = None
    expires_at: str | None = None


class CreatedDeploymentEnvironmentToken(DeploymentEnvironmentToken):
    """A token that was just signed, with the scopes that were."""

    scopes: list[str] | None = None


class DeploymentEnvironmentTokenResponse(ResponseModel):
    """The answer to a token request."""

    data: CreatedDeploymentEnvironmentToken


class CreateDeploymentEnvironmentTokenInput(InputModel):
    """What to sign; `expires_in` in seconds. The service drops scopes that the caller lacks."""

    model_config = ConfigDict(alias_generator=None)

    security_context: dict[str, Any]
    expires_in: int | None = Field(default=None, ge=1, le=3600)
    scopes: list[str] | None = None


class EnvironmentsQuery(OffsetPageQuery):
    """Which environments."""

    type: Literal["production", "staging", "development"] | None = None


_ENVIRONMENTS = "/v1/deployments/{deploymentId}/environments"
_TOKENS = _ENVIRONMENTS + "/{environmentId}/tokens"


@endpoint("GET", _ENVIRONMENTS, operation_id="getDeploymentEnvironments")
def list_environments(
    *, deployment_id: DeploymentId = None, query: EnvironmentsQuery | None = None
) -> Page[DeploymentEnvironment]:
    """The environments of a deployment and where they answer."""


@endpoint("GET", _TOKENS, operation_id="getDeploymentEnvironmentTokens")
def list_environment_tokens(
    *,
    environment_id: int | str,
    deployment_id: DeploymentId = None,
    query: OffsetPageQuery | None = None,
) -> Page[DeploymentEnvironmentToken]:
    """The tokens that the caller made for an environment; each token is a SecretStr."""


@endpoint("POST", _TOKENS, operation_id="createDeploymentEnvironmentToken")
def create_environment_token(
    *,
    environment_id: int | str,
    body: CreateDeploymentEnvironmentTokenInput,
    deployment_id: DeploymentId = None,
) -> DeploymentEnvironmentTokenResponse:
    """A token for an environment, as a SecretStr in `data.token`; lives `expires_in` seconds.

    At most 3600. `data.scopes` says what was signed."""


@endpoint(
    "POST", f"{_TOKENS}-for-meta-sync", operation_id="createDeploymentEnvironmentTokenForMetaSync"
)
def create_meta_sync_token(
    *,
    environment_id: int | str,
    body: CreateDeploymentEnvironmentTokenInput,
    deployment_id: DeploymentId = None,
) -> DeploymentEnvironmentTokenResponse:
    """A token that may read an environment's metadata, as a SecretStr in `data.token`."""
