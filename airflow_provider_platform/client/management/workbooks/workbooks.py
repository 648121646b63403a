"""Workbooks: drafts of reports and dashboards, and publishing them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_platform.client.management.reports.reports import CanonicalFile
from airflow_provider_platform.client.management.shared.ownership import (
    ResourceOwner,
    WorkspaceFolderPathEntry,
)
from airflow_provider_platform.client.management.workbooks.dashboard_inputs import (
    DashboardConfigDraftInput,
    DashboardConfigInput,
)
from airflow_provider_platform.client.management.workbooks.dashboards import (
    Dashboard,
    DashboardConfig,
    WorkbookDashboard,
)
from airflow_provider_platform.client.operations.models import (
    InputModel,
    KnownId,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery


class Workbook(ResponseModel):
    """A workbook; `slug` is its name in code."""

    id: int
    name: str | None = None
    meta: dict[str, Any] | None = None
    calculated_fields: dict[str, Any] | None = None
    deployment_id: int | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    type: str | None = None
    created_by: int | None = None
    dashboard_draft: DashboardConfig | None = None
    dashboard_published: DashboardConfig | None = None
    folder_id: int | None = None
    folder_path: list[WorkspaceFolderPathEntry] | None = None
    is_favorite: bool | None = None
    promotion: dict[str, Any] | None = None
    published_dashboard: Dashboard | None = None
    slug: str | None = None
    user: ResourceOwner | None = None
    user_id: int | None = None


class CreateWorkbookInput(InputModel):
    """A workbook to create."""

    name: str | None = None
    folder_id: int | None = None
    meta: dict[str, Any] | None = None


class UpdateWorkbookInput(InputModel):
    """What to change in a workbook; `slug_takeover` takes the slug from the one that has it."""

    name: str | None = None
    folder_id: int | None = None
    meta: dict[str, Any] | None = None
    slug: str | None = None
    slug_takeover: bool | None = None


class DuplicateWorkbookInput(InputModel):
    """How to clone: `shared` clones from the shared workspace."""

    shared: bool | None = None


class PublishDashboardInput(InputModel):
    """What to publish; without `config` the saved draft."""

    workbook_id: KnownId = None
    allow_embed: bool | None = None
    config: DashboardConfigInput | None = None
    dashboard_id: int | None = None
    description: str | None = None
    title: str | None = None


class WorkbookDashboardInput(InputModel):
    """A draft to save."""

    dashboard_draft: DashboardConfigDraftInput | None = None


class UpdatePublishedAiWidgetThreadInput(InputModel):
    """The thread to attach to an AI widget of the published dashboard."""

    widget_id: str = Field(min_length=1)
    thread_id: str = Field(min_length=1)
    checksum: str | None = None


class WorkbooksQuery(PageQuery):
    """The workbooks of which folder; all when not given."""

    folder_id: int | None = Field(default=None, ge=0)


_WORKBOOKS = "/v1/deployments/{deploymentId}/workbooks"
_WORKBOOK = _WORKBOOKS + "/{workbookId}"
_READ = "WorkbookRead on the workbook"
_EDIT = "WorkbookEdit on the workbook"
_PUBLISH = "WorkbookManage on the workbook, or WorkbookEdit (the API does not document which)"


@endpoint("GET", _WORKBOOKS, operation_id="getWorkbooks")
def list_workbooks(
    *, deployment_id: DeploymentId = None, query: WorkbooksQuery | None = None
) -> Page[Workbook]:
    """Workbooks, of one folder or all."""


@endpoint("POST", _WORKBOOKS, operation_id="createWorkbook")
def create_workbook(
    *, deployment_id: DeploymentId = None, body: CreateWorkbookInput | None = None
) -> Workbook:
    """Create a workbook; not repeated when its outcome is unknown."""


@endpoint("PUT", _WORKBOOKS + "/by-slug/{slug}", operation_id="upsertWorkbookBySlug")
def upsert_workbook(
    *, slug: str, deployment_id: DeploymentId = None, body: CreateWorkbookInput | None = None
) -> Workbook:
    """Create the workbook of this slug or update it; `meta` is merged. Raises
    PlatformConflictError while another writer is at work."""


@endpoint("GET", _WORKBOOK, operation_id="getWorkbook", permission=_READ)
def get_workbook(*, workbook_id: int | str, deployment_id: DeploymentId = None) -> Workbook:
    """One workbook. Raises PlatformNotFoundError for an unknown id."""


@endpoint("PUT", _WORKBOOK, operation_id="updateWorkbook", permission=_EDIT)
def update_workbook(
    *,
    workbook_id: int | str,
    deployment_id: DeploymentId = None,
    body: UpdateWorkbookInput | None = None,
) -> None:
    """Change the given parts of a workbook; `slug_takeover` takes the slug from the workbook
    that has it. The service answers nothing: see `get_workbook`. To move it to the root see
    `move_workspace_object`. Raises PlatformConflictError for a slug that is taken."""


@endpoint(
    "DELETE", _WORKBOOK, operation_id="deleteWorkbook", permission="WorkbookManage on the workbook"
)
def delete_workbook(*, workbook_id: int | str, deployment_id: DeploymentId = None) -> None:
    """Delete a workbook."""


@endpoint("POST", f"{_WORKBOOK}/duplicate", operation_id="duplicateWorkbook", permission=_READ)
def duplicate_workbook(
    *,
    workbook_id: int | str,
    deployment_id: DeploymentId = None,
    body: DuplicateWorkbookInput | None = None,
) -> Workbook:
    """Clone a workbook, from the shared workspace with `shared`; returns the clone.

    Not repeated when its outcome is unknown. Raises PlatformBadRequestError at the limit of
    workbooks, and for a shared clone without a published dashboard."""


@endpoint("POST", f"{_WORKBOOK}/publish", operation_id="publishDashboard", permission=_PUBLISH)
def publish_workbook(
    *,
    workbook_id: int | str,
    deployment_id: DeploymentId = None,
    body: PublishDashboardInput | None = None,
) -> Dashboard:
    """Publish a workbook's dashboard: `config` (a `DashboardConfigInput` or its object), or
    the saved draft (from v0.16.0 on; before, `config` is required). Returns the published
    dashboard. Raises DashboardReviewRequiredError for one that requires review."""


@endpoint("PUT", f"{_WORKBOOK}/dashboard", operation_id="updateWorkbookDashboard", permission=_EDIT)
def update_workbook_dashboard(
    *,
    workbook_id: int | str,
    deployment_id: DeploymentId = None,
    body: WorkbookDashboardInput | None = None,
) -> WorkbookDashboard:
    """Save a draft of the dashboard, a `DashboardConfigDraftInput` or its object."""


@endpoint(
    "POST",
    f"{_WORKBOOK}/dashboard/ai-widget-thread",
    operation_id="updatePublishedDashboardAiWidgetThread",
    permission=_EDIT,
)
def attach_ai_widget_thread(
    *,
    workbook_id: int | str,
    body: UpdatePublishedAiWidgetThreadInput,
    deployment_id: DeploymentId = None,
) -> Dashboard:
    """Attach an AI thread to a widget of the published dashboard; returns the dashboard."""


@endpoint(
    "GET", f"{_WORKBOOK}/dashboard/file", operation_id="getWorkbookDashboardFile", permission=_READ
)
def get_dashboard_file(
    *, workbook_id: int | str, deployment_id: DeploymentId = None
) -> CanonicalFile:
    """The dashboard's draft as canonical JSON text."""
