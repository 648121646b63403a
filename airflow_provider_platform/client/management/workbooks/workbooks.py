"""Workbooks and their published dashboards: the fields that publishing reads."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import JsonObject, ResponseModel
from airflow_provider_platform.client.operations.operation import typed


class Dashboard(ResponseModel):
    """A published dashboard."""

    public_id: str | None = None
    allow_embed: bool | None = None
    config: JsonObject | None = None
    version_number: int | None = None
    version_id: int | None = None
    description: str | None = None
    title: str | None = None


class Workbook(ResponseModel):
    """A workbook; older releases report neither the draft nor what is published."""

    dashboard_draft: JsonObject | None = None
    published_dashboard: Dashboard | None = None


get_workbook = typed("getWorkbook", Workbook)
publish_workbook = typed("publishDashboard", Dashboard)
