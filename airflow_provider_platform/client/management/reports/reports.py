"""Reports: saved queries with their layout, and where they were placed in spreadsheets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from airflow_provider_platform.client.management.reports.placements import (
    ConnectReportToWorkbookInput,
    DisconnectReportFromWorkbookInput,
    RefreshReportInput,
    ReportPlacement,
    ReportPlacementResultChecksumInput,
    SpreadsheetHost,
)
from airflow_provider_platform.client.management.shared.ownership import (
    ResourceOwner,
    WorkspaceFolderPathEntry,
)
from airflow_provider_platform.client.operations.models import (
    InputModel,
    JsonObject,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery

ReportSource = Literal["GOOGLE_SHEETS", "EXCEL", "PLAYGROUND", "D3"]
ReportSortBy = Literal["name", "createdAt", "updatedAt", "lastViewedAt"]
SortDirection = Literal["ASC", "DESC"]


class PivotItemsInput(InputModel):
    """How a report's result shall be laid out; the four lists hold names of members."""

    columns: list[str]
    measures: list[str]
    rows: list[str]
    filters: list[str]
    display_scale: Literal["model", "absolute", "thousands", "millions", "billions"] | None = None
    measures_axis: Literal["columns", "rows"] | None = None
    measures_position: Literal["before", "after"] | None = None
    show_applied_filters: bool | None = None
    show_column_totals: bool | None = None
    show_row_totals: bool | None = None


class Report(ResponseModel):
    """A report; `external_workbook_placements` are its places in external spreadsheets."""

    id: int
    public_id: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    type: str | None = None
    deployment_id: int | None = None
    workbook_id: int | None = None
    folder_id: int | None = None
    folder_path: list[WorkspaceFolderPathEntry] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    created_by: int | None = None
    user_id: int | None = None
    user: ResourceOwner | None = None
    refreshed_by: int | None = None
    refreshed_by_user: ResourceOwner | None = None
    can_edit: bool | None = None
    can_manage: bool | None = None
    roles_with_access: list[JsonObject] | None = None
    external_workbook_id: str | None = None
    external_workbook_placements: list[ReportPlacement] | None = None
    result_location: str | None = None
    end_result_cell: str | None = None
    current_query_checksum: str | None = None
    json_query: str | None = None
    sql_query: str | None = None
    pivot_items: JsonObject | None = None
    source: str | None = None
    meta: dict[str, Any] | None = None
    version: int | None = None


class ReportInput(InputModel):
    """What creating and updating a report have in common; `json_query` is JSON as text."""

    name: str | None = Field(default=None, max_length=255)
    title: str | None = Field(default=None, max_length=255)
    public_id: str | None = Field(default=None, pattern=r"^[0-9A-Za-z]{12}$")
    folder_id: int | None = None
    workbook_id: int | None = None
    json_query: str | None = None
    sql_query: str | None = None
    pivot_items: PivotItemsInput | None = None
    meta: dict[str, Any] | None = None
    external_workbook_id: str | None = None
    workbook_name: str | None = None
    result_location: str | None = None
    end_result_cell: str | None = None
    sheet_id: str | None = None
    result_checksum: ReportPlacementResultChecksumInput | None = None
    host: SpreadsheetHost | None = None


class CreateReportInput(ReportInput):
    """A report to create."""

    source: ReportSource | None = None


class UpdateReportInput(ReportInput):
    """What to change in a report; a stale `expected_version` is answered with 409."""

    placement_id: str | None = None
    expected_version: int | None = None


class ReportsQuery(PageQuery):
    """Which reports, in which order; sorted by `lastViewedAt` they cannot be paged by cursor."""

    workbook_id: int | None = None
    folder_id: int | None = None
    external_workbook_id: str | None = None
    search: str | None = None
    sort_by: ReportSortBy | None = None
    sort_direction: SortDirection | None = None
    page: int | None = Field(default=None, ge=0)
    limit: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_way(self) -> ReportsQuery:
        by_number = {"page", "limit"} & self.model_fields_set
        by_cursor = {"first", "after"} & self.model_fields_set
        if by_cursor and by_number:
            raise ValueError("the arguments first and after cannot be combined with page and limit")
        if by_cursor and not self.cursor_allowed:
            raise ValueError(
                "the arguments first and after are not available with sort_by='lastViewedAt'"
            )
        return self

    @property
    def cursor_allowed(self) -> bool:
        """False with `sort_by` `lastViewedAt`."""
        return self.sort_by != "lastViewedAt"


