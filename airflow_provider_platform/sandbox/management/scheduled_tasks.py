"""Scheduled tasks: look and run now. No agent answers: a run takes its time and ends.

Tasks are not created, changed or deleted here: most of their properties are not documented.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.shared.runs_now import Run, Runs
from airflow_provider_platform.sandbox.state.server_state import ServerState

KEPT_RUNS = 50
_FAILURE = "The agent could not answer: a query ran into its time limit"


def _enabled(server: ServerState) -> None:
    if server.settings.has("0.15.0") and not server.settings.tasks_enabled:
        raise ApiError(403, "Scheduled tasks are not enabled for this account")


resource = Resource(
    "/api/v1/deployments/{deploymentId}/scheduled-tasks", since="0.15.0", available=_enabled
)


class ScheduledTasks(Items):
    """Tasks by id: 601 of the token's user, 602 of another user."""

    what = "Scheduled task"

    def __init__(self) -> None:
        super().__init__(
            {
                "id": number,
                "deploymentId": 1,
                "userId": user,
                "nextRunAt": next_run,
                "notificationEnabled": False,
            }
            for number, user, next_run in ((601, 7, None), (602, 8, "2026-12-01T06:00:00.000Z"))
        )


class TaskRuns(Runs):
    """The runs of scheduled tasks."""


resource.collections["scheduled-tasks"] = lambda server: server.store(ScheduledTasks).all()


@resource.get(query=paging.PARAMETERS)
def list_scheduled_tasks(call: Call) -> Any:
    """Every task where ``first`` is left out."""
    tasks = call.store(ScheduledTasks).of(call.deployment)
    call.query.setdefault("first", max(1, len(tasks)))
    return paging.page(call, tasks)


@resource.get("/{taskId}")
def get_scheduled_task(call: Call) -> Any:
    return call.store(ScheduledTasks).get(call, "taskId")


@resource.post("/{taskId}/run")
def run_scheduled_task(call: Call) -> Any:
    """Start a run, for the creator and for administrators only."""
    task, settings = call.store(ScheduledTasks).get(call, "taskId"), call.server.settings
    if task["userId"] != call.user and "Admin" in settings.token_lacks:
        raise ApiError(403, "Only the creator of a scheduled task or an administrator may run it")
    runs, subject = call.store(TaskRuns), _subject(task)
    is_running = runs.running(subject, call.server.clock.now()) is not None
    if is_running and settings.task_while_running == "409":
        raise ApiError(409, f"Scheduled task {task['id']} is already running")
    run = runs.start(
        call,
        subject,
        seconds=settings.task_seconds,
        end=settings.task_outcome,
        succeeds=settings.task_outcome == "complete",
        error=_FAILURE if settings.task_outcome == "failed" else None,
    )
    call.record("created", "scheduled-task-runs", run.run_id)
    return {} if settings.task_start_answer == "empty" else {"runId": run.run_id}


@resource.get("/{taskId}/runs", query=paging.PARAMETERS)
def list_scheduled_task_runs(call: Call) -> Any:
    """The newest runs, newest first."""
    subject = _subject(call.store(ScheduledTasks).get(call, "taskId"))
    runs = call.store(TaskRuns).newest_first(subject)[:KEPT_RUNS]
    return paging.page(call, [_row(call, run) for run in runs])


def _row(call: Call, run: Run) -> Item:
    row = {**run.row(call), "threadId": f"thread-{run.run_id}"}
    if call.server.settings.task_run_status == "none":
        del row["status"]
    return row


def _subject(task: Item) -> tuple[int, int]:
    return task["deploymentId"], task["id"]
