"""What a try does first: the table over what an earlier try has recorded.

    phase     retry, same key           retry, other key             after a clear
    intent    find out what happened    report what may have happened  start
    running   re-attach                 stop that run, start         stop that run, start
    done      reload the result         start                        start
    failed    start                     start                        start
    lost      start                     start                        start

The key is a fingerprint of address, identity and input. `TryCounters` tell a retry from a clear;
they can be wrong, so a try that re-attaches must get past a run that was stopped.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context

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
