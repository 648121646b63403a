"""Whether a killed task's remote run is stopped, by what Airflow says of the task.

A kill alone says nothing of what its user wants: a worker is also told to end when its machine is
drained, when it cannot reach Airflow, or when it was frozen and wakes after a retry took over; a
trigger also when it moves to another triggerer. The state of the task tells these apart.
"""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ENDED_STATES = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
"""States of a task that is not going to run again by itself."""

NEXT_TRY_STATES = frozenset(
    {None, "scheduled", "queued", "up_for_retry", "up_for_reschedule", "awaiting_input"}
)
"""States of a task of which another try will run; None is a cleared one that has not begun."""

UNKNOWN = "unknown"
"""Stands for a state that could not be looked up."""


def stops_run(
    state: str | None,
    *,
    killed: Literal["worker", "trigger"],
    last_try: bool = False,
    has_record: bool = True,
) -> bool:
    """Return whether to stop the remote run.

    `state` is the task's state in Airflow after the kill. For a worker, `last_try` means that no
    retry follows this try, and `has_record` that a retry can find the run: without a record
    nobody will find it again. A trigger stops the run only if the task has ended. If the task
    runs again, its next try stops the run, because a stop by the trigger may come late and meet
    that try.
    """
    if state in ENDED_STATES or not has_record:
        return True
    if state == "deferred" or killed == "trigger":
        return False
    if state == "restarting":
        return True
    return state not in NEXT_TRY_STATES and last_try


def run_within(seconds: float, function: Callable[[], T]) -> T:
    """What the function returns, from a thread that is waited for no longer than that.

    Raises what the function raises, and TimeoutError: the thread then goes on by itself, and does
    not keep the process from ending.
    """
    from concurrent.futures import Future

    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - who waits raises it
            outcome.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="on_kill", daemon=True).start()
    return outcome.result(max(0.0, seconds))
