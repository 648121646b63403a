"""Report deliveries: the platform writes the rows of a saved report to a spreadsheet (preview).

The service's document names few properties of a delivery and of its runs. Those that are inferred
(`id`, `error`, `startedAt`, `trigger`) may be missing, and what else the service sends is kept.
Every operation answers 404 until the feature is activated for the account.
"""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_platform.client.management.shared.runs_now import RunNow, StartedRunNow
from airflow_provider_platform.client.operations.models import (
    EmptiableResponse,
    JsonObject,
    QueryModel,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page

SINCE = "v0.17.0"
"""The first release with deliveries."""


class ReportDelivery(ResponseModel):
    """A delivery; `last_success_at` is when a run of it last succeeded."""

    deciding: ClassVar[frozenset[str]] = frozenset({"last_success_at"})

    id: int | str | None = None
    name: str | None = None
    report_id: int | None = None
    destination: JsonObject | None = None
    write_mode: str | None = None
    schedule: JsonObject | None = None
    last_run_at: Timestamp | None = None
    last_success_at: Timestamp | None = None


class ReportDeliveriesQuery(QueryModel):
    """Which deliveries: of a report, of an owner, to a spreadsheet, in a state."""

    report_id: int | None = None
    owner_user_id: int | None = None
    spreadsheet: str | None = None
    status: str | None = None


class ChangedDelivery(EmptiableResponse):
    """What the service answers to a pause or a resumption: not described."""


_DELIVERIES = "/v1/deployments/{deploymentId}/report-deliveries"
_DELIVERY = _DELIVERIES + "/{id}"
_LOOK = "OAuth scope report.read, and the role Admin, Developer or Explorer"
_CHANGE = "OAuth scope report.write, and the role Admin, Developer or Explorer"


@endpoint("GET", _DELIVERIES, operation_id="listReportDeliveries", permission=_LOOK)
def list_report_deliveries(
    *, deployment_id: DeploymentId = None, query: ReportDeliveriesQuery | None = None
) -> Page[ReportDelivery]:
    """The deliveries: an administrator sees all, others see their own.

    Raises PlatformNotFoundError until the feature is activated for the account."""


@endpoint("GET", _DELIVERY, operation_id="getReportDelivery", permission=_LOOK)
def get_report_delivery(
    *, delivery_id: int | str, deployment_id: DeploymentId = None
) -> ReportDelivery:
    """One delivery. Raises PlatformNotFoundError."""


@endpoint(
    "POST",
    f"{_DELIVERY}/pause",
    operation_id="pauseReportDelivery",
    permission=_CHANGE,
    repeatable=True,
)
def pause_report_delivery(
    *, delivery_id: int | str, deployment_id: DeploymentId = None
) -> ChangedDelivery:
    """Pause the schedule of a delivery; a paused delivery can still be run now."""


@endpoint(
    "POST",
    f"{_DELIVERY}/resume",
    operation_id="resumeReportDelivery",
    permission=_CHANGE,
    repeatable=True,
)
def resume_report_delivery(
    *, delivery_id: int | str, deployment_id: DeploymentId = None
) -> ChangedDelivery:
    """Resume the schedule of a delivery; runs that were missed are not made up for."""


@endpoint("POST", f"{_DELIVERY}/runs", operation_id="runReportDelivery", permission=_CHANGE)
def run_report_delivery(
    *, delivery_id: int | str, deployment_id: DeploymentId = None
) -> StartedRunNow:
    """Run a delivery now, with the permissions and the Google account of its owner; returns the
    run's id.

    Every call starts a run, so it is never repeated when its outcome is unknown. Raises
    PlatformConflictError while another run is going on."""


@endpoint("GET", f"{_DELIVERY}/runs", operation_id="listReportDeliveryRuns", permission=_LOOK)
def list_report_delivery_runs(
    *, delivery_id: int | str, deployment_id: DeploymentId = None
) -> Page[RunNow]:
    """The runs of a delivery, newest first."""


@endpoint(
    "GET", f"{_DELIVERY}/runs/{{runId}}", operation_id="getReportDeliveryRun", permission=_LOOK
)
def get_report_delivery_run(
    *, delivery_id: int | str, run_id: str, deployment_id: DeploymentId = None
) -> RunNow:
    """One run: `status` is `running` until it ends. Raises PlatformNotFoundError."""
