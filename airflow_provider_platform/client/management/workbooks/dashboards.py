"""Dashboards: what was published from a workbook, and how it is laid out."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.operations.models import JsonObject, ResponseModel


class FillMissingRows(ResponseModel):
    """How gaps of a time series are filled."""

    member: str
    excluded_dimensions: list[str] | None = None


class ReportSnapshot(ResponseModel):
    """A report as it was when a dashboard with it was published; `spec` is its chart."""

    id: int | None = None
    report_id: int | None = None
    version_number: int | None = None
    description: str | None = None
    fill_missing_rows: FillMissingRows | None = None
    is_source_report: bool | None = None
    kind: str | None = None
    meta: dict[str, Any] | None = None
    name: str | None = None
    period_comparisons: list[JsonObject] | None = None
    preferences: JsonObject | None = None
    public_id: str | None = None
    python_code: str | None = None
    spec: Any = None
    sql_query: str | None = None
    title: str | None = None


class DashboardWidget(ResponseModel):
    """One widget; what `config` holds depends on `type`."""

    id: str | None = None
    type: str | None = None
    position: JsonObject | None = None
    config: dict[str, Any] | None = None
    responsive_layouts: JsonObject | None = None
    style: dict[str, Any] | None = None


class DashboardConfig(ResponseModel):
    """What a dashboard shows and how."""

    app: JsonObject | None = None
    description: str | None = None
    kind: str | None = None
    layout: JsonObject | None = None
    settings: dict[str, Any] | None = None
    theme: dict[str, Any] | None = None
    title: str | None = None
    widgets: list[DashboardWidget] | None = None


class Dashboard(ResponseModel):
    """A published dashboard and the versions of the reports on it."""

    id: int | None = None
    public_id: str | None = None
    deployment_id: int | None = None
    workbook_id: int | None = None
    status: str | None = None
    allow_embed: bool | None = None
    config: DashboardConfig | None = None
    version_number: int | None = None
    version_id: int | None = None
    report_snapshots: list[ReportSnapshot] | None = None
    created_by: int | None = None
    description: str | None = None
    from_shared_workspace: bool | None = None
    restrict_data_download: bool | None = None
    title: str | None = None
    use_board_dashboards: bool | None = None


class WorkbookDashboard(ResponseModel):
    """A workbook's dashboard: the draft and what is published."""

    dashboard_draft: DashboardConfig | None = None
    dashboard_published: DashboardConfig | None = None
