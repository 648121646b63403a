"""Report deliveries: the platform writes the rows of a saved report to a spreadsheet (preview). A
delivery is run now: started once, found, followed and read.

The service's document names few properties of a delivery and of its runs. Those that are inferred
(`id`, `error`, `startedAt`, `trigger`) may be missing, and what else the service sends is kept.
Every operation answers 404 until the feature is activated for the account.

A call starts a run, a list shows the newest runs, and nothing stops one:

    list      read the ids of the runs before the start, and whether one is active
    start     accepted       follow the new run
              409            a run is active: read the list again, then `if_running` decides
              no response    the new run is the one that was not in the list before
    follow    poll until the run has ended, then decide whether it succeeded

A start is never repeated blindly, because each start writes the sheet again. If the response to a
start is lost, the list decides. A run without an id cannot be followed. A run continues after a
deadline and after the end of its task, and the next try continues to follow it.

A run reports `running` until it ends; its other statuses are not documented. So an unknown status
means that the run goes on. A run that has ended failed if it reports an error. A run succeeded if
the delivery's `lastSuccessAt` is later than before the start, and not before the start of the run;
this also ends a run with an unknown status. Times of the service are compared only with each other,
never with our clock.

The ids of a run have `run_id`, whether this task `started` it or follows a run that was already
active, whether the task waits for the end (`waits`), and what was known before the start:
`ids_before` and the last success (`success_before`).
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NotRequired

from airflow_provider_platform.client.choices import IfRunning
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformConflictError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    ReportDeliveryFailedError,
)
from airflow_provider_platform.client.models import EmptiableResponse, ResponseModel, Timestamp
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.repeats import may_have_been_processed
from airflow_provider_platform.resources.missing_operations import (
    may_be_missing,
    raise_if_missing,
)
from airflow_provider_platform.resources.run_kind import (
    SINGLE_POLL_SECONDS,
    Intended,
    Poll,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
    find_lost_start,
)
from airflow_provider_platform.resources.run_log import Stage, say

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


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
run_report_delivery = typed("runReportDelivery", StartedDelivery, permission=_CHANGE)
list_report_delivery_runs = typed("listReportDeliveryRuns", Page[DeliveryRun], permission=_LOOK)
get_report_delivery_run = typed("getReportDeliveryRun", DeliveryRun, permission=_LOOK)


MAX_ATTEMPTS = 3
"""How often a start is sent that is refused because of another run, and how often the list is read
for a run."""
ATTEMPT_PAUSE = 2.0
"""Seconds between two attempts."""
SUCCESS_GRACE = 30.0
"""Seconds for which a run may have ended before the service reports its success elsewhere."""
MAX_RUN_BYTES = 16 * 1024
"""A larger run is not part of a result."""

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


@dataclass(frozen=True)
class DeliveryOutcome:
    """A run that succeeded. If the task does not wait for the run, all fields except its id are
    None. `run` is the run as the service reports it."""

    run_id: str | None = None
    status: str | None = None
    last_success_at: str | None = None
    run: dict[str, Any] | None = None


@dataclass(frozen=True)
class RunsBefore:
    """The list of runs before a start. `ids` is None if a run in it has no id; `running` is an
    active run, if there is one."""

    ids: list[str] | None
    running: DeliveryRun | None = None


@dataclass(frozen=True)
class FoundRun:
    """A run to follow; `own` says that this start began it. A run without an id cannot be
    followed."""

    run_id: str | None
    own: bool


@dataclass(frozen=True)
class Delivery:
    """One report delivery of a deployment."""

    deployment_id: int
    delivery_id: int | str

    def __str__(self) -> str:
        return f"report delivery {quote_service(self.delivery_id)}, deployment {self.deployment_id}"

    @property
    def ids(self) -> dict[str, Any]:
        """The arguments that name the delivery in operations."""
        return {"id": self.delivery_id, "deployment_id": self.deployment_id}

    async def read(
        self, api: Api, *, once: bool = False, deadline: float | None = None
    ) -> ReportDelivery:
        """Return the delivery."""
        return await api.call(get_report_delivery(**self.ids), once=once, deadline=deadline)

    async def newest_runs(self, api: Api, deadline: float | None = None) -> list[DeliveryRun]:
        """Return the newest runs."""
        return (await api.call(list_report_delivery_runs(**self.ids), deadline=deadline)).rows

    async def active_run(self, api: Api, deadline: float | None = None) -> DeliveryRun | None:
        """Return a run that is going on, if there is one."""
        runs = await self.newest_runs(api, deadline)
        return next((run for run in runs if run.is_active), None)


async def list_runs_before(
    api: Api, delivery: Delivery, *, deadline: float | None = None
) -> tuple[RunsBefore, str | None]:
    """Return the list of runs before a start, and when a run last succeeded. Raises
    OperationMissingError and the errors of requests; then nothing is started."""
    try:
        runs = await delivery.newest_runs(api, deadline)
        success = (await delivery.read(api, deadline=deadline)).decided("last_success_at")
    except PlatformError as error:
        await _explain_missing(api, delivery, error, deadline)
        raise
    keys = [run.key for run in runs]
    ids = None if None in keys else [key for key in keys if key is not None]
    running = next((run for run in runs if run.is_active), None)
    return RunsBefore(ids, running), None if success is None else str(success)


async def start_once(
    api: Api,
    delivery: Delivery,
    before: RunsBefore,
    if_running: IfRunning,
    *,
    deadline: float | None = None,
) -> FoundRun:
    """Start a run, or do what `if_running` says if a run is active.

    Raises AlreadyRunningError; PlatformOutcomeUnknownError if the response was lost and the list
    does not show whether a run was started; PlatformTransportError if it shows that none was.
    """
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await api.sleep(ATTEMPT_PAUSE)
        try:
            answer = await api.call(run_report_delivery(**delivery.ids), deadline=deadline)
        except PlatformConflictError as error:
            cause = error
        except PlatformError as error:
            if not may_have_been_processed(error):
                raise
            find = find_new(api, delivery, before.ids, deadline=deadline)
            return await find_lost_start(error, find, noun="run", listing="list of runs")
        else:
            return await _started(api, delivery, before, answer, deadline)
        running = await delivery.active_run(api, deadline)
        if running is not None:
            return already_running(delivery, running, if_running)
    raise AlreadyRunningError(
        f"{cause.reason} The list of runs shows no active run. A retry starts a run.",
        where=delivery,
    ) from cause


def already_running(delivery: Delivery, run: DeliveryRun, if_running: IfRunning) -> FoundRun:
    """Return the active run, to follow it. Raises AlreadyRunningError if `if_running` does not say
    to follow it, or if it has no id."""
    started = f", since {run.started_at}" if run.started_at else ""
    named = f"run {quote_service(run.key)}{started}" if run.key else "without an id"
    if if_running == "follow" and run.key:
        return FoundRun(run.key, own=False)
    step = {
        "follow": "The service sent no id of that run, so the task cannot follow it. A retry "
        "starts a run only if that run is over by then.",
        "fail": "A retry starts a run only if that run is over by then. With if_running='follow' "
        "the task waits for that run instead of starting one.",
        "skip": "The task is skipped (if_running='skip').",
    }[if_running]
    raise AlreadyRunningError(
        f"Nothing was started: a run of the report delivery is active ({named}). {step}",
        where=delivery,
    )


async def find_new(
    api: Api,
    delivery: Delivery,
    ids_before: Collection[str] | None,
    *,
    deadline: float | None = None,
) -> FoundRun | None:
    """Return the run that a start with a lost response began, or None if it began none: the run
    that is not in `ids_before` and that no schedule started.

    Raises PlatformOutcomeUnknownError if the list does not show it.
    """
    lost = "The service did not confirm the start of the report delivery, and"
    step = (
        "Look at its runs in the platform. If one did the work of this task, mark this task as "
        "successful. If none did, clear the task to start a run."
    )
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await api.sleep(ATTEMPT_PAUSE)
        runs = await delivery.newest_runs(api, deadline)
        if ids_before is None or any(run.key is None for run in runs):
            raise PlatformOutcomeUnknownError(
                f"{lost} the list of its runs has no ids, so the run cannot be found. {step}",
                where=delivery,
            )
        new = [run for run in runs if run.key not in ids_before and not run.is_scheduled]
        if len(new) > 1:
            ids = ", ".join(quote_service(run.key) for run in new)
            raise PlatformOutcomeUnknownError(
                f"{lost} there are several new runs that this task could have started ({ids}). "
                f"{step}",
                where=delivery,
            )
        if new:
            return FoundRun(new[0].key, own=True)
    return None


class _Watch:
    """Polls one run, and remembers when it ended."""

    def __init__(self, delivery: Delivery, run_id: str, success_before: str | None) -> None:
        self._delivery = delivery
        self._run_id = run_id
        self._success_before = success_before
        self._ended_at: float | None = None

    async def poll(self, api: Api) -> DeliveryOutcome | None:
        """Return the outcome of the run, or None while it goes on. Raises
        ReportDeliveryFailedError."""
        operation = get_report_delivery_run(run_id=self._run_id, **self._delivery.ids)
        run = await api.call(operation, once=True)
        api.report(Stage("Run", f"report delivery, run {self._run_id}", run.word or "none"))
        if run.is_active or not run.word:
            return None
        if run.has_ended and (run.reason or run.says_failure):
            raise self._failure(run)
        outcome = await self._success(api, run)
        if outcome is not None or not run.has_ended:
            return outcome
        if self._ended_at is None:
            self._ended_at = api.clock()
        if api.clock() - self._ended_at < SUCCESS_GRACE:
            return None
        raise self._failure(run)

    async def _success(self, api: Api, run: DeliveryRun) -> DeliveryOutcome | None:
        """Return the outcome of a run if the service reports its success; None if not, or not yet.
        With an unknown status, only a run with a start time can be told from an earlier run."""
        if run.started_at is None and not run.has_ended:
            return None
        delivery = await self._delivery.read(api, once=True)
        success: Timestamp | None = delivery.decided("last_success_at")
        if success is None or not _is_newer(success, self._success_before):
            return None
        if run.started_at is not None and _second(success) < _second(run.started_at):
            return None
        return DeliveryOutcome(run.key, run.status, str(success), as_result(run))

    def _failure(self, run: DeliveryRun) -> PlatformError:
        """Return the error of a run that has ended without success."""
        reason = run.reason or (
            f"its status is {quote_service(run.word)}, without a reason. Look at the run in the "
            "platform"
            if run.says_failure
            else f"its status is {quote_service(run.word)}, and the service has reported no "
            "success since it started. Look at the run in the platform"
        )
        step = next((f" {step}" for word, step in _STEPS if word in reason.lower()), "")
        return ReportDeliveryFailedError(
            f"The run of the report delivery failed: {reason}.{step}",
            where=f"run {quote_service(run.key)}, {self._delivery}",
        )


def as_result(run: DeliveryRun) -> dict[str, Any] | None:
    """Return the run as plain JSON, or None if it is too large for a result."""
    plain = run.to_json()
    return plain if len(json.dumps(plain)) <= MAX_RUN_BYTES else None


async def _explain_missing(
    api: Api, delivery: Delivery, error: PlatformError, deadline: float | None
) -> None:
    """Raise what an error of a delivery means, if the delivery is not there: deliveries are not
    activated, or this delivery does not exist. Every path answers 404 until the feature is
    activated."""
    if not may_be_missing(error):
        return
    listing = list_report_deliveries(deployment_id=delivery.deployment_id)
    try:
        await api.call(listing, deadline=deadline)
    except PlatformError as failure:
        await raise_if_missing(
            api,
            delivery.deployment_id,
            failure,
            reason="Report deliveries are not activated on this tenant",
            step="The platform's support activates them for an account (preview).",
            deadline=deadline,
        )
        raise
    raise PlatformNotFoundError(
        "No report delivery has this id, or the credential does not see it: an administrator "
        "sees all deliveries, others see their own. Check delivery_id.",
        where=delivery,
        status=404,
    ) from error


async def _started(
    api: Api,
    delivery: Delivery,
    before: RunsBefore,
    answer: StartedDelivery,
    deadline: float | None,
) -> FoundRun:
    """Return the run of a start that was accepted, from the response or else from the list."""
    if answer.key is not None:
        return FoundRun(answer.key, own=True)
    try:
        new_run = await find_new(api, delivery, before.ids, deadline=deadline)
    except PlatformError:
        new_run = None
    return new_run or FoundRun(None, own=True)


def _is_newer(success: Timestamp, before: str | None) -> bool:
    """Return whether the delivery has succeeded since the previous success, if there was one."""
    return before is None or success > Timestamp.parse(before)


def _second(moment: datetime) -> datetime:
    """Return the time without its fraction: two time stamps of the service can differ in
    precision."""
    return moment.replace(microsecond=0)


class DeliveryIds(RunIds):
    """The ids of a run of a delivery."""

    deployment_id: int
    delivery_id: int | str
    success_before: str | None
    """When a run last succeeded before the start."""
    ids_before: NotRequired[list[str] | None]
    """Before the start is accepted: the runs that the list had."""
    run_id: NotRequired[str | None]
    started: NotRequired[bool]
    """Whether this task started the run."""
    waits: NotRequired[bool]
    """Whether the task waits for the run."""


class DeliveryRunKind(RunKind[DeliveryOutcome, DeliveryIds]):
    """A run of a report delivery, with the arguments of `PlatformRunDeliveryOperator`. A trigger
    follows the run without these arguments: the ids are enough.
    """

    id_field = "run_id"
    noun = "run of the report delivery"
    outcome_class = DeliveryOutcome
    can_stop = False

    delivery_id: int | str = ""
    if_running: IfRunning = "follow"
    wait_for_completion: bool = True
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint(
            "report delivery", config.management_url, deployment_id, self.delivery_id
        )

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: DeliveryIds | None, *, until_end: bool
    ) -> DeliveryOutcome | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        delivery = Delivery(deployment_id, self.delivery_id)
        before, success_before = await list_runs_before(api, delivery, deadline=env.deadline)
        run: DeliveryIds = {
            "deployment_id": deployment_id,
            "delivery_id": self.delivery_id,
            "submitted_at": api.clock(),
            "success_before": success_before,
        }
        if before.running is not None:
            run_to_follow = already_running(delivery, before.running, self.if_running)
        else:
            await api.notify(Intended({**run, "ids_before": before.ids}))
            run_to_follow = await start_once(
                api, delivery, before, self.if_running, deadline=env.deadline
            )
        run = self._followed(run, run_to_follow)
        await api.notify(RunAccepted({**run}))
        say(api, _line(delivery, run_to_follow))
        if run["waits"]:
            return None
        if self.wait_for_completion:
            raise PlatformError(
                "The run of the report delivery was started, but the service did not return its "
                "id, so the task cannot wait for it. Check the outcome in the platform.",
                where=delivery,
            )
        return DeliveryOutcome(run_to_follow.run_id)

    async def find(
        self, api: Api, env: RunEnvironment, ids: DeliveryIds
    ) -> tuple[bool, DeliveryIds]:
        """Return whether the list of runs shows the run of a lost start. Raises
        PlatformOutcomeUnknownError if the list does not show it."""
        delivery = _delivery(ids)
        run_to_follow = await find_new(
            api, delivery, ids.get("ids_before"), deadline=api.clock() + SINGLE_POLL_SECONDS
        )
        if run_to_follow is None:
            return False, ids
        say(api, _line(delivery, run_to_follow))
        run = self._followed(ids, run_to_follow)
        run.pop("ids_before", None)
        return True, run

    async def follow(self, api: Api, env: RunEnvironment, ids: DeliveryIds) -> DeliveryOutcome:
        if not ids["waits"]:
            return DeliveryOutcome(ids["run_id"])
        return await super().follow(api, env, ids)

    def watch(self, env: RunEnvironment, ids: DeliveryIds) -> Poll[DeliveryOutcome]:
        return _Watch(_delivery(ids), str(ids["run_id"]), ids["success_before"]).poll

    def where(self, ids: DeliveryIds) -> str:
        return f"run {quote_service(ids['run_id'])}, {_delivery(ids)}"

    async def read(self, api: Api, ids: DeliveryIds, outcome: DeliveryOutcome) -> dict[str, Any]:
        """Return the result of the task. The ids keep what a later try needs of it."""
        if outcome.status is not None:
            say(api, f"The run of the report delivery succeeded (run {outcome.run_id})")
        return api.secrets.redact_data(
            {
                "delivery_id": ids["delivery_id"],
                "run_id": outcome.run_id,
                "started": ids["started"],
                "status": outcome.status,
                "run": outcome.run,
                "last_success_at": outcome.last_success_at,
            }
        )

    def _followed(self, ids: DeliveryIds, run_to_follow: FoundRun) -> DeliveryIds:
        run_id = run_to_follow.run_id
        waits = self.wait_for_completion and run_id is not None
        return {**ids, "run_id": run_id, "started": run_to_follow.own, "waits": waits}


def _delivery(ids: DeliveryIds) -> Delivery:
    return Delivery(ids["deployment_id"], ids["delivery_id"])


def _line(delivery: Delivery, run_to_follow: FoundRun) -> str:
    run = f"run {run_to_follow.run_id}" if run_to_follow.run_id else "run without an id"
    if run_to_follow.own:
        return f"Started {delivery}: {run}"
    return f"{delivery} is running already. Following this run instead of starting one: {run}"
