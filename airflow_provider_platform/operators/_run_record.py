"""The decision of a try: what it does first, by the record of the try before it.

The record is why nothing is submitted twice.

Before a call that must not be repeated, the task writes what it is going to do, and after the call
its outcome. The record is in the task state store (Airflow 3.3+), which survives retries, crashes
and clearing; XComs do not. Older releases have no store: the same code starts a new run in each
try, and logs this.

A later try reads the record and decides what to do first:

    phase     retry, same key           retry, other key             after a clear
    intent    find out what happened    report                       start
    running   re-attach                 stop that run, start         stop that run, start
    done      reload the result         start                        start
    failed    start                     start                        start
    lost      start                     start                        start

    step                      RemoteRunOperator        SingleCallOperator
    start                     `_submit`                `_result`
    find out what happened    `_recover`               `_result`, which asks `find`
    re-attach                 `_reattach`              (a call is never running)
    reload the result         `_reload`                `reload_result`
    report                    `_report_lost`           `_make_once`

The key is a fingerprint of address, identity and input. `TryCounters` distinguish a retry from a
clear. They can be wrong, so a try that re-attaches must handle a run that was stopped. After an
error, `disposition_of` decides the phase and whether the run is stopped: a run that no try will
follow must not continue.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformError,
    PlatformOutcomeUnknownError,
)

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.resources.run_kind import Ids


log = logging.getLogger(__name__)

STORE_KEY = "platform_submission"

Phase = Literal["intent", "running", "done", "failed", "lost"]


@dataclass(frozen=True)
class TryCounters:
    """Airflow's counters of a task and its DAG run; None if a release does not report one.

    `max_tries` and `try_number` are the task instance's, `retries` the task's own setting, and
    `clear_number` counts the clears of the whole DAG run.
    """

    max_tries: int = 0
    try_number: int | None = None
    retries: int | None = None
    clear_number: int | None = None

    @classmethod
    def of(cls, context: Context) -> TryCounters:
        """Return the counters of the try that has this context."""
        ti: Any = context.get("ti")
        return cls(
            int(getattr(ti, "max_tries", 0) or 0),
            getattr(ti, "try_number", None),
            getattr(getattr(ti, "task", None), "retries", None),
            getattr(context.get("dag_run"), "clear_number", None),
        )

    def is_retry_of(self, earlier: TryCounters) -> bool:
        """Return whether the task was not cleared between the earlier try and this one.

        A clear sets `max_tries` to the tries so far plus `retries`; a retry does not change it. So
        it rises, unless `retries` was lowered in between: then the clear shows in the DAG run's
        `clear_number`, which rises with the clear of any task. Airflow 3.3.2 loses the new
        `max_tries` of some tasks that are cleared at once while they run; a try beyond `max_tries`
        shows this. The same try, continued, is no clear.
        """
        if self.try_number is not None and self.try_number == earlier.try_number:
            return True
        if self.try_number is not None and self.try_number > self.max_tries + 1:
            return False
        if self.retries != earlier.retries and self._was_cleared_after(earlier):
            return False
        return self.max_tries == earlier.max_tries

    def _was_cleared_after(self, earlier: TryCounters) -> bool:
        """Return whether a task of the DAG run was cleared since."""
        return (self.clear_number or 0) > (earlier.clear_number or 0)


@dataclass(frozen=True)
class SubmissionRecord:
    """What is known of one submission; `ids` names it on the service and never holds a secret.
    The counters are those of the try that wrote the record."""

    key: str
    phase: Phase
    counters: TryCounters
    ids: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> SubmissionRecord:
        """Return the record as it was stored. Raises KeyError for a value that is no record."""
        names = {counter.name for counter in fields(TryCounters)}
        counters = {name: value for name, value in stored.items() if name in names}
        return cls(stored["key"], stored["phase"], TryCounters(**counters), stored["ids"])

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON, in one level."""
        ids = {"key": self.key, "phase": self.phase, "ids": self.ids}
        return {**ids, **asdict(self.counters)}


class Step(Enum):
    """What a try does first."""

    START = "start"
    FIND_OUT = "find out what happened"
    REPORT = "report what may have happened"
    REATTACH = "follow the run that is under way"
    RELOAD = "reload the result"


def decide(record: SubmissionRecord | None, key: str, counters: TryCounters) -> tuple[Step, bool]:
    """Return the first step of a try, and whether to stop the recorded run before."""
    if record is None:
        return Step.START, False
    retry = counters.is_retry_of(record.counters)
    if not retry or record.key != key:
        if retry and record.phase == "intent":
            return Step.REPORT, False
        return Step.START, record.phase == "running"
    steps: dict[str, Step] = {
        "intent": Step.FIND_OUT,
        "running": Step.REATTACH,
        "done": Step.RELOAD,
    }
    return steps.get(record.phase, Step.START), False


