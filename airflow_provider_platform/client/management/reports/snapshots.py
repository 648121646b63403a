"""Report snapshots: a report as it was when a dashboard with it was published."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.operations.models import ResponseModel


class FillMissingRows(ResponseModel):
    """How gaps of a time series are filled."""

    member: str
    excluded_dimensions: list[str] | None = None


class PeriodComparisonOffset(ResponseModel):
    """How far back a comparison looks."""

    amount: int | None = None
    unit: str | None = None


class PeriodComparison(ResponseModel):
    """A comparison of a measure with an earlier period."""

    measure: str | None = None
    time_dimension: str | None = None
    offset: PeriodComparisonOffset | None = None
    outputs: list[str] | None = None


class ColumnFormatOverride(ResponseModel):
    """How a column is shown."""

    type: str | None = None
    decimal_places: int | None = None


class ReportSnapshotPreferences(ResponseModel):
    """How a snapshot is shown."""

    column_formats: dict[str, ColumnFormatOverride] | None = None


class ReportSnapshot(ResponseModel):
    """One version of a report on a dashboard; `spec` is its chart."""

    id: int | None = None
    report_id: int | None = None
    version_number: int | None = None
    description: str | None = None
    fill_missing_rows: FillMissingRows | None = None
    is_source_report: bool | None = None
    kind: str | None = None
    meta: dict[str, Any] | None = None
    name: str | None = None
    period_comparisons: list[PeriodComparison] | None = None
    preferences: ReportSnapshotPreferences | None = None
    public_id: str | None = None
    python_code: str | None = None
    spec: Any = None
    sql_query: str | None = None
    title: str | None = None
