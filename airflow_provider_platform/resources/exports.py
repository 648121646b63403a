"""A dashboard export: a published dashboard rendered as an image or a PDF, from its start to its
file.

A job and its file are gone five minutes after the start, and only the credential that started it
can see them.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired

from airflow_provider_platform.client.argument_rules import given
from airflow_provider_platform.client.choices import EXPORT_LIFETIME, ExportFormat, ExportLayout
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    DashboardExportFailedError,
    PlatformApiError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.run_kind import (
    Intended,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
)
from airflow_provider_platform.resources.run_log import Stage, say

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


COMPLETED = "completed"
FAILED = "failed"


class DashboardExportJobResponse(ResponseModel):
    """An export that was started."""

    job_id: str


class DashboardExportStatusResponse(ResponseModel):
    """Where an export is; `completed` and `failed` are its ends."""

    status: str
    content_type: str | None = None
    error: str | None = None


start_dashboard_export = typed(
    "startExport",
    DashboardExportJobResponse,
    permission="DownloadData, and WorkbookManage on the dashboard's workbook",
)
get_dashboard_export = typed("getExportStatus", DashboardExportStatusResponse)
download_dashboard_export = typed("downloadExport", bytes)


_MARKS = {"pdf": b"%PDF-", "png": b"\x89PNG\r\n\x1a\n"}
"""What a file of each format has among its first bytes."""
_MARK_WITHIN = 1024


@dataclass(frozen=True)
class ExportOutcome:
    """A completed export, whose file can be downloaded for a while."""

    content_type: str | None = None


async def download(api: Api, deployment_id: int, job_id: str, file_format: str) -> bytes:
    """The file of a completed export, pdf or png. Raises DashboardExportFailedError where it is
    gone, or where what comes is no such file."""
    try:
        data = await api.call(download_dashboard_export(deployment_id=deployment_id, job_id=job_id))
    except PlatformApiError as error:
        if error.status == 404:
            raise _gone(deployment_id, job_id) from error
        if error.status in (409, 422):
            raise DashboardExportFailedError(error.reason, where=error.where) from error
        raise
    if _MARKS[file_format] not in data[:_MARK_WITHIN]:
        begins = quote_service(data[:80].decode("utf-8", "replace"))
        raise DashboardExportFailedError(
            f"No file was written: the service sent something that is not a {file_format.upper()} "
            f"file ({len(data)} bytes, beginning with {begins!r}).",
            where=_name(deployment_id, job_id),
        )
    return data


def _gone(deployment_id: int, job_id: str) -> DashboardExportFailedError:
    return DashboardExportFailedError(
        "The service no longer has the dashboard export. It keeps an export for "
        f"{EXPORT_LIFETIME:g} seconds and only for the credential that started the export. Clear "
        "the task to start a new export.",
        where=_name(deployment_id, job_id),
    )


def _name(deployment_id: int, job_id: str) -> str:
    return f"dashboard export {job_id}, deployment {deployment_id}"


class ExportIds(RunIds):
    """The ids of an export."""

    deployment_id: int
    job_id: NotRequired[str]
    written: NotRequired[dict[str, Any]]
    """The task's result, once the file is written."""


class ExportRunKind(RunKind[ExportOutcome, ExportIds]):
    """An export, with the arguments of `PlatformExportDashboardOperator`.

    The service has no operation that stops an export; it drops the export after five minutes. A
    trigger follows the export without its arguments.
    """

    id_field = "job_id"
    noun = "dashboard export"
    outcome_class = ExportOutcome
    lifetime = EXPORT_LIFETIME

    output_path: Any = ""
    format: ExportFormat = "pdf"
    dashboard_id: int | None = None
    dashboard_public_id: str | None = None
    filters: list[dict[str, Any]] | None = None
    time_grains: list[dict[str, Any]] | None = None
    member_switchers: list[dict[str, Any]] | None = None
    render_as: dict[str, Any] | None = None
    layout: ExportLayout | None = None
    deployment_id: int | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The request that starts the export."""
        return given(
            format=self.format,
            dashboardId=self.dashboard_id,
            dashboardPublicId=self.dashboard_public_id,
            filters=self.filters,
            timeGrains=self.time_grains,
            memberSwitchers=self.member_switchers,
            renderAs=self.render_as,
            layout=self.layout,
        )

    def idempotency_key(self, config: PlatformConfig) -> str:
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        path = str(self.output_path)
        return fingerprint("export", config.management_url, deployment_id, self.body, path)

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: ExportIds | None, *, until_end: bool
    ) -> ExportOutcome | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        run: ExportIds = {"deployment_id": deployment_id, "submitted_at": api.clock()}
        await api.notify(Intended(run))
        started = await api.call(
            start_dashboard_export(deployment_id=deployment_id, body=self.body)
        )
        await api.notify(RunAccepted({**run, "job_id": started.job_id}))
        say(api, f"Started dashboard export {started.job_id}")
        return None

    async def find(self, api: Api, env: RunEnvironment, ids: ExportIds) -> tuple[bool, ExportIds]:
        """Return False: the service does not report it, and a second export changes nothing."""
        return False, ids

    async def poll(self, api: Api, ids: ExportIds) -> ExportOutcome | None:
        """Poll the export. Raises DashboardExportFailedError if it failed or is gone."""
        if "written" in ids:
            return ExportOutcome()
        deployment_id, job_id = ids["deployment_id"], ids["job_id"]
        operation = get_dashboard_export(deployment_id=deployment_id, job_id=job_id)
        try:
            answer = await api.call(operation, once=True)
        except PlatformNotFoundError as error:
            raise _gone(deployment_id, job_id) from error
        api.report(Stage("Export", f"dashboard export {job_id}", answer.status))
        if answer.status == FAILED:
            said = quote_service(answer.words("error") or "no reason given").removesuffix(".")
            raise DashboardExportFailedError(
                f"The dashboard export failed: {said}.", where=self.where(ids)
            )
        return ExportOutcome(answer.content_type) if answer.status == COMPLETED else None

    async def poll_past_deadline(
        self, api: Api, env: RunEnvironment, ids: ExportIds
    ) -> ExportOutcome | None:
        try:
            return await super().poll_past_deadline(api, env, ids)
        except DashboardExportFailedError:
            return None

    async def read(self, api: Api, ids: ExportIds, outcome: ExportOutcome) -> bytes:
        """Return the bytes of the exported file."""
        return await download(api, ids["deployment_id"], ids["job_id"], self.format)
