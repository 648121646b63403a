"""Dashboard exports: submit, look, download. A job lives five minutes, for its submitter only."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError, File
from airflow_provider_platform.sandbox.management.exports import pictures
from airflow_provider_platform.sandbox.management.shared import embed_bodies, users
from airflow_provider_platform.sandbox.management.shared.embed_tenants import (
    EmbedAccess,
    EmbedTenants,
)
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource, given
from airflow_provider_platform.sandbox.management.workbooks import dashboard_bodies
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards
from airflow_provider_platform.sandbox.state.server_state import ServerState

resource = Resource(
    "/api/v1/deployments/{deploymentId}/dashboard-exports", needs="WorkbookManage", since="0.7.0"
)

TYPES = {"png": "image/png", "pdf": "application/pdf"}
_FAILURE = "The dashboard could not be rendered: a query ran into its time limit"
_REVENUE = (
    "SELECT country, ROUND(SUM(amount), 2) FROM orders JOIN customers "
    "ON customers.id = orders.customer_id GROUP BY country ORDER BY 2 DESC"
)


@dataclass(frozen=True)
class Job:
    """One export. What it has come to is told by the clock: see ``status``."""

    job_id: str
    deployment: int
    caller: int
    rendered_as: str
    title: str
    format: str
    layout: str
    submitted_at: float
    pace: float
    expires_at: float
    outcome: str

    def status(self, now: float) -> str:
        stages = ("pending", "processing")
        passed = (now - self.submitted_at) / self.pace if self.pace else len(stages)
        return stages[int(passed)] if passed < len(stages) else self.outcome


class Exports:
    """Jobs by id, those that have expired included."""

    def __init__(self) -> None:
        self.by_id: dict[str, Job] = {}

    def get(self, call: Call) -> Job:
        job = self.by_id.get(call.path["jobId"])
        if (
            job is None
            or job.deployment != call.deployment
            or job.caller != call.user
            or job.expires_at <= call.server.clock.now()
        ):
            raise ApiError(404, f"Dashboard export {call.path['jobId']} not found or expired")
        return job

    def in_flight(self, rendered_as: str, now: float) -> int:
        return sum(
            job.rendered_as == rendered_as
            and job.expires_at > now
            and job.status(now) in ("pending", "processing")
            for job in self.by_id.values()
        )


@resource.post(
    body={
        "format": checks.needed(checks.string(one_of=tuple(TYPES))),
        "dashboardId": checks.integer(),
        "dashboardPublicId": checks.string(),
        "layout": checks.string(one_of=("screenshot", "print")),
        "renderAs": checks.nullable_fields(
            {
                "type": checks.needed(checks.string(one_of=("USER", "EMBED_USER"))),
                **embed_bodies.PERSON,
            }
        ),
        **dashboard_bodies.VARIABLES,
    }
)
def start_export(call: Call) -> Any:
    """One more job, every time it is asked for."""
    body, settings = call.body, call.server.settings
    layout = body.get("layout", "screenshot")
    if layout == "print" and body["format"] != "pdf":
        raise ApiError(400, ["layout print needs format pdf"])
    if ("dashboardId" in body) == ("dashboardPublicId" in body):
        raise ApiError(404, "Name the dashboard by exactly one of dashboardId, dashboardPublicId")
    dashboard = call.store(Dashboards).named(call, body)
    rendered_as = _subject(call, dashboard, body.get("renderAs"))
    call.require("DownloadData")
    if dashboard["restrictDataDownload"]:
        raise ApiError(403, f"Dashboard {dashboard['id']} does not allow data to be downloaded")
    store, now = call.store(Exports), call.server.clock.now()
    if store.in_flight(rendered_as, now) >= settings.export_limit:
        raise ApiError(429, f"Too many exports are in flight for {rendered_as}")
    job = Job(
        job_id=uuid.uuid4().hex,
        deployment=call.deployment,
        caller=call.user,
        rendered_as=rendered_as,
        title=str(dashboard["title"]),
        format=body["format"],
        layout=layout,
        submitted_at=now,
        pace=settings.export_pace,
        expires_at=now + settings.export_lifetime,
        outcome=settings.export_outcome,
    )
    store.by_id[job.job_id] = job
    call.record("created", "dashboard-exports", job.job_id)
    return {"jobId": job.job_id, "expiresAt": call.server.clock.stamp(job.expires_at)}


@resource.get("/{jobId:text}")
def get_export_status(call: Call) -> Any:
    job = call.store(Exports).get(call)
    status = job.status(call.server.clock.now())
    answer: dict[str, Any] = {
        "status": status,
        "progress": {"pending": 0, "processing": 50}.get(status, 100),
    }
    if status == "completed":
        answer["contentType"] = TYPES[job.format]
    if status == "failed":
        answer["error"] = _FAILURE
    return answer


@resource.get("/{jobId:text}/download", query={"filename": checks.string()})
def download_export(call: Call) -> Response:
    """The file, in several pieces."""
    job = call.store(Exports).get(call)
    status = job.status(call.server.clock.now())
    if status == "failed":
        raise ApiError(422, _FAILURE)
    if status != "completed":
        raise ApiError(409, f"Dashboard export {job.job_id} is still {status}")
    content = rendered(call.server, job)
    name = quote(f"{call.query.get('filename', 'dashboard')}.{job.format}")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return File(content, media_type=TYPES[job.format], headers=headers)


def _subject(call: Call, dashboard: Item, fields: dict[str, Any] | None) -> str:
    """Whom the dashboard is drawn for, by name."""
    if fields is None:
        return str(users.owner(call.user)["email"])
    call.require("Admin")
    named = given(fields)
    if named["type"] == "USER":
        if ("userId" in named) == ("email" in named):
            raise ApiError(400, ["renderAs of type USER needs exactly one of userId and email"])
        user = users.find(named.get("userId"), named.get("email"))
        if user is None:
            raise ApiError(404, "renderAs names no active user of this account")
        return str(user["email"])
    if "embedTenantName" not in named or "externalId" not in named:
        raise ApiError(400, ["renderAs of type EMBED_USER needs embedTenantName and externalId"])
    tenant = call.store(EmbedTenants).named(named["embedTenantName"])["name"]
    granted = call.store(EmbedAccess).of(dashboard["workbookId"])
    if not granted & {tenant, EmbedAccess.ALL}:
        raise ApiError(403, f"The workbook is not shared with the embed tenant {tenant}")
    return f"{tenant}/{named['externalId']}"


def rendered(server: ServerState, job: Job) -> bytes:
    """The revenue by country, whatever the dashboard: the file is real, its content a sample."""
    rows = server.warehouse.query(_REVENUE, limit=100).rows
    if job.format == "png":
        return pictures.bar_chart([amount for _, amount in rows])
    lines = [job.title, "", *(f"{country}: {amount:,.2f}" for country, amount in rows)]
    return pictures.page(lines, pictures.A4 if job.layout == "print" else pictures.SCREEN)
