"""Submission once: the record that keeps a task from doing the same thing twice.

Before a call that must not be repeated the task writes what it is about to do, after it what came
of it. The record lives in the task state store (Airflow 3.3+), which survives retries, crashes and
clearing; XComs do not. On older releases there is no store: the same code runs, starts a new run in
each try, and says so.

A later try reads the record and decides what to do first:

    phase     retry, same key           retry, other key             after a clear
    intent    find out what happened    report what may have happened  start
    running   re-attach                 stop that run, start         stop that run, start
    done      reload the result         start                        start
    failed    start                     start                        start
    lost      start                     start                        start

The key is a fingerprint of address, identity and input. `TryCounters` tell a retry from a clear;
they can be wrong, so a try that re-attaches must get past a run that was stopped. A try that ends
with an error leaves the phase, and the run, by `disposition_of`: no run that no try will follow may
go on.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import (
    BuildFailedError,
    ChatAbortedError,
    ChatEndUnknownError,
    ChatError,
    ChatNoAnswerError,
    ChatRpcError,
    DashboardExportFailedError,
    DbtSyncCancelledError,
    DbtSyncFailedError,
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    PreAggregationBuildFailedError,
    PreAggregationJobsLostError,
)

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context

log = logging.getLogger(__name__)

STORE_KEY = "platform_submission"
WRITE_AGAIN_SECONDS = 5.0

Phase = Literal["intent", "running", "done", "failed", "lost"]


@dataclass(frozen=True)
class TryCounters:
    """What Airflow counts of a task and its DAG run; None where a release does not say.

    `max_tries` and `try_number` are the task instance's, `retries` the task's own setting, and
    `clear_number` counts the clears of the whole DAG run.
    """

    max_tries: int = 0
    try_number: int | None = None
    retries: int | None = None
    clear_number: int | None = None

    @classmethod
    def of(cls, context: Context) -> TryCounters:
        """The counters of the try that has this context."""
        ti: Any = context.get("ti")
        return cls(
            int(getattr(ti, "max_tries", 0) or 0),
            getattr(ti, "try_number", None),
            getattr(getattr(ti, "task", None), "retries", None),
            getattr(context.get("dag_run"), "clear_number", None),
        )

    def is_retry_of(self, earlier: TryCounters) -> bool:
        """Whether no clear of the task lies between the earlier try and this one.

        A clear sets `max_tries` to the tries so far plus `retries`, a retry leaves it. So it rises,
        unless `retries` was lowered in between: then the clear shows in the DAG run's
        `clear_number`, which rises with the clear of any task. Airflow 3.3.2 loses the new
        `max_tries` of some tasks that are cleared at once while they run; a try beyond it gives
        that away. The same try, going on, is no clear.
        """
        if self.try_number is not None and self.try_number == earlier.try_number:
            return True
        if self.try_number is not None and self.try_number > self.max_tries + 1:
            return False
        if self.retries != earlier.retries and self._was_cleared_after(earlier):
            return False
        return self.max_tries == earlier.max_tries

    def _was_cleared_after(self, earlier: TryCounters) -> bool:
        """Whether some task of the DAG run was cleared since."""
        return (self.clear_number or 0) > (earlier.clear_number or 0)


@dataclass(frozen=True)
class SubmissionRecord:
    """What is known of one submission; `ids` names it at the service and never holds a secret.
    The counters are those of the try that wrote the record."""

    key: str
    phase: Phase
    counters: TryCounters
    ids: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> SubmissionRecord:
        """The record as it was stored. Raises KeyError for something that is no record."""
        names = {counter.name for counter in fields(TryCounters)}
        counters = {name: value for name, value in stored.items() if name in names}
        return cls(stored["key"], stored["phase"], TryCounters(**counters), stored["ids"])

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON, in one level."""
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
    """What the last try left; None where there is no store, or nothing that can be read."""
    store: Any = context.get("task_state_store")
    stored = store.get(STORE_KEY) if store is not None else None
    if not isinstance(stored, dict):
        return None
    try:
        return SubmissionRecord.from_json(stored)
    except KeyError:
        return None


