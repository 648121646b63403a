"""What a retry does: the table over what an earlier try has recorded.

    phase     a retry with the same key     otherwise (input changed, or task cleared)
    intent    find out what happened        start anew
    running   re-attach                     stop that run, start anew
    done      take the result again         start anew
    failed    start anew                    start anew
    lost      start anew                    start anew

The key is a fingerprint of address, identity and input. What tells a retry from a clear stands in
`_is_retry`; it can be wrong, so a try that takes up a run must get past a dead one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

Phase = Literal["intent", "running", "done", "failed", "lost"]


@dataclass(frozen=True)
class SubmissionRecord:
    """What one submission has come to; `ids` holds what names it at the service, never a secret.
    `try_number` is that of the try that wrote it, None in a record of an early release."""

    key: str
    max_tries: int
    phase: Phase
    ids: dict[str, Any] = field(default_factory=dict)
    try_number: int | None = None


class Step(Enum):
    """What a try does first."""

    START = "start anew"
    RECOVER = "find out what happened"
    REATTACH = "follow the run that is under way"
    TAKE = "take the result again"


def decide(
    record: SubmissionRecord | None, key: str, max_tries: int, try_number: int | None = None
) -> tuple[Step, bool]:
    """The first step of a try, and whether the recorded run must be stopped before."""
    if record is None:
        return Step.START, False
    if record.key != key or not _is_retry(record, max_tries, try_number):
        return Step.START, record.phase == "running"
    steps: dict[str, Step] = {
        "intent": Step.RECOVER,
        "running": Step.REATTACH,
        "done": Step.TAKE,
    }
    return steps.get(record.phase, Step.START), False


def _is_retry(record: SubmissionRecord, max_tries: int, try_number: int | None) -> bool:
    """Whether the try follows the recorded one without a clear in between.

    A clear raises `max_tries`, a retry leaves it. Airflow 3.3.2 loses the raise where several
    running tasks are cleared at once; what it lets through then is a retry that `max_tries` would
    not allow, or one that nothing tells from a clear. The same try, gone on with, is none.
    """
    if try_number is not None and try_number == record.try_number:
        return True
    if try_number is not None and try_number > max_tries + 1:
        return False
    return record.max_tries == max_tries