def read_record(context: Context) -> SubmissionRecord | None:
    """Return the record of the last try; None if there is no store or no readable record."""
    store: Any = context.get("task_state_store")
    stored = store.get(STORE_KEY) if store is not None else None
    if not isinstance(stored, dict):
        return None
    try:
        return SubmissionRecord.from_json(stored)
    except KeyError:
        return None


class RecordKeeper:
    """The record of this task instance, for one key."""

    _warned_no_store = False

    def __init__(self, context: Context, key: str, *, durable: bool = True) -> None:
        self.key = key
        self.counters = TryCounters.of(context)
        self.store: Any = context.get("task_state_store") if durable else None
        """The task state store of Airflow; None before Airflow 3.3, or if nothing is recorded."""
        self._pending: SubmissionRecord | None = None
        self._stored: dict[str, Any] = {}
        """The ids that the store holds, as far as this try knows."""
        if self.store is None and durable and not RecordKeeper._warned_no_store:
            RecordKeeper._warned_no_store = True
            log.info(
                "This release of Airflow has no task state store (Airflow 3.3 and later have "
                "one). A retry of this task cannot re-attach to a run that an earlier try "
                "started."
            )

    def first_step(self, record: SubmissionRecord | None) -> tuple[Step, bool]:
        """Return the first step of this try, by the record of the last try (see `decide`)."""
        self._stored = record.ids if record is not None else {}
        return decide(record, self.key, self.counters)

    def write(self, phase: Phase, ids: Ids) -> None:
        """Write the record. If this raises, the announced call must not be made."""
        if self.store is not None:
            record = SubmissionRecord(self.key, phase, self.counters, dict(ids))
            self._pending = record
            self.store.set(STORE_KEY, record.to_json())
            self._pending, self._stored = None, record.ids

    def note(self, phase: Phase, ids: Ids) -> None:
        """Write the outcome of the call. If the store refuses (the task was stopped) or cannot be
        reached, log this: the call was made, and the task still needs its outcome. Airflow itself
        has repeated the write by then. `flush_pending` writes once more, before a task defers and
        after a PlatformError; a try that is killed has no time for it."""
        try:
            self.write(phase, ids)
        except Exception:
            log.warning(
                "The record of the run (phase: %s) could not be written to Airflow's task state "
                "store. The task continues. Unless a later write succeeds, a retry knows only the "
                "record before it.",
                phase,
                exc_info=True,
            )

    def flush_pending(self) -> None:
        """Write what could not be written before, if anything."""
        if self._pending is not None:
            self.note(self._pending.phase, self._pending.ids)

    def finds(self, ids: Ids | None) -> bool:
        """Return whether a retry finds the run of these ids: the last write succeeded, or the
        previously stored record names the same run."""
        if self.store is None:
            return False
        if self._pending is None:
            return True
        if ids is None:
            return False
        names = [name for name in ids if name.endswith("_id")]
        return all(self._stored.get(name) == ids[name] for name in names)


@dataclass(frozen=True)
class FailureDisposition:
    """`phase` is None if the record stays unchanged, so that a retry can continue from it."""

    phase: Phase | None
    stop: bool


def disposition_of(
    error: PlatformError, *, submitted: bool, named: bool, last_try: bool, can_stop: bool = True
) -> FailureDisposition:
    """Return how a try ends after this error.

    `submitted`: the submission was sent before the request that failed. `named`: the ids of the run
    are known, so it can be found or stopped. `last_try`: no later try will find the run.
    `can_stop`: a run that is too late is stopped; if it cannot be stopped, it continues and stays
    in the record.
    """
    if isinstance(error, PlatformOutcomeUnknownError):
        return FailureDisposition("lost", stop=False)
    if error.abandons_run:
        return (
            FailureDisposition("failed", stop=True)
            if named and can_stop
            else FailureDisposition(None, stop=False)
        )
    if error.ends_run or (not submitted and _was_not_taken(error)):
        return FailureDisposition("failed", stop=False)
    return FailureDisposition(None, stop=can_stop and (last_try or not error.retryable))


def _was_not_taken(error: PlatformError) -> bool:
    """Return whether an error means that a submission was refused or did not reach the service."""
    from airflow_provider_platform.client.repeats import cannot_have_been_processed

    refused = not error.retryable or isinstance(error, AlreadyRunningError)
    return refused or cannot_have_been_processed(error)
