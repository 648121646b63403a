"""Runs that are started now of something that usually runs by a schedule: deliveries, scheduled
tasks.

Both have one lifecycle. A call starts a run, a list shows the newest runs, and nothing stops one:

    list      read the ids of the runs before the start, and whether one is running
    start     accepted       follow the new run
              409            a run is going on: read the list again, then `if_running` decides
              no response    the new run is the one that was not in the list before
    follow    poll until the run has ended, then decide whether it succeeded

A start is never repeated blindly: each start writes a sheet again, or asks the agent again. If the
response to a start is lost, the list decides. Only one property of a run is documented: `status`,
with the value `running`. The others are inferred, so each may be missing. A run without an id
cannot be followed. What a task logs about a run is in runs/deliveries.py.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_platform.client.choices import IfRunning
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformAddressError,
    PlatformApiError,
    PlatformConflictError,
    PlatformDeadlineError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.retry import is_transient, may_have_been_processed
from airflow_provider_platform.client.management.shared.lost_start import find_lost_start
from airflow_provider_platform.client.operations.models import (
    EmptiableResponse,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.program import Clock, Notify, Program, Sleep
from airflow_provider_platform.client.polling.poll_until import PollLimits, poll_until_over

MAX_ATTEMPTS = 3
"""How often a start is sent that is refused because of another run, and how often the list is read
for a run."""
ATTEMPT_PAUSE = 2.0
"""Seconds between two attempts."""
SUCCESS_GRACE = 30.0
"""Seconds for which a run may have ended before the service reports its success elsewhere."""
MAX_RUN_BYTES = 16 * 1024
"""A larger run is not part of a result."""
_RUNNING = "running"
_FAILURES = frozenset({"failed", "failure", "error", "errored", "skipped", "cancelled", "canceled"})
"""Statuses that mean a failure; their spelling is inferred from the platform's pages."""


class RunNow(ResponseModel):
    """One run as the service reports it."""

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
    def is_running(self) -> bool:
        """Return whether the service says that the run is going on."""
        return self.word == _RUNNING

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


class StartedRunNow(EmptiableResponse):
    """The response to a start. The response for a delivery has `run_id`; the one for a scheduled
    task is not documented."""

    run_id: str | None = None
    id: str | None = None

    @property
    def key(self) -> str | None:
        """The id of the started run in other calls."""
        return self.run_id or self.id


@dataclass(frozen=True)
class RunNowStage:
    """The run has reached another status."""

    noun: str
    run_id: str
    status: str

    def __str__(self) -> str:
        return f"Run status: {quote_service(self.status)} ({self.noun}, run {self.run_id})"


@dataclass(frozen=True)
class RunNowOutcome:
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
    running: RunNow | None = None


@dataclass(frozen=True)
class FoundRun:
    """A run to follow; `own` says that this start began it. A run without an id cannot be
    followed."""

    run_id: str | None
    own: bool


