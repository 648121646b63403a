"""Whether the run of a killed task is stopped, by Airflow's state of the task.

A kill alone does not show what the user wants. A worker is also told to end when its machine is
drained, when it cannot reach Airflow, or when it was frozen and wakes after a retry took over.
Before Airflow 3.4 a trigger is also killed when it moves to another triggerer. The state of the
task distinguishes these cases. `operators._run_stop` and `triggers` ask here, stop the run and
log why.

Who stops a run, and when. All of them only with `cancel_on_kill`, and only a run that can be
stopped:

    who                                 when
    the task's `on_kill` on a worker    the task has ended, or no try will follow (`RunKill`)
    a try                               its `execution_timeout` is over (`RunKill`)
    a try that fails                    no later try will follow the run (`disposition_of`)
    a later try                         the input changed, or the task was cleared (`decide`), or
                                        the run is past its deadline
    the worker that resumes the task    the trigger did not report in time
    the trigger's `on_kill`             the deferred task has ended or was cleared
    the trigger                         at its deadline, or after a response that it cannot read;
                                        not if it stood still: others may have gone on
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
