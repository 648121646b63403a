"""Deployments: how they are set up, whether a branch is built, and tokens for their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ConfigDict, SecretStr

from airflow_provider_platform.client.connection_fields import data_address
from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


class Deployment(ResponseModel):
    """A deployment; its data API answers below `deployment_url`."""

    id: int
    name: str | None = None
    deployment_url: str | None = None


class DeploymentSettings(ResponseModel):
    """How a deployment is set up; `deploy_branch_name` is its production branch."""

    deploy_branch_name: str | None = None
    deploy_branch_merge_allowed: bool | None = None
    deploy_mode: str | None = None


class BuildStatusResponse(ResponseModel):
    """Whether a branch is built; `error_text` can say why it never will be, whatever `status`."""

    status: str
    branch_name: str | None = None
    mode: str | None = None
    error_text: str | None = None
    files_hash: str | None = None
    last_hash: str | None = None


class DeploymentTokenResponse(ResponseModel):
    """A token (JWT) for the deployment's data API, sent there without a scheme."""

    cube_api_token: SecretStr


class EnvironmentCredential(ResponseModel):
    """Where an environment answers, by kind of API."""

    type: str | None = None
    url: str | None = None


class DeploymentEnvironment(ResponseModel):
    """An environment of a deployment, and where it answers. The service spells these fields in
    snake_case."""

    model_config = ConfigDict(alias_generator=None)

    branch: str | None = None
    api_credentials: list[EnvironmentCredential] | None = None


list_environments = typed("getDeploymentEnvironments", Page[DeploymentEnvironment])
list_deployments = typed("getDeployments", Page[Deployment])
get_deployment = typed("getDeployment", Deployment)
get_deployment_settings = typed("getDeploymentSettings", DeploymentSettings)
get_build_status = typed("buildStatus", BuildStatusResponse)
create_deployment_token = typed("deploymentToken", DeploymentTokenResponse)


async def data_api_base(
    api: Api, deployment_id: int, *, deadline: float | None, where: object
) -> str:
    """Return the base of a deployment's data API address, by the management API. `where` ends the
    message of errors. Raises PlatformError."""
    operation = get_deployment(deployment_id=deployment_id)
    deployment = await api.call(operation, deadline=deadline)
    if not deployment.deployment_url:
        raise PlatformProtocolError(
            "The service did not return the deployment's data API address. Set Data API address "
            "(data_api_url) in the connection.",
            where=where,
        )
    return data_address(
        deployment.deployment_url, field="deploymentUrl", allow_http=api.config.allow_http
    )
