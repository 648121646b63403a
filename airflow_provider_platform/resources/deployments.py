"""Deployments: how they are set up, whether a branch is built, and tokens for their data."""

from __future__ import annotations

from pydantic import ConfigDict, SecretStr

from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page


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
