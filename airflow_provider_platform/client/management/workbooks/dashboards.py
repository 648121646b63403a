"""Dashboards: what was published from a workbook, and how it is laid out."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.management.reports.snapshots import ReportSnapshot
from airflow_provider_platform.client.operations.models import ResponseModel


class DashboardWidgetPosition(ResponseModel):
    """Where a widget is on the grid."""

    x: int | None = None
    y: int | None = None
    w: int | None = None
    h: int | None = None


class DashboardResponsiveLayouts(ResponseModel):
    """Where a widget is, per width of the screen."""

    lg: DashboardWidgetPosition | None = None
    md: DashboardWidgetPosition | None = None
    sm: DashboardWidgetPosition | None = None
    xs: DashboardWidgetPosition | None = None
    xxs: DashboardWidgetPosition | None = None


class DashboardWidget(ResponseModel):
    """One widget; what `config` holds depends on `type`."""

    id: str | None = None
    type: str | None = None
    position: DashboardWidgetPosition | None = None
    config: dict[str, Any] | None = None
    responsive_layouts: DashboardResponsiveLayouts | None = None
    style: dict[str, Any] | None = None


class DashboardBreakpoints(ResponseModel):
    """The widths of the screen at which the layout changes."""

    lg: int | None = None
    md: int | None = None
    sm: int | None = None
    xs: int | None = None
    xxs: int | None = None


class DashboardBreakpointCols(ResponseModel):
    """Columns of the grid, per width of the screen."""

    lg: int | None = None
    md: int | None = None
    sm: int | None = None
    xs: int | None = None
    xxs: int | None = None


class DashboardLayout(ResponseModel):
    """The grid of a dashboard."""

    breakpoints: DashboardBreakpoints | None = None
    cols: DashboardBreakpointCols | None = None
    container_padding: list[int] | None = None
    margin: list[int] | None = None
    row_height: int | None = None


class DashboardAppManifest(ResponseModel):
    """What a dashboard app depends on."""

    dependencies: dict[str, str] | None = None
    version: int | None = None


class DashboardAppSource(ResponseModel):
    """The source of a dashboard that is an app."""

    entry: str | None = None
    files: dict[str, str] | None = None
    html: str | None = None
    manifest: DashboardAppManifest | None = None


class DashboardConfig(ResponseModel):
    """What a dashboard shows and how."""

    app: DashboardAppSource | None = None
    description: str | None = None
    kind: str | None = None
    layout: DashboardLayout | None = None
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
