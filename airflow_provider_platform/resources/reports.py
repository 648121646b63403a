"""Saved reports."""

from __future__ import annotations

from airflow_provider_platform.client.models import ResponseModel, Timestamp
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page


class Placement(ResponseModel):
    """A place of a report in a spreadsheet."""

    refreshed_at: Timestamp | None = None


class Report(ResponseModel):
    """A report."""

    id: int
    name: str | None = None
    updated_at: Timestamp | None = None
    external_workbook_placements: list[Placement] | None = None


list_reports = typed("getReports", Page[Report])
get_report = typed("getReport", Report)