class CanonicalFile(ResponseModel):
    """A definition as canonical JSON text, and that text's SHA-256."""

    content: str
    hash: str | None = None


_REPORTS = "/v1/deployments/{deploymentId}/reports"
_REPORT = _REPORTS + "/{reportId}"
_READ = "ReportRead on the report"


@endpoint("GET", _REPORTS, operation_id="getReports")
def list_reports(
    *, deployment_id: DeploymentId = None, query: ReportsQuery | None = None
) -> Page[Report]:
    """Reports, page by page; `first` is the page size, which `sort_by` `lastViewedAt` has not.

    Raises PlatformInputError, PlatformApiError, PlatformProtocolError."""


@endpoint("POST", _REPORTS, operation_id="createReport")
def create_report(
    *, deployment_id: DeploymentId = None, body: CreateReportInput | None = None
) -> Report:
    """Create a report from the fields of `CreateReportInput`, in snake_case.

    Not repeated when its outcome is unknown; `upsert_report` can be. Raises
    PlatformInputError for an unknown field or a bad value, before anything is sent."""


@endpoint("PUT", _REPORTS + "/by-public-id/{publicId}", operation_id="upsertReportByPublicId")
def upsert_report(
    *, public_id: str, deployment_id: DeploymentId = None, body: CreateReportInput | None = None
) -> Report:
    """Create the report of this public id (12 letters and digits) or update it, from the fields
    of `CreateReportInput`. Raises PlatformConflictError, also while another writer is at
    work."""


@endpoint("GET", _REPORT, operation_id="getReport", permission=_READ)
def get_report(*, report_id: int | str, deployment_id: DeploymentId = None) -> Report:
    """One report. Raises PlatformNotFoundError for an unknown id or deployment."""


@endpoint("PUT", _REPORT, operation_id="updateReport", permission="ReportEdit on the report")
def update_report(
    *,
    report_id: int | str,
    deployment_id: DeploymentId = None,
    body: UpdateReportInput | None = None,
) -> Report:
    """Change the given fields of a report (those of `UpdateReportInput`, in snake_case).

    Raises PlatformConflictError where `expected_version` is not the stored one."""


@endpoint("DELETE", _REPORT, operation_id="deleteReport", permission="ReportManage on the report")
def delete_report(*, report_id: int | str, deployment_id: DeploymentId = None) -> None:
    """Delete a report."""


@endpoint("PUT", f"{_REPORT}/refresh", operation_id="refreshReport", permission=_READ)
def refresh_report(
    *,
    report_id: int | str,
    deployment_id: DeploymentId = None,
    body: RefreshReportInput | None = None,
) -> Report:
    """Record that a placement was refreshed; it is told by the fields of `RefreshReportInput`.

    It writes no cells. Returns the report."""


@endpoint(
    "PUT", f"{_REPORT}/connect-workbook", operation_id="connectReportToWorkbook", permission=_READ
)
def connect_report(
    *, report_id: int | str, body: ConnectReportToWorkbookInput, deployment_id: DeploymentId = None
) -> Report:
    """Record that a report lies in a spreadsheet of one's own, from `result_location` (as
    `Sheet1!A1`) to `end_result_cell`; further fields are those of
    `ConnectReportToWorkbookInput`.

    It records an address and writes no cells; read access to the report is enough. Returns
    the report with its placements."""


@endpoint(
    "DELETE",
    f"{_REPORT}/connect-workbook",
    operation_id="disconnectReportFromWorkbook",
    permission=_READ,
)
def disconnect_report(
    *,
    report_id: int | str,
    deployment_id: DeploymentId = None,
    body: DisconnectReportFromWorkbookInput | None = None,
) -> Report:
    """Forget a placement, told by the fields of `DisconnectReportFromWorkbookInput`; one that
    is not there is fine. Returns the report."""


@endpoint("GET", f"{_REPORT}/file", operation_id="getReportFile", permission=_READ)
def get_report_file(*, report_id: int | str, deployment_id: DeploymentId = None) -> CanonicalFile:
    """The report's definition as canonical JSON text."""
