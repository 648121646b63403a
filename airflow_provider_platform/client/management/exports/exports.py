"""Dashboard exports: a published dashboard rendered as an image or a PDF.

A job and its file are gone five minutes after the start, and only the credential that started it
can see them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from airflow_provider_platform.client.choices import ExportFormat, ExportLayout
from airflow_provider_platform.client.management.account.user_attributes import UserAttributeInput
from airflow_provider_platform.client.management.shared.dashboard_filters import (
    DashboardFilterInput,
    DashboardMemberSwitcherInput,
    DashboardTimeGrainInput,
)
from airflow_provider_platform.client.operations.models import (
    InputModel,
    Number,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import typed
from airflow_provider_platform.client.operations.rules import Rule, exactly_one

COMPLETED = "completed"
FAILED = "failed"


class ExportSubjectInput(InputModel):
    """Whose eyes to render with: a console user (`user_id` or `email`) or an embed user. For
    administrators."""

    type: Literal["USER", "EMBED_USER"]
    user_id: int | None = None
    email: str | None = None
    embed_tenant_name: str | None = None
    external_id: str | None = None
    groups: list[str] | None = None
    security_context: dict[str, Any] | None = None
    user_attributes: list[UserAttributeInput] | None = None


class StartDashboardExportInput(InputModel):
    """What to render; `layout` `print` is a paginated PDF."""

    format: ExportFormat
    dashboard_id: int | None = None
    dashboard_public_id: str | None = None
    filters: list[DashboardFilterInput] | None = None
    time_grains: list[DashboardTimeGrainInput] | None = None
    member_switchers: list[DashboardMemberSwitcherInput] | None = None
    render_as: ExportSubjectInput | None = None
    layout: ExportLayout | None = None

    rules: ClassVar[tuple[Rule, ...]] = ((("dashboard_id", "dashboard_public_id"), exactly_one),)

    @model_validator(mode="after")
    def _print_is_pdf(self) -> Self:
        if self.layout == "print" and self.format != "pdf":
            raise ValueError("layout='print' needs format='pdf'")
        return self


class DashboardExportJobResponse(ResponseModel):
    """An export that was started, and when it is dropped."""

    job_id: str
    expires_at: Timestamp | None = None


class DashboardExportStatusResponse(ResponseModel):
    """Where an export is; `completed` and `failed` are its ends."""

    status: str
    content_type: str | None = None
    error: str | None = None
    progress: Number | None = None


start_dashboard_export = typed(
    "startExport",
    DashboardExportJobResponse,
    permission="DownloadData, and WorkbookManage on the dashboard's workbook",
)
get_dashboard_export = typed("getExportStatus", DashboardExportStatusResponse)
download_dashboard_export = typed("downloadExport", bytes)
