"""A delivery that is run now: how its runs are read, and when one has succeeded.

The start itself, and what happens if a run is already going on, are in
`management.shared.runs_now`, which scheduled tasks share.

A run reports `running` until it ends; its final statuses are not documented. So a run that has
ended failed if it reports an error. It succeeded if the delivery's `lastSuccessAt` is later than
before the start, and not before the start of the run. Times of the service are compared only with
each other, never with our clock.
"""

from __future__ import annotations

from datetime import datetime

from airflow_provider_platform.client.errors import (
    FeatureNotActivatedError,
    PlatformError,
    PlatformNotFoundError,
    ReportDeliveryFailedError,
)
from airflow_provider_platform.client.management.deliveries.deliveries import (
    SINCE,
    ReportDelivery,
    get_report_delivery,
    get_report_delivery_run,
    list_report_deliveries,
    list_report_delivery_runs,
    run_report_delivery,
)
from airflow_provider_platform.client.management.missing_operations import (
    check_tenant,
    may_be_missing,
)
from airflow_provider_platform.client.management.shared.runs_now import (
    RunNow,
    RunNowOutcome,
    RunsNow,
    StartedRunNow,
    as_result,
)
from airflow_provider_platform.client.operations.models import Timestamp
from airflow_provider_platform.client.operations.program import Program, call

_STEPS = (
    ("reconnect", "The delivery's owner must connect Google again in the platform."),
    ("access", "Give the delivery's owner access to the sheet in Google."),
    (
        "overwrit",
        "Nothing was written, because cells would be overwritten. Clear these cells, or change the "
        "destination of the delivery in the platform.",
    ),
    ("column", "Change the delivery's columns in the platform, or change the report."),
)
"""What to do about a failure, by a word in the service's reason, whose texts are not documented."""


class DeliveryRuns(RunsNow):
    """The runs of one report delivery."""

    noun = "report delivery"
    id_field = "delivery_id"
    failure = ReportDeliveryFailedError
    reports_success = True
    runs_are_described = True
    steps = _STEPS

    def last_success(self, deadline: float | None = None) -> Program[str | None]:
        delivery = yield from self._delivery(deadline)
        success = delivery.decided("last_success_at")
        return None if success is None else str(success)

    def newest_runs(self, deadline: float | None = None) -> Program[list[RunNow]]:
        runs = list_report_delivery_runs(
            delivery_id=self.subject_id, deployment_id=self.deployment_id
        )
        return (yield from call(runs, deadline=deadline)).rows

    def start(self, deadline: float | None = None) -> Program[StartedRunNow]:
        run = run_report_delivery(delivery_id=self.subject_id, deployment_id=self.deployment_id)
        return (yield from call(run, deadline=deadline))

    def read(self, run_id: str) -> Program[RunNow]:
        operation = get_report_delivery_run(
            delivery_id=self.subject_id, run_id=run_id, deployment_id=self.deployment_id
        )
        return (yield from call(operation, once=True))

    def has_ended(self, run: RunNow) -> bool:
        """Return True for each status except `running`; a run without a status is active."""
        return bool(run.word) and not run.is_running

    def outcome(self, run: RunNow, success_before: str | None) -> Program[RunNowOutcome | None]:
        delivery = yield from self._delivery(None, once=True)
        success: Timestamp | None = delivery.decided("last_success_at")
        if success is None or not _is_newer(success, success_before):
            return None
        if run.started_at is not None and _second(success) < _second(run.started_at):
            return None
        return RunNowOutcome(run.key, run.status, str(success), as_result(run))

    def explain(self, error: PlatformError, deadline: float | None) -> Program[PlatformError]:
        return (yield from explain_missing_delivery(self, error, deadline))

    def _delivery(self, deadline: float | None, *, once: bool = False) -> Program[ReportDelivery]:
        operation = get_report_delivery(
            delivery_id=self.subject_id, deployment_id=self.deployment_id
        )
        return (yield from call(operation, once=once, deadline=deadline))


def explain_missing_delivery(
    delivery: DeliveryRuns, error: PlatformError, deadline: float | None
) -> Program[PlatformError]:
    """Return what an error of a delivery means: deliveries are not activated, or this delivery does
    not exist. Every path answers 404 until the feature is activated."""
    if not may_be_missing(error):
        return error
    listing = list_report_deliveries(deployment_id=delivery.deployment_id)
    try:
        yield from call(listing, deadline=deadline)
    except PlatformError as failure:
        if not may_be_missing(failure):
            return error
    else:
        return PlatformNotFoundError(
            "No report delivery has this id, or the credential does not see it: an administrator "
            "sees all deliveries, others see their own. Check delivery_id.",
            where=delivery,
            status=404,
        )
    yield from check_tenant(delivery.deployment_id, error, deadline)
    return FeatureNotActivatedError(
        "Report deliveries are not activated on this tenant. They need release "
        f"{SINCE} or later, and the platform's support activates them for an account (preview).",
        where=delivery,
    )


def _is_newer(success: Timestamp, before: str | None) -> bool:
    """Return whether the delivery has succeeded since the previous success, if there was one."""
    return before is None or success > Timestamp.parse(before)


def _second(moment: datetime) -> datetime:
    """Return the time without its fraction: two time stamps of the service can differ in
    precision."""
    return moment.replace(microsecond=0)
