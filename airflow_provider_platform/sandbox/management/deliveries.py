"""Report deliveries and scheduled tasks: their runs, and pause and resume. Nothing here writes a
spreadsheet or asks an agent, and there is no scheduler: every run was started by a request.

Their bodies are not documented, so the generic store keeps whatever is sent.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.items import Item

FAILURE = "The delivery would overwrite filled cells (Revenue!A1:C40)"
"""What a run that failed reports as its error."""
KEPT_TASK_RUNS = 50
_RUNS = {"report-deliveries": "report-delivery-runs", "scheduled-tasks": "scheduled-task-runs"}


@dataclass(frozen=True)
class Run:
    """One run; ``end`` is its status from ``ends_at`` on (Unix time)."""

    run_id: str
    created_at: float
    started_at: float
    ends_at: float
    end: str
    succeeds: bool = True
    error: str | None = None

    def is_running(self, now: float) -> bool:
        return self.started_at <= now < self.ends_at

    def answer(self, call: Call) -> Item:
        """Return the run as an operation on this one run answers."""
        now, stamp = call.server.clock.now(), call.server.clock.stamp
        queued, over = now < self.started_at, now >= self.ends_at
        return {
            "status": "queued" if queued else self.end if over else "running",
            "trigger": "manual",
            "startedAt": None if queued else stamp(self.started_at),
            "endedAt": stamp(self.ends_at) if over else None,
            "error": self.error if over else None,
        }


@dataclass
class Runs:
    """The runs of deliveries and of tasks, oldest first, by the resource and the item's id."""

    of: dict[tuple[str, int], list[Run]] = field(default_factory=dict)


def _runs(call: Call, name: str, item_id: int) -> list[Run]:
    return call.store(Runs).of.setdefault((name, item_id), [])


def _start(
    call: Call,
    name: str,
    item_id: int,
    end: str,
    *,
    queued: float = 0,
    seconds: float = 0,
    **more: Any,
) -> Run:
    now = call.server.clock.now()
    begins = now + queued
    run = Run(uuid.uuid4().hex, now, begins, begins + seconds, end, **more)
    _runs(call, name, item_id).append(run)
    call.record("created", _RUNS[name], run.run_id)
    return run


# -- deliveries ------------------------------------------------------------------------------


def _is_visible(call: Call, delivery: Item) -> bool:
    """Return whether the caller sees a delivery: an administrator sees all, others their own."""
    return call.may("Admin") or delivery.get("ownerUserId") == call.user


def _meant(call: Call) -> Item:
    found = store.item(call, "report-deliveries", call.path["id"])
    if not _is_visible(call, found):
        raise ApiError(404, f"Report delivery {found['id']} not found")
    return found


@store.view("report-deliveries")
def _shown(call: Call, delivery: Item) -> Item:
    clock, now = call.server.clock, call.server.clock.now()
    runs = _runs(call, "report-deliveries", delivery["id"])
    successes = [run for run in runs if run.succeeds and now >= run.ends_at]
    status = "paused" if delivery["paused"] else "active"
    shown = {name: value for name, value in delivery.items() if name != "paused"}
    return {
        **shown,
        "status": "running" if any(run.is_running(now) for run in runs) else status,
        "lastRunAt": clock.stamp(runs[-1].created_at) if runs else None,
        "lastSuccessAt": clock.stamp(successes[-1].ends_at) if successes else None,
    }


@handles("listReportDeliveries")
def list_deliveries(call: Call) -> Any:
    wanted = {name: value for name, value in call.query.items() if name != "spreadsheet"}
    sheet = call.query.get("spreadsheet")
    found = [
        _shown(call, one) for one in store.of(call, "report-deliveries") if _is_visible(call, one)
    ]
    return store.page(
        call,
        [
            one
            for one in found
            if all(one.get(name) == value for name, value in wanted.items())
            and sheet in (None, (one.get("destination") or {}).get("spreadsheet"))
        ],
    )


