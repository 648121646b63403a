"""Saved reports."""

from __future__ import annotations

from airflow_provider_platform.client.models import ResponseModel, Timestamp
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page


class Report(ResponseModel):
    """A report."""

    id: int
    name: str | None = None
    updated_at: Timestamp | None = None


list_reports = typed("getReports", Page[Report])
get_report = typed("getReport", Report)
