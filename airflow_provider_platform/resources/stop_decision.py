"""Whether the run of a killed task is stopped, by Airflow's state of the task.

A kill alone does not show what the user wants. A worker is also told to end when its machine is
drained, when it cannot reach Airflow, or when it was frozen and wakes after a retry took over.
Before Airflow 3.4 a trigger is also killed when it moves to another triggerer. The state of the
task distinguishes these cases. `operators._remote_run` and `triggers` ask here, stop the run and
log why.
"""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ENDED_STATES = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
"""States of a task that will not run again by itself."""

NEXT_TRY_STATES = frozenset(
    {None, "scheduled", "queued", "up_for_retry", "up_for_reschedule", "awaiting_input"}
)
"""States of a task that will have another try; None is a cleared task that has not begun."""

UNKNOWN = "unknown"
"""The state if it could not be read."""


def stops_run(state: str | None, *, last_try: bool) -> bool:
    """Return whether a killed worker stops its remote run, which a retry could find.

    `state` is the task's state in Airflow after the kill. `last_try` means that no retry follows
    this try.
    """
    if state in ENDED_STATES or state == "restarting":
        return True
    return state != "deferred" and state not in NEXT_TRY_STATES and last_try


def trigger_stops_run(state: str | None) -> bool:
    """Return whether a killed trigger stops its remote run, by the task's state after the kill: if
    the task has ended, or was cleared and waits to begin. In every other state another trigger or
    a later try may follow the run."""
    return state in ENDED_STATES or state is None


def run_within(seconds: float, function: Callable[[], T]) -> T:
    """Return the function's result from a thread, and wait for it at most so many seconds.

    Raises the error of the function, and TimeoutError. After a TimeoutError the thread continues
    alone; it does not keep the process from ending.
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
