"""Report deliveries: the platform writes the rows of a saved report to a spreadsheet (preview).

The service's document names few properties of a delivery and of its runs. Those that are inferred
(`id`, `error`, `startedAt`, `trigger`) may be missing, and what else the service sends is kept.
Every operation answers 404 until the feature is activated for the account.
"""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.operations.models import (
    EmptiableResponse,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import typed
from airflow_provider_platform.client.operations.paging import Page

SINCE = "v0.17.0"
"""The first release with deliveries."""
_ACTIVE = frozenset({"running", "queued", "pending", "scheduled", "starting", "retrying"})
_SUCCESSES = frozenset({"succeeded", "success", "completed", "complete", "done"})
_FAILURES = frozenset({"failed", "failure", "error", "errored", "skipped", "cancelled", "canceled"})
_ENDS = _SUCCESSES | _FAILURES | {"ended", "finished"}
"""Statuses of a run. Only `running` is documented; the others are inferred from the platform's
pages."""


class ReportDelivery(ResponseModel):
    """A delivery; `last_success_at` is when a run of it last succeeded."""

    deciding: ClassVar[frozenset[str]] = frozenset({"last_success_at"})

    status: str | None = None
    last_success_at: Timestamp | None = None

    @property
    def is_paused(self) -> bool:
        """Return whether the service says that the schedule is paused. While a run of a paused
        delivery is going on, the service may say this instead."""
        return (self.words("status") or "").strip().lower() == "paused"


class DeliveryRun(ResponseModel):
    """One run as the service reports it. Only `status` is documented, with the value `running`."""

    id: str | None = None
    run_id: str | None = None
    status: str | None = None
    trigger: str | None = None
    started_at: Timestamp | None = None
    error: str | None = None
    error_message: str | None = None

    @property
    def key(self) -> str | None:
        """The id of the run in other calls."""
        return self.run_id or self.id

    @property
    def word(self) -> str:
        """The status in lower case; empty if the service reports none."""
        return (self.words("status") or "").strip().lower()

    @property
    def is_active(self) -> bool:
        """Return whether the status says that the run is going on or will begin."""
        return self.word in _ACTIVE

    @property
    def has_ended(self) -> bool:
        """Return whether the status is a known word for an end. An unknown status, as well as none,
        means that the run goes on."""
        return self.word in _ENDS

    @property
    def is_scheduled(self) -> bool:
        """Whether the service says that a schedule started the run."""
        return (self.trigger or "").lower().startswith(("schedul", "cron"))

    @property
    def says_failure(self) -> bool:
        """Whether the status itself means a failure."""
        return self.word in _FAILURES

    @property
    def reason(self) -> str | None:
        """Why the run failed, as one line; None if the service reports no error."""
        said = self.words("error") or self.words("error_message")
        return quote_service(said).removesuffix(".") if said and said.strip() else None


class StartedDelivery(EmptiableResponse):
    """The response to a start."""

    run_id: str | None = None
    id: str | None = None

    @property
    def key(self) -> str | None:
        """The id of the started run in other calls."""
        return self.run_id or self.id


_LOOK = "OAuth scope report.read, and the role Admin, Developer or Explorer"
_CHANGE = "OAuth scope report.write, and the role Admin, Developer or Explorer"

list_report_deliveries = typed("listReportDeliveries", Page[ReportDelivery], permission=_LOOK)
get_report_delivery = typed("getReportDelivery", ReportDelivery, permission=_LOOK)
pause_report_delivery = typed("pauseReportDelivery", EmptiableResponse, permission=_CHANGE)
resume_report_delivery = typed("resumeReportDelivery", EmptiableResponse, permission=_CHANGE)
run_report_delivery = typed("runReportDelivery", StartedDelivery, permission=_CHANGE)
list_report_delivery_runs = typed("listReportDeliveryRuns", Page[DeliveryRun], permission=_LOOK)
get_report_delivery_run = typed("getReportDeliveryRun", DeliveryRun, permission=_LOOK)
