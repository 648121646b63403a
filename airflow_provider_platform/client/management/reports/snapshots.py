"""Report snapshots: a report as it was when a dashboard with it was published."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.operations.models import JsonObject, ResponseModel


class FillMissingRows(ResponseModel):
    """How gaps of a time series are filled."""

    member: str
    excluded_dimensions: list[str] | None = None


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
    period_comparisons: list[JsonObject] | None = None
    preferences: JsonObject | None = None
    public_id: str | None = None
    python_code: str | None = None
    spec: Any = None
    sql_query: str | None = None
    title: str | None = None