@handles("createReportDelivery")
def create_delivery(call: Call) -> Any:
    """The caller becomes the owner."""
    return _shown(call, store.create(call, {**call.body, "ownerUserId": call.user}))


@handles("getReportDelivery", "updateReportDelivery", "deleteReportDelivery")
def delivery(call: Call) -> Any:
    _meant(call)
    return store.perform(call)


@handles("pauseReportDelivery", "resumeReportDelivery")
def pause_or_resume(call: Call) -> Any:
    """Missed runs are not caught up."""
    found, paused = _meant(call), call.operation.id == "pauseReportDelivery"
    found["paused"] = paused
    call.record("paused" if paused else "resumed", "report-deliveries", found["id"])
    return _shown(call, found)


@handles("runReportDelivery")
def run_delivery(call: Call) -> Any:
    """Start a run, of a paused delivery too; 409 while one is going on."""
    found, settings = _meant(call), call.server.settings
    now = call.server.clock.now()
    if any(run.is_running(now) for run in _runs(call, "report-deliveries", found["id"])):
        raise ApiError(409, f"Report delivery {found['id']} is already running")
    outcome = settings.delivery_outcome
    word = {"succeeded": "succeeded", "failed": "failed", "unreported": "ended"}[outcome]
    run = _start(
        call,
        "report-deliveries",
        found["id"],
        word,
        queued=settings.delivery_queue_seconds,
        seconds=settings.delivery_seconds,
        succeeds=outcome == "succeeded",
        error=FAILURE if outcome == "failed" else None,
    )
    return {"runId": run.run_id}


@handles("listReportDeliveryRuns")
def list_delivery_runs(call: Call) -> Any:
    """The runs, newest first."""
    runs = _runs(call, "report-deliveries", _meant(call)["id"])
    return store.page(call, [{"id": run.run_id, **run.answer(call)} for run in runs[::-1]])


@handles("getReportDeliveryRun")
def get_delivery_run(call: Call) -> Any:
    wanted = call.path["runId"]
    for run in _runs(call, "report-deliveries", _meant(call)["id"]):
        if run.run_id == wanted:
            return {"runId": run.run_id, **run.answer(call)}
    raise ApiError(404, f"Run {wanted} not found")


# -- scheduled tasks -------------------------------------------------------------------------


@handles("listScheduledTasks")
def list_tasks(call: Call) -> Any:
    """Every task if ``first`` is left out."""
    return store.page(call, store.of(call, "scheduled-tasks"), everything=True)


@handles("createScheduledTask")
def create_task(call: Call) -> Any:
    return store.create(call, call.body, userId=call.user, nextRunAt=None)


@handles("updateScheduledTask", "deleteScheduledTask")
def change_task(call: Call) -> Any:
    _own_task(call)
    return store.perform(call)


@handles("runScheduledTask")
def run_task(call: Call) -> Any:
    """Start a run, which is over at once."""
    task = _own_task(call)
    return {"runId": _start(call, "scheduled-tasks", task["id"], "complete").run_id}


@handles("listScheduledTaskRuns")
def list_task_runs(call: Call) -> Any:
    """The newest runs, newest first."""
    task = store.item(call, "scheduled-tasks", call.path["taskId"])
    newest = _runs(call, "scheduled-tasks", task["id"])[: -KEPT_TASK_RUNS - 1 : -1]
    thread = [{"id": run.run_id, "threadId": f"thread-{run.run_id}"} for run in newest]
    rows = [{**ids, **run.answer(call)} for ids, run in zip(thread, newest, strict=True)]
    return store.page(call, rows)


def _own_task(call: Call) -> Item:
    """Return the task in the path, for its creator and for administrators only."""
    task = store.item(call, "scheduled-tasks", call.path["taskId"])
    if task["userId"] != call.user and not call.may("Admin"):
        raise ApiError(403, "Only the creator of a scheduled task or an administrator may do this")
    return task
