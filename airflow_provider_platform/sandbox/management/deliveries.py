"""Report deliveries: their runs, and pause and resume. Nothing here writes a spreadsheet, and there
is no scheduler: every run was started by a request.

Their bodies are not documented, so the generic store keeps whatever is sent.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import Item

HANGS_SECONDS = 3600.0
"""After this time the service fails a run that hangs."""
FAILURE = "The delivery would overwrite filled cells (Revenue!A1:C40)"
"""What a run that failed reports as its error."""


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
    """The runs by the id of the delivery, oldest first."""

    of: dict[int, list[Run]] = field(default_factory=dict)


def _runs(call: Call, delivery_id: int) -> list[Run]:
    return call.store(Runs).of.setdefault(delivery_id, [])


def _meant(call: Call) -> Item:
    return generic_store.item(call, "report-deliveries", call.path["id"])


@generic_store.view("report-deliveries")
def _with_status(call: Call, delivery: Item) -> Item:
    clock, now = call.server.clock, call.server.clock.now()
    runs = _runs(call, delivery["id"])
    successes = [run for run in runs if run.succeeds and now >= run.ends_at]
    status = "paused" if delivery["paused"] else "active"
    return {
        "status": "running" if any(run.is_running(now) for run in runs) else status,
        "lastRunAt": clock.stamp(runs[-1].created_at) if runs else None,
        "lastSuccessAt": clock.stamp(successes[-1].ends_at) if successes else None,
    }


@handles("pauseReportDelivery", "resumeReportDelivery")
def pause_or_resume(call: Call) -> Any:
    """Missed runs are not caught up."""
    found, paused = _meant(call), call.operation.id == "pauseReportDelivery"
    found["paused"] = paused
    call.record("paused" if paused else "resumed", "report-deliveries", found["id"])
    return generic_store.shown(call, "report-deliveries", found)


@handles("runReportDelivery")
def run_delivery(call: Call) -> Any:
    """Start a run, of a paused delivery too; 409 while one is going on."""
    found, settings = _meant(call), call.server.settings
    runs, now = _runs(call, found["id"]), call.server.clock.now()
    if any(run.is_running(now) for run in runs):
        raise ApiError(409, f"Report delivery {found['id']} is already running")
    outcome = settings.delivery_outcome
    begins = now + settings.delivery_queue_seconds
    hangs = outcome == "hangs"
    run = Run(
        run_id=uuid.uuid4().hex,
        created_at=now,
        started_at=begins,
        ends_at=begins + (HANGS_SECONDS if hangs else settings.delivery_seconds),
        end={"unreported": "ended", "hangs": "failed"}.get(outcome, outcome),
        succeeds=outcome == "succeeded",
        error={"failed": FAILURE, "hangs": "The delivery did not end within an hour"}.get(outcome),
    )
    runs.append(run)
    call.record("created", "report-delivery-runs", run.run_id)
    return {"runId": run.run_id}


@handles("listReportDeliveryRuns")
def list_delivery_runs(call: Call) -> Any:
    """The runs, newest first."""
    runs = _runs(call, _meant(call)["id"])
    return generic_store.page(call, [{"id": run.run_id, **run.answer(call)} for run in runs[::-1]])


@handles("getReportDeliveryRun")
def get_delivery_run(call: Call) -> Any:
    wanted = call.path["runId"]
    for run in _runs(call, _meant(call)["id"]):
        if run.run_id == wanted:
            return {"runId": run.run_id, **run.answer(call)}
    raise ApiError(404, f"Run {wanted} not found")
