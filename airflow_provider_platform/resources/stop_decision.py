"""Whether the run of a killed task is stopped, by Airflow's state of the task.

A kill alone does not show what the user wants. A worker is also told to end when its machine is
drained, when it cannot reach Airflow, or when it was frozen and wakes after a retry took over.
Before Airflow 3.4 a trigger is also killed when it moves to another triggerer. The state of the
task distinguishes these cases. `operators._remote_run` and `triggers` ask here, stop the run and
log why.
"""

from __future__ import annotations

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
