"""Report deliveries: look, pause, resume, run now. Nothing here writes a spreadsheet.

Deliveries are not created, changed or deleted here: most of their properties are not documented.
There is no scheduler, so every run was started by a request.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.shared.runs_now import Run, Runs
from airflow_provider_platform.sandbox.state.server_state import ServerState


def _activated(server: ServerState) -> None:
    if not server.settings.deliveries_activated:
        raise ApiError(404, "Not Found")


resource = Resource(
    "/api/v1/deployments/{deploymentId}/report-deliveries",
    needs="ReportRead",
    since="0.17.0",
    available=_activated,
)

FAILURE = "The delivery would overwrite filled cells (Revenue!A1:C40)"
"""What a run that failed reports as its error."""


class Deliveries(Items):
    """Deliveries by id: 501 (no schedule), 502 (scheduled) and 503 (of another user)."""

    what = "Report delivery"

    def __init__(self) -> None:
        super().__init__(
            [
                _sample(501, 101, "Revenue by country", owner=7, cron=[]),
                _sample(502, 102, "Orders per month", owner=7, cron=["0 6 * * *"]),
                _sample(503, 103, "Top products", owner=8, cron=[]),
            ]
        )

    def visible(self, call: Call) -> list[Item]:
        """An administrator sees all, others see their own."""
        is_admin = "Admin" not in call.server.settings.token_lacks
        return [
            one for one in self.of(call.deployment) if is_admin or one["ownerUserId"] == call.user
        ]

    def get(self, call: Call, parameter: str = "id") -> Item:
        found = super().get(call, parameter)
        if found not in self.visible(call):
            raise ApiError(404, f"Report delivery {found['id']} not found")
        return found


class DeliveryRuns(Runs):
    """The runs of deliveries."""


resource.collections["report-deliveries"] = lambda server: server.store(Deliveries).all()


@resource.get(
    query={
        "reportId": checks.integer(),
        "ownerUserId": checks.integer(),
        "spreadsheet": checks.string(),
        "status": checks.string(),
    }
)
def list_report_deliveries(call: Call) -> Any:
    """The deliveries that the caller sees."""
    wanted = {name: call.query[name] for name in ("reportId", "ownerUserId") if name in call.query}
    sheet, status = call.query.get("spreadsheet"), call.query.get("status")
    found = [_answer(call, one) for one in call.store(Deliveries).visible(call)]
    return paging.page(
        call,
        [
            one
            for one in found
            if all(one[name] == value for name, value in wanted.items())
            and sheet in (None, one["destination"]["spreadsheet"])
            and status in (None, one["status"])
        ],
    )


@resource.get("/{id}")
def get_report_delivery(call: Call) -> Any:
    return _answer(call, call.store(Deliveries).get(call))


@resource.post("/{id}/pause", needs="ReportEdit")
def pause_report_delivery(call: Call) -> Any:
    return _set_paused(call, paused=True)


@resource.post("/{id}/resume", needs="ReportEdit")
def resume_report_delivery(call: Call) -> Any:
    """Missed runs are not caught up."""
    return _set_paused(call, paused=False)


@resource.post("/{id}/runs", needs="ReportEdit")
def run_report_delivery(call: Call) -> Response:
    """Start a run, of a paused delivery too; 409 while one is going on."""
    delivery, settings = call.store(Deliveries).get(call), call.server.settings
    runs, subject = call.store(DeliveryRuns), _subject(delivery)
    if runs.running(subject, call.server.clock.now()) is not None:
        raise ApiError(409, f"Report delivery {delivery['id']} is already running")
    outcome = settings.delivery_outcome
    word = {"succeeded": "succeeded", "failed": "failed", "unreported": "ended"}[outcome]
    run = runs.start(
        call,
        subject,
        seconds=settings.delivery_seconds,
        end="finished" if settings.delivery_ends == "finished" else word,
        succeeds=outcome == "succeeded",
        error=FAILURE if outcome == "failed" else None,
    )
    call.record("created", "report-delivery-runs", run.run_id)
    return JSONResponse({"runId": run.run_id}, status_code=202)


@resource.get("/{id}/runs")
def list_report_delivery_runs(call: Call) -> Any:
    """The runs, newest first."""
    subject = _subject(call.store(Deliveries).get(call))
    runs = call.store(DeliveryRuns).newest_first(subject)
    return paging.page(call, [run.row(call) for run in runs])


@resource.get("/{id}/runs/{runId:text}")
def get_report_delivery_run(call: Call) -> Any:
    subject = _subject(call.store(Deliveries).get(call))
    run = call.store(DeliveryRuns).get(subject, call.path["runId"])
    return {"runId": run.run_id, **run.answer(call)}


def _set_paused(call: Call, *, paused: bool) -> Any:
    delivery = call.store(Deliveries).get(call)
    delivery["paused"] = paused
    call.record("paused" if paused else "resumed", "report-deliveries", delivery["id"])
    return _answer(call, delivery)


def _subject(delivery: Item) -> tuple[int, int]:
    return delivery["deploymentId"], delivery["id"]


def _answer(call: Call, delivery: Item) -> Item:
    now, clock = call.server.clock.now(), call.server.clock
    runs = call.store(DeliveryRuns).newest_first(_subject(delivery))
    delay = call.server.settings.delivery_success_delay
    successes = [run for run in runs if run.succeeds and now >= run.ends_at + delay]
    status = "paused" if delivery["paused"] else "active"
    running = any(run.is_running(now) for run in runs)
    shown = {name: value for name, value in delivery.items() if name != "paused"}
    return {
        **shown,
        "status": "running" if running else status,
        "lastRunAt": _stamp(clock.stamp, runs, "started_at"),
        "lastSuccessAt": _stamp(clock.stamp, successes, "ends_at"),
    }


def _stamp(stamp: Any, runs: list[Run], moment: str) -> str | None:
    return stamp(getattr(runs[0], moment)) if runs else None


def _sample(delivery_id: int, report: int, name: str, *, owner: int, cron: list[str]) -> Item:
    return {
        "id": delivery_id,
        "deploymentId": 1,
        "name": name,
        "reportId": report,
        "ownerUserId": owner,
        "destination": {"spreadsheet": "1AbC", "sheetName": name, "anchorCell": "A1"},
        "writeMode": "overwrite",
        "schedule": {"cronExpressions": cron, "timezone": "UTC"} if cron else None,
        "shape": None,
        "notifications": {"inbox": True, "email": False},
        "paused": False,
    }
