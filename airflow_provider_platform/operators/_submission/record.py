"""Submission once: the record that keeps a task from doing the same thing twice.

Before a call that must not be repeated the task writes what it is about to do, after it what came
of it. The record lives in the task state store (Airflow 3.3+), which survives retries, crashes and
clearing; XComs do not. A later try reads it and decides by the table of `retry`. On older releases
there is no store: the same code runs, starts anew each time, and says so.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.operators._submission.retry import (
    Phase,
    Step,
    SubmissionRecord,
    TryCounters,
    decide,
)

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context

log = logging.getLogger(__name__)

STORE_KEY = "platform_submission"
WRITE_AGAIN_SECONDS = 5.0


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

    _told_no_store = False

    def __init__(self, context: Context, key: str) -> None:
        self.key = key
        self._counters = TryCounters.of(context)
        self._store: Any = context.get("task_state_store")
        self._lock = threading.RLock()
        self._missed: SubmissionRecord | None = None
        self._stored: dict[str, Any] = {}
        """The ids that the store holds, as far as this try knows."""
        self._closed = threading.Event()
        self._writer: threading.Thread | None = None
        if self._store is None and not Submission._told_no_store:
            Submission._told_no_store = True
            log.info(
                "This Airflow has no task state store (3.3 or later has one): a retry of this "
                "task cannot take up a run that an earlier try has started."
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
                    "The record of the run (%s) could not be written; it is tried again.",
                    phase,
                    exc_info=True,
                )
                self._missed = record
                self._write_later()

    def make_up(self) -> None:
        """Write now what could not be written before, if anything."""
        with self._lock:
            record = self._missed
            if record is not None:
                self._make_up(record)

    @property
    def is_stored(self) -> bool:
        """Whether the store holds what this try has noted last. Waits for nothing."""
        return self._store is not None and self._missed is None

    def finds(self, ids: dict[str, Any] | None) -> bool:
        """Whether a retry finds the run of these ids: by what was noted last or, where the store
        has refused that, by what it holds of before, which may name the run as well. Waits for
        nothing."""
        if ids is None or self._store is None or self._missed is None:
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
            self._missed = None  # whatever becomes of this one, it is the newer
            self._store.set(STORE_KEY, record.to_json())
            self._stored = record.ids

    def _write_later(self) -> None:
        if self._writer is None and not self._closed.is_set():
            # The task's log and what hides secrets in it come with the context.
            run = contextvars.copy_context().run
            self._writer = threading.Thread(
                target=run, args=(self._write_missed,), name="record", daemon=True
            )
            self._writer.start()

    def _write_missed(self) -> None:
        """Write what was missed once the store answers, unless this try ends before."""
        while not self._closed.wait(WRITE_AGAIN_SECONDS):
            with self._lock:
                if self._missed is None or self._make_up(self._missed):
                    self._writer = None
                    return

    def _make_up(self, record: SubmissionRecord) -> bool:
        try:
            self._write(record)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            self._missed = record
            log.debug("The record of the run cannot be written yet: %s", error)
            return False
        log.info("The record of the run (%s) is written now.", record.phase)
        return True