class Submission:
    """The record of this task instance, for one key.

    What could not be written is written as soon as the store answers, from a thread of its own: a
    try that waits for a run has nothing else to do with Airflow until the end.
    """

    _warned_no_store = False

    def __init__(self, context: Context, key: str) -> None:
        self.key = key
        self._counters = TryCounters.of(context)
        self._store: Any = context.get("task_state_store")
        self._lock = threading.RLock()
        self._pending: SubmissionRecord | None = None
        self._stored: dict[str, Any] = {}
        """The ids that the store holds, as far as this try knows."""
        self._closed = threading.Event()
        self._writer: threading.Thread | None = None
        if self._store is None and not Submission._warned_no_store:
            Submission._warned_no_store = True
            log.info(
                "This Airflow has no task state store (it needs 3.3 or later). A retry of this "
                "task cannot re-attach to a run that an earlier try started."
            )

    def first_step(self, record: SubmissionRecord | None) -> tuple[Step, bool]:
        """What this try does first, by what the last one left (see `decide`)."""
        self._stored = record.ids if record is not None else {}
        return decide(record, self.key, self._counters)

    def write(self, phase: Phase, ids: dict[str, Any]) -> None:
        """Write the record; the call that it announces must not happen where this raises."""
        self._write(self._record(phase, ids))

    def note(self, phase: Phase, ids: dict[str, Any]) -> None:
        """Write what came of the call. A store that refuses (the task was ended from outside) or
        cannot be reached is logged: what has happened stands, and its outcome is still wanted."""
        record = self._record(phase, ids)
        with self._lock:
            try:
                self._write(record)
            except Exception:
                log.warning(
                    "The record of the run (%s) could not be written to Airflow's task state "
                    "store. The task writes it again later.",
                    phase,
                    exc_info=True,
                )
                self._pending = record
                self._write_later()

    def flush_pending(self) -> None:
        """Write now what could not be written before, if anything."""
        with self._lock:
            record = self._pending
            if record is not None:
                self._flush(record)

    @property
    def is_stored(self) -> bool:
        """Whether the store holds what this try has noted last. Waits for nothing."""
        return self._store is not None and self._pending is None

    def finds(self, ids: dict[str, Any] | None) -> bool:
        """Whether a retry finds the run of these ids: by what was noted last or, where the store
        has refused that, by what it holds of before, which may name the run as well. Waits for
        nothing."""
        if ids is None or self._store is None or self._pending is None:
            return self.is_stored
        names = [name for name in ids if name.endswith("_id")]
        return all(self._stored.get(name) == ids[name] for name in names)

    def close(self) -> None:
        """This try writes no more."""
        self._closed.set()

    def _record(self, phase: Phase, ids: dict[str, Any]) -> SubmissionRecord:
        return SubmissionRecord(self.key, phase, self._counters, dict(ids))

    def _write(self, record: SubmissionRecord) -> None:
        if self._store is None:
            return
        with self._lock:
            self._pending = None  # whatever becomes of this one, it is the newer
            self._store.set(STORE_KEY, record.to_json())
            self._stored = record.ids

    def _write_later(self) -> None:
        if self._writer is None and not self._closed.is_set():
            # The task's log and what hides secrets in it come with the context.
            run = contextvars.copy_context().run
            self._writer = threading.Thread(
                target=run, args=(self._write_pending,), name="record", daemon=True
            )
            self._writer.start()

    def _write_pending(self) -> None:
        """Write what is pending once the store answers, unless this try ends before."""
        while not self._closed.wait(WRITE_AGAIN_SECONDS):
            with self._lock:
                if self._pending is None or self._flush(self._pending):
                    self._writer = None
                    return

    def _flush(self, record: SubmissionRecord) -> bool:
        try:
            self._write(record)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            self._pending = record
            log.debug("The record of the run still cannot be written: %s", error)
            return False
        log.info("The record of the run (%s) was written.", record.phase)
        return True


@dataclass(frozen=True)
class FailureDisposition:
    """`phase` is None where the record stays as it is, for a retry to go on from."""

    phase: Phase | None
    stop: bool


def disposition_of(
    error: PlatformError, *, submitted: bool, named: bool, last_try: bool, can_stop: bool = True
) -> FailureDisposition:
    """Return how a try ends that met this error.

    `submitted`: the submission is known to have gone out before the request that failed. `named`:
    the run can be looked up or stopped. `last_try`: no later try will find the run. `can_stop`:
    a run that is too late is stopped; if it cannot be, it goes on and the record keeps it.
    """
    if isinstance(error, PlatformOutcomeUnknownError):
        return FailureDisposition("lost", stop=False)
    if isinstance(error, PlatformDeadlineError | PlatformProtocolError):
        return (
            FailureDisposition("failed", stop=True)
            if named and can_stop
            else FailureDisposition(None, stop=False)
        )
    if _run_has_ended(error) or (not submitted and _was_not_taken(error)):
        return FailureDisposition("failed", stop=False)
    return FailureDisposition(None, stop=can_stop and (last_try or not error.retryable))


def run_is_dead(error: PlatformError) -> bool:
    """Whether an error of a re-attached run means that nothing will come of the run: it was
    stopped, or ended without an answer, or does not go on and has no reported end. (Polling a run
    that was stopped can show each of these.)"""
    return isinstance(
        error,
        ChatAbortedError
        | ChatNoAnswerError
        | ChatEndUnknownError
        | DbtSyncCancelledError
        | PreAggregationJobsLostError,
    )


def _run_has_ended(error: PlatformError) -> bool:
    """Whether an error is the service's word that the run is over. A refused credential (JSON-RPC)
    says nothing of the run."""
    ends = (
        BuildFailedError
        | DbtSyncFailedError
        | DbtSyncCancelledError
        | DashboardExportFailedError
        | PreAggregationBuildFailedError
        | PreAggregationJobsLostError
        | ChatError
    )
    return isinstance(error, ends) and not isinstance(error, ChatRpcError)


def _was_not_taken(error: PlatformError) -> bool:
    """Whether an error says that a submission was refused or did not reach the service."""
    from airflow_provider_platform.client.http.retry import cannot_have_been_processed

    return not error.retryable or cannot_have_been_processed(error)
