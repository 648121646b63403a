"""Deployments: what there is, how it is set up, whether a branch is built, tokens for its data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SecretStr

from airflow_provider_platform.client.operations.models import (
    InputModel,
    JsonObject,
    QueryModel,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import OffsetPageQuery, Page

CreationStep = Literal["project", "upload", "schema", "github", "ssh", "databases", "ready", "demo"]


class Deployment(ResponseModel):
    """A deployment; its data API answers below `deployment_url`."""

    id: int
    name: str | None = None
    deployment_url: str | None = None
    creation_step: str | None = None


class DeploymentSettings(ResponseModel):
    """How a deployment is set up; `deploy_branch_name` is its production branch."""

    id: int
    name: str | None = None
    template: str | None = None
    cloud_provider: str | None = None
    creation_step: str | None = None
    deployment_url: str | None = None
    release_channel: str | None = None
    deploy_branch_name: str | None = None
    deploy_branch_read_only: bool | None = None
    deploy_branch_merge_allowed: bool | None = None
    deploy_project_root: str | None = None
    is_cube_sql_enabled: bool | None = None
    is_support_pre_aggregations: bool | None = None
    auto_domain: str | None = None
    creation_method: str | None = None
    csps_config: JsonObject | None = None
    cube_image_cloud: str | None = None
    cube_image_version: str | None = None
    custom_domain: str | None = None
    default_launchpad_view_group: str | None = None
    deploy_mode: str | None = None
    is_cold: bool | None = None
    is_managed: bool | None = None
    launchpad_tabs: list[str] | None = None
    region: str | None = None
    release_channel_version: str | None = None
    release_channel_version_hold: bool | None = None
    repo_type: str | None = None
    target_platform: str | None = None
    template_variables: dict[str, Any] | None = None


class BuildStatusResponse(ResponseModel):
    """Whether a branch is built; `error_text` can say why it never will be, whatever `status`."""

    status: str
    deployment_id: int | None = None
    branch_name: str | None = None
    mode: str | None = None
    build_job_id: int | None = None
    deployment_status: str | None = None
    error_text: str | None = None
    files_hash: str | None = None
    last_hash: str | None = None
    updated_at: str | None = None


class CreateDeploymentTokenInput(InputModel):
    """How long a data token lives, in seconds; a day when not given."""

    expires_in: int | None = Field(default=None, ge=60, le=86400)


class DeploymentTokenResponse(ResponseModel):
    """A token (JWT) for the deployment's data API, sent there without a scheme."""

    cube_api_token: SecretStr


class DeploymentsQuery(OffsetPageQuery):
    """Which deployments."""

    creation_step: list[CreationStep] | None = None


class BuildStatusQuery(QueryModel):
    """Which branch; the active development branch, else the production branch, when not given."""

    branch_name: str | None = Field(default=None, min_length=1)


_DEPLOYMENT = "/v1/deployments/{deploymentId}"
_READ = "DeploymentRead on the deployment"


@endpoint("GET", "/v1/deployments", operation_id="getDeployments")
def list_deployments(*, query: DeploymentsQuery | None = None) -> Page[Deployment]:
    """The deployments that the credential can see."""


@endpoint("GET", _DEPLOYMENT, operation_id="getDeployment", permission=_READ)
def get_deployment(*, deployment_id: DeploymentId = None) -> Deployment:
    """One deployment; its data API answers below `deployment_url`."""


@endpoint("GET", f"{_DEPLOYMENT}/settings", operation_id="getDeploymentSettings", permission=_READ)
def get_deployment_settings(*, deployment_id: DeploymentId = None) -> DeploymentSettings:
    """How a deployment is set up; `deploy_branch_name` is its production branch."""


@endpoint("GET", f"{_DEPLOYMENT}/build-status", operation_id="buildStatus", permission=_READ)
def get_build_status(
    *, deployment_id: DeploymentId = None, query: BuildStatusQuery | None = None
) -> BuildStatusResponse:
    """Whether a branch is built: `status` is `built`, `building`, `failed` ...

    `error_text` can say why it never will be, whatever the status."""


@endpoint("POST", f"{_DEPLOYMENT}/token", operation_id="deploymentToken", permission=_READ)
def create_deployment_token(
    *, deployment_id: DeploymentId = None, body: CreateDeploymentTokenInput | None = None
) -> DeploymentTokenResponse:
    """A token for the deployment's data API, as a SecretStr; lives `expires_in` seconds (60 to
    86400, a day by default)."""