class RunsNow(ABC):
    """The runs of one delivery or one scheduled task: the parts that differ between the two."""

    noun: ClassVar[str]
    """The name of what is run, for messages."""
    id_field: ClassVar[str]
    """The field for its id in results."""
    failure: ClassVar[type[PlatformError]]
    """The error of a run that failed."""
    reports_success: ClassVar[bool]
    """Whether the service reports when a run last succeeded."""
    runs_are_described: ClassVar[bool]
    """Whether the service's documents describe the id of a run and its final statuses."""

    steps: ClassVar[tuple[tuple[str, str], ...]] = ()
    """What to do about a failure, by a word in its reason."""

    def __init__(self, deployment_id: int, subject_id: int | str) -> None:
        self.deployment_id = deployment_id
        self.subject_id = subject_id

    def __str__(self) -> str:
        return f"{self.noun} {quote_service(self.subject_id)}, deployment {self.deployment_id}"

    @abstractmethod
    def last_success(self, deadline: float | None = None) -> Program[str | None]:
        """Return when a run last succeeded, as the service writes it; None if it does not say."""

    @abstractmethod
    def newest_runs(self, deadline: float | None = None) -> Program[list[RunNow]]:
        """Return the newest runs."""

    @abstractmethod
    def start(self, deadline: float | None = None) -> Program[StartedRunNow]:
        """Start a run."""

    @abstractmethod
    def read(self, run_id: str) -> Program[RunNow]:
        """One run. Raises PlatformNotFoundError."""

    @abstractmethod
    def has_ended(self, run: RunNow) -> bool:
        """Return whether the status means that the run is over."""

    @abstractmethod
    def outcome(self, run: RunNow, success_before: str | None) -> Program[RunNowOutcome | None]:
        """Return the outcome of a run that has ended without an error; None if the service does not
        report its success, or not yet."""

    @abstractmethod
    def explain(self, error: PlatformError, deadline: float | None) -> Program[PlatformError]:
        """Return what an error before the start means: no such feature, delivery or task."""

    def failed(self, run: RunNow) -> PlatformError:
        """Return the error of a run that has ended without success."""
        reason = run.reason or (
            f"its status is {quote_service(run.word)}, without a reason. Look at the run in the "
            "platform"
            if run.says_failure
            else f"its status is {quote_service(run.word)}, and the service has reported no "
            "success since it started. Look at the run in the platform"
        )
        return self.failure(
            f"The run of the {self.noun} failed: {reason}.{self._advice(reason)}",
            where=f"run {quote_service(run.key)}, {self}",
        )

    def _advice(self, reason: str) -> str:
        steps = (step for word, step in self.steps if word in reason.lower())
        return f" {step}" if (step := next(steps, None)) else ""


def list_runs_before(
    service: RunsNow, *, deadline: float | None = None
) -> Program[tuple[RunsBefore, str | None]]:
    """Return the list of runs before a start, and when a run last succeeded. Raises
    FeatureNotActivatedError and the errors of requests; then nothing is started."""
    try:
        runs = yield from service.newest_runs(deadline)
        running = next((run for run in runs if run.is_running), None)
        success = yield from service.last_success(deadline)
    except (PlatformAddressError, PlatformApiError) as error:
        if is_transient(error):
            raise
        explained = yield from service.explain(error, deadline)
        if explained is error:
            raise
        raise explained from error
    keys = [run.key for run in runs]
    ids = None if None in keys else [key for key in keys if key is not None]
    return RunsBefore(ids, running), success


def start_once(
    service: RunsNow,
    before: RunsBefore,
    if_running: IfRunning,
    *,
    deadline: float | None = None,
) -> Program[FoundRun]:
    """Start a run, or do what `if_running` says if a run is going on.

    Raises AlreadyRunningError; PlatformOutcomeUnknownError if the response was lost and the list
    does not show whether a run was started; PlatformTransportError if it shows that none was.
    """
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            yield Sleep(ATTEMPT_PAUSE)
        try:
            answer = yield from service.start(deadline)
        except PlatformConflictError as error:
            cause = error
        except PlatformError as error:
            if not may_have_been_processed(error):
                raise
            find = find_new(service, before.ids, deadline=deadline)
            return (yield from find_lost_start(error, find, noun="run", listing="list of runs"))
        else:
            return (yield from _started(service, before, answer, deadline))
        runs = yield from service.newest_runs(deadline)
        running = next((run for run in runs if run.is_running), None)
        if running is not None:
            return already_running(service, running, if_running)
    raise AlreadyRunningError(
        f"{cause.reason} The list of runs shows no active run. A retry starts a run.",
        where=service,
    ) from cause


def already_running(service: RunsNow, run: RunNow, if_running: IfRunning) -> FoundRun:
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
        f"Nothing was started: a run of the {service.noun} is active ({named}). {step}",
        where=service,
    )


