"""Submission once: the record that keeps a task from doing the same thing twice.

Before a call that must not be repeated the task writes what it is about to do, after it what came
of it. The record lives in the task state store (Airflow 3.3+), which survives retries, crashes and
clearing; XComs do not. A later try reads it and decides, by these rules:

    phase     same key and max_tries        otherwise (input changed, or task cleared)
    intent    find out what happened        start anew
    running   re-attach                     stop that run, start anew
    done      take the result again         start anew
    failed    start anew                    start anew
    lost      start anew                    start anew

The key is a fingerprint of address, identity and input. A retry does not change `max_tries`, a
clear does. On older releases there is no store: the same code runs, starts anew each time, and
says so.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context

log = logging.getLogger(__name__)

STORE_KEY = "platform_submission"

Phase = Literal["intent", "running", "done", "failed", "lost"]


@dataclass(frozen=True)
class SubmissionRecord:
    """What one submission has come to; `ids` holds what names it at the service, never a secret."""

    key: str
    max_tries: int
    phase: Phase
    ids: dict[str, Any] = field(default_factory=dict)


class Step(Enum):
    """What a try does first."""

    START = "start anew"
    RECOVER = "find out what happened"
    REATTACH = "follow the run that is under way"
    TAKE = "take the result again"


def decide(record: SubmissionRecord | None, key: str, max_tries: int) -> tuple[Step, bool]:
    """The first step of a try, and whether the recorded run must be stopped before."""
    if record is None:
        return Step.START, False
    if record.key != key or record.max_tries != max_tries:
        return Step.START, record.phase == "running"
    steps: dict[str, Step] = {
        "intent": Step.RECOVER,
        "running": Step.REATTACH,
        "done": Step.TAKE,
    }
    return steps.get(record.phase, Step.START), False


def read_record(context: Context) -> SubmissionRecord | None:
    """What the last try left; None where there is no store, or nothing that can be read."""
    store: Any = context.get("task_state_store")
    stored = store.get(STORE_KEY) if store is not None else None
    try:
        return SubmissionRecord(**stored) if isinstance(stored, dict) else None
    except TypeError:
        return None


class Submission:
    """The record of this task instance, for one key."""

    _told_no_store = False

    def __init__(self, context: Context, key: str) -> None:
        self.key = key
        self.max_tries = int(getattr(context.get("ti"), "max_tries", 0) or 0)
        self._store: Any = context.get("task_state_store")
        if self._store is None and not Submission._told_no_store:
            Submission._told_no_store = True
            log.info(
                "This Airflow has no task state store (3.3 or later has one): a retry of this "
                "task cannot take up a run that an earlier try has started."
            )

    def write(self, phase: Phase, ids: dict[str, Any]) -> None:
        """Write the record; the call that it announces must not happen where this raises."""
        if self._store is not None:
            record = SubmissionRecord(self.key, self.max_tries, phase, ids)
            self._store.set(STORE_KEY, asdict(record))

    def note(self, phase: Phase, ids: dict[str, Any]) -> None:
        """Write what came of the call. A store that refuses (the task was ended from outside) or
        cannot be reached is logged: what has happened stands, and its outcome is still wanted."""
        try:
            self.write(phase, ids)
        except Exception:
            log.warning("The record of the run (%s) could not be written.", phase, exc_info=True)
