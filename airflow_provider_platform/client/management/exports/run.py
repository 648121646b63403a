"""A dashboard export from its start to its end: when it is over, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_platform.client.defaults import EXPORT_LIFETIME
from airflow_provider_platform.client.errors import (
    DashboardExportFailedError,
    PlatformApiError,
    PlatformDeadlineError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.management.exports.exports import (
    COMPLETED,
    FAILED,
    download_dashboard_export,
    get_dashboard_export,
)
from airflow_provider_platform.client.polling.poll_until import PollLimits, poll_until_over

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

_MARKS = {"pdf": b"%PDF-", "png": b"\x89PNG\r\n\x1a\n"}
"""What a file of each format has among its first bytes."""
_MARK_WITHIN = 1024


@dataclass(frozen=True)
class ExportStage:
    """The export has reached another status."""

    job_id: str
    status: str

    def __str__(self) -> str:
        return f"Export status: {quote_service(self.status)} (dashboard export {self.job_id})"


@dataclass(frozen=True)
class ExportOutcome:
    """A completed export, whose file can be downloaded for a while."""

    content_type: str | None = None


async def wait(
    api: Api, deployment_id: int, job_id: str, limits: PollLimits, clock: Clock
) -> ExportOutcome:
    """Wait until the export is complete.

    Notifies of ExportStage. Raises DashboardExportFailedError where it failed or is gone,
    PlatformDeadlineError, or the sixth transient failure in a row.
    """
    last_status: str | None = None

    async def read_once(api: Api) -> ExportOutcome | None:
        nonlocal last_status
        status, outcome = await poll(api, deployment_id, job_id)
        if status != last_status:
            last_status = status
            await api.notify(ExportStage(job_id, status))
        return outcome

    outcome: ExportOutcome | None = await poll_until_over(api, read_once, limits, clock)
    if outcome is None:
        raise PlatformDeadlineError(
            "The dashboard export did not end before its deadline. Its last status was "
            f"{last_status or 'unknown'}.",
            where=_name(deployment_id, job_id),
        )
    return outcome


async def poll(api: Api, deployment_id: int, job_id: str) -> tuple[str, ExportOutcome | None]:
    """The status now, and the outcome of an export that is complete. Raises
    DashboardExportFailedError where it failed or is gone."""
    operation = get_dashboard_export(deployment_id=deployment_id, job_id=job_id)
    try:
        answer = await api.call(operation, once=True)
    except PlatformNotFoundError as error:
        raise _gone(deployment_id, job_id) from error
    if answer.status == FAILED:
        said = quote_service(answer.words("error") or "no reason given").removesuffix(".")
        raise DashboardExportFailedError(
            f"The dashboard export failed: {said}.", where=_name(deployment_id, job_id)
        )
    done = answer.status == COMPLETED
    return answer.status, ExportOutcome(answer.content_type) if done else None


async def download(api: Api, deployment_id: int, job_id: str, file_format: str) -> bytes:
    """The file of a completed export, pdf or png. Raises DashboardExportFailedError where it is
    gone, or where what comes is no such file: an error under 200, or nothing."""
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
