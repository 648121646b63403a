"""Embedding of a dashboard: whether it may be embedded, and which embed users may see it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from airflow_provider_platform.client.management.workbooks.dashboards import Dashboard
from airflow_provider_platform.client.management.workbooks.workbooks import Workbook
from airflow_provider_platform.client.operations.models import InputModel, JsonObject, ResponseModel
from airflow_provider_platform.client.operations.operation import (
    ADMINISTRATOR,
    DeploymentId,
    endpoint,
)
from airflow_provider_platform.client.operations.paging import Page, PageQuery


class EmbedAccessResponse(ResponseModel):
    """Who may see a dashboard embedded."""

    allow_embed: bool | None = None
    all_embed_users: JsonObject | None = None
    tenants: list[JsonObject] | None = None


class UpdateEmbedAccessInput(InputModel):
    """What to change: embedding as such, or the `action` of one target (an embed tenant, or with
    `all_embed_users` everyone)."""

    allow_embed: bool | None = None
    action: Literal["read", "none"] | None = None
    embed_tenant_name: str | None = None
    all_embed_users: bool | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.embed_tenant_name is not None and self.all_embed_users:
            raise ValueError("give only one of embed_tenant_name and all_embed_users")
        targeted = self.embed_tenant_name is not None or bool(self.all_embed_users)
        if targeted != (self.action is not None):
            raise ValueError("action needs one of embed_tenant_name and all_embed_users")
        if self.allow_embed is None and not targeted:
            raise ValueError(
                "contains no change: give allow_embed, or action with embed_tenant_name or "
                "all_embed_users"
            )
        return self


class DashboardEmbeddingResponse(ResponseModel):
    """Whether a dashboard may be embedded."""

    public_id: str | None = None
    allow_embed: bool | None = None


class UpdateDashboardEmbeddingInput(InputModel):
    """Whether a dashboard may be embedded."""

    allow_embed: bool


class EmbedTenantWorkbooksQuery(PageQuery):
    """The workbooks that a tenant may see, by where that comes from; all when not given."""

    access_source: Literal["tenant", "allEmbedUsers", "folder"] | None = None


_DEPLOYMENT = "/v1/deployments/{deploymentId}"
_ACCESS = _DEPLOYMENT + "/workbooks/{workbookId}/embed-access"
_DASHBOARD = "/v1/embed/dashboard/{publicId}"


@endpoint("GET", _ACCESS, operation_id="getEmbedAccess")
def get_embed_access(
    *, workbook_id: int | str, deployment_id: DeploymentId = None
) -> EmbedAccessResponse:
    """Who may see the workbook's dashboard embedded."""


@endpoint("PUT", _ACCESS, operation_id="updateEmbedAccess")
def update_embed_access(
    *,
    workbook_id: int | str,
    deployment_id: DeploymentId = None,
    body: UpdateEmbedAccessInput | None = None,
) -> EmbedAccessResponse:
    """Allow embedding, or change what an embed tenant or all embed users may do."""


@endpoint(
    "GET",
    _DEPLOYMENT + "/embed-tenants/{embedTenantName}/workbooks",
    operation_id="listEmbedTenantWorkbooks",
    permission=ADMINISTRATOR,
)
def list_embed_tenant_workbooks(
    *,
    embed_tenant_name: str,
    deployment_id: DeploymentId = None,
    query: EmbedTenantWorkbooksQuery | None = None,
) -> Page[Workbook]:
    """The workbooks that an embed tenant may see."""


@endpoint(
    "GET",
    _DASHBOARD,
    operation_id="getDashboard",
    permission="access to the dashboard (embedding must be allowed for the dashboard)",
)
def get_embed_dashboard(*, public_id: str) -> Dashboard:
    """A dashboard that may be embedded. Raises PlatformPermissionError where it may not."""


@endpoint("PATCH", _DASHBOARD, operation_id="updateDashboardEmbedding", permission=ADMINISTRATOR)
def update_dashboard_embedding(
    *, public_id: str, body: UpdateDashboardEmbeddingInput
) -> DashboardEmbeddingResponse:
    """Allow or forbid embedding of a dashboard."""