def find_new(
    service: RunsNow, ids_before: Collection[str] | None, *, deadline: float | None = None
) -> Program[FoundRun | None]:
    """Return the run that a start with a lost response began, or None if it began none: the run
    that is not in `ids_before` and that no schedule started.

    Raises PlatformOutcomeUnknownError if the list does not show it.
    """
    lost = (
        f"The connection broke before the service confirmed the start of the {service.noun}, and "
    )
    step = (
        "Look at its runs in the platform. If one did the work of this task, mark this task as "
        "successful. If none did, clear the task to start a run."
    )
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            yield Sleep(ATTEMPT_PAUSE)
        runs = yield from service.newest_runs(deadline)
        if ids_before is None or any(run.key is None for run in runs):
            raise PlatformOutcomeUnknownError(
                f"{lost}the list of its runs has no ids, so the run cannot be found. {step}",
                where=service,
            )
        new = [run for run in runs if run.key not in ids_before and not run.is_scheduled]
        if len(new) > 1:
            ids = ", ".join(quote_service(run.key) for run in new)
            raise PlatformOutcomeUnknownError(
                f"{lost}there are several new runs that this task could have started ({ids}). "
                f"{step}",
                where=service,
            )
        if new:
            return FoundRun(new[0].key, own=True)
    return None


def can_be_followed(service: RunsNow, found_run: FoundRun) -> Program[bool]:
    """Return whether the service reports the status of a run that was just found or started. A
    request that fails does not show that the service does not report it."""
    if found_run.run_id is None or service.runs_are_described:
        return found_run.run_id is not None
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            yield Sleep(ATTEMPT_PAUSE)
        try:
            run = yield from service.read(found_run.run_id)
        except PlatformNotFoundError:
            continue
        except PlatformError:
            return True
        return bool(run.word)
    return False


def wait_for_run(
    service: RunsNow,
    run_id: str,
    success_before: str | None,
    limits: PollLimits,
    clock: Clock,
) -> Program[RunNowOutcome]:
    """Wait until the run has succeeded.

    Notifies of RunNowStage. Raises the error of a run that failed, PlatformDeadlineError, or the
    sixth transient failure in a row.
    """
    watch = _Watch(service, run_id, success_before, clock)
    outcome: RunNowOutcome | None = yield from poll_until_over(
        watch.read_once, limits, clock, grace=True
    )
    if outcome is None:
        raise PlatformDeadlineError(
            f"The run of the {service.noun} did not end before its deadline. Its last status was "
            f"{quote_service(watch.status or 'unknown')}. The service has no operation that stops "
            "it, so the run continues, and a retry follows it.",
            where=f"run {quote_service(run_id)}, {service}",
        )
    return outcome


def poll_run(
    service: RunsNow, run_id: str, success_before: str | None, clock: Clock
) -> Program[RunNowOutcome | None]:
    """Return the outcome of the run, or None if the run is not over now. Raises as
    `wait_for_run`."""
    return (yield from _Watch(service, run_id, success_before, clock).read_once())


class _Watch:
    """Polls one run; `status` is its last status."""

    def __init__(
        self, service: RunsNow, run_id: str, success_before: str | None, clock: Clock
    ) -> None:
        self._service = service
        self._run_id = run_id
        self._success_before = success_before
        self._clock = clock
        self._ended_at: float | None = None
        self.status: str | None = None

    def read_once(self) -> Program[RunNowOutcome | None]:
        run = yield from self._service.read(self._run_id)
        if run.word != self.status:
            self.status = run.word
            yield Notify(RunNowStage(self._service.noun, self._run_id, run.word or "none"))
        if not self._service.has_ended(run):
            return None
        if run.reason or run.says_failure:
            raise self._service.failed(run)
        outcome = yield from self._service.outcome(run, self._success_before)
        if outcome is not None:
            return outcome
        if self._ended_at is None:
            self._ended_at = self._clock()
        if self._clock() - self._ended_at < SUCCESS_GRACE:
            return None
        raise self._service.failed(run)


def as_result(run: RunNow) -> dict[str, Any] | None:
    """Return the run as plain JSON, or None if it is too large for a result."""
    plain = run.to_json()
    return plain if len(json.dumps(plain)) <= MAX_RUN_BYTES else None


def _started(
    service: RunsNow, before: RunsBefore, answer: StartedRunNow, deadline: float | None
) -> Program[FoundRun]:
    """Return the run of a start that was accepted, from the response or else from the list."""
    if answer.key is not None:
        return FoundRun(answer.key, own=True)
    try:
        new_run = yield from find_new(service, before.ids, deadline=deadline)
    except PlatformError:
        new_run = None
    return new_run or FoundRun(None, own=True)
