"""Workbooks: drafts of reports and dashboards, and publishing them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_platform.client.dashboard_inputs import (
    DashboardConfigDraftInput,
    DashboardConfigInput,
)
from airflow_provider_platform.client.dashboards import (
    Dashboard,
    DashboardConfig,
    WorkbookDashboard,
)
from airflow_provider_platform.client.models import AnswerModel, InputModel, Timestamp
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.ownership import ResourceOwner, WorkspaceFolderPathEntry
from airflow_provider_platform.client.paging import Page, PageQuery
from airflow_provider_platform.client.reports import CanonicalFile


class Workbook(AnswerModel):
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

    workbook_id: int
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

LIST_WORKBOOKS = Endpoint(
    operation_id="getWorkbooks",
    method="GET",
    path=_WORKBOOKS,
    query=WorkbooksQuery,
    answer=Page[Workbook],
    description="workbook list",
)
CREATE_WORKBOOK = Endpoint(
    operation_id="createWorkbook",
    method="POST",
    path=_WORKBOOKS,
    body=CreateWorkbookInput,
    body_required=True,
    answer=Workbook,
    description="workbook create",
)
UPSERT_WORKBOOK = Endpoint(
    operation_id="upsertWorkbookBySlug",
    method="PUT",
    path=_WORKBOOKS + "/by-slug/{slug}",
    body=CreateWorkbookInput,
    body_required=True,
    answer=Workbook,
    description="workbook upsert",
)
GET_WORKBOOK = Endpoint(
    operation_id="getWorkbook",
    method="GET",
    path=_WORKBOOK,
    answer=Workbook,
    description="workbook get",
    permission="WorkbookRead on the workbook",
)
UPDATE_WORKBOOK = Endpoint(
    operation_id="updateWorkbook",
    method="PUT",
    path=_WORKBOOK,
    body=UpdateWorkbookInput,
    body_required=True,
    answer=type(None),
    description="workbook update",
    permission="WorkbookEdit on the workbook",
)
DELETE_WORKBOOK = Endpoint(
    operation_id="deleteWorkbook",
    method="DELETE",
    path=_WORKBOOK,
    answer=type(None),
    description="workbook delete",
    permission="WorkbookManage on the workbook",
)
DUPLICATE_WORKBOOK = Endpoint(
    operation_id="duplicateWorkbook",
    method="POST",
    path=f"{_WORKBOOK}/duplicate",
    body=DuplicateWorkbookInput,
    body_required=True,
    answer=Workbook,
    description="workbook duplicate",
    permission="WorkbookRead on the workbook",
)
PUBLISH_DASHBOARD = Endpoint(
    operation_id="publishDashboard",
    method="POST",
    path=f"{_WORKBOOK}/publish",
    body=PublishDashboardInput,
    body_required=True,
    answer=Dashboard,
    description="dashboard publish",
    permission="WorkbookEdit on the workbook",
)
UPDATE_WORKBOOK_DASHBOARD = Endpoint(
    operation_id="updateWorkbookDashboard",
    method="PUT",
    path=f"{_WORKBOOK}/dashboard",
    body=WorkbookDashboardInput,
    body_required=True,
    answer=WorkbookDashboard,
    description="dashboard draft update",
    permission="WorkbookEdit on the workbook",
)
ATTACH_AI_WIDGET_THREAD = Endpoint(
    operation_id="updatePublishedDashboardAiWidgetThread",
    method="POST",
    path=f"{_WORKBOOK}/dashboard/ai-widget-thread",
    body=UpdatePublishedAiWidgetThreadInput,
    body_required=True,
    answer=Dashboard,
    description="AI widget thread attach",
    permission="WorkbookEdit on the workbook",
)
GET_DASHBOARD_FILE = Endpoint(
    operation_id="getWorkbookDashboardFile",
    method="GET",
    path=f"{_WORKBOOK}/dashboard/file",
    answer=CanonicalFile,
    description="dashboard file get",
    permission="WorkbookRead on the workbook",
)
