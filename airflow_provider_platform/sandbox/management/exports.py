"""Dashboard exports: submit, poll, download. A job lives five minutes.

The files open: a bar chart as PNG and a page of text as PDF are written without any library.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from airflow_provider_platform.sandbox.http.responses import ApiError, File
from airflow_provider_platform.sandbox.management.call import Call, given, handles
from airflow_provider_platform.sandbox.management.samples import Item, find_user, owner
from airflow_provider_platform.sandbox.management.workbooks import named_dashboard
from airflow_provider_platform.sandbox.state.server_state import ServerState

_WIDTH, _HEIGHT, _MARGIN = 480, 270, 20
_BACKGROUND, _BAR = bytes((255, 255, 255)), bytes((64, 96, 176))
A4 = (595, 842)
SCREEN = (960, 540)


def bar_chart(values: Sequence[float]) -> bytes:
    """A PNG of 480 by 270 pixels with one bar for each value."""
    most = max([*values, 1])
    slot = (_WIDTH - 2 * _MARGIN) // max(len(values), 1)
    tops = [_HEIGHT - _MARGIN - int((_HEIGHT - 2 * _MARGIN) * value / most) for value in values]
    rows = bytearray()
    for y in range(_HEIGHT):
        rows.append(0)
        row = bytearray(_BACKGROUND * _WIDTH)
        for index, top in enumerate(tops):
            if top <= y < _HEIGHT - _MARGIN:
                left = _MARGIN + index * slot
                width = max(slot - 8, 1)
                row[3 * left : 3 * (left + width)] = _BAR * width
        rows += row
    header = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in parts)


def page(lines: Sequence[str], size: tuple[int, int]) -> bytes:
    """A PDF of one page of ``size`` (points), with ``lines`` from its top."""
    text = b"BT /F1 14 Tf 18 TL 40 %d Td " % (size[1] - 50)
    text += b" ".join(b"(%s) Tj T*" % _pdf_text(line) for line in lines) + b" ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>" % size,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    document = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(document)
    document += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    document += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    document += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return bytes(document + b"startxref\n%d\n%%%%EOF\n" % start)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pdf_text(line: str) -> bytes:
    escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return escaped.encode("cp1252", "replace")


TYPES = {"png": "image/png", "pdf": "application/pdf"}
LIFETIME = 300
"""Seconds for which a job and its file are kept."""
MOST_IN_FLIGHT = 5
"""The most simultaneous exports for one rendered identity."""
_FAILURE = "The dashboard could not be rendered: a query ran into its time limit"
_REVENUE = (
    "SELECT country, ROUND(SUM(amount), 2) FROM orders JOIN customers "
    "ON customers.id = orders.customer_id GROUP BY country ORDER BY 2 DESC"
)


@dataclass(frozen=True)
class Job:
    """One export. The clock decides its status."""

    job_id: str
    deployment: int
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
    """Jobs by id, including those that have expired."""

    def __init__(self) -> None:
        self.by_id: dict[str, Job] = {}

    def in_flight(self, rendered_as: str, now: float) -> int:
        return sum(
            job.rendered_as == rendered_as
            and job.expires_at > now
            and job.status(now) in ("pending", "processing")
            for job in self.by_id.values()
        )


def _meant(call: Call) -> Job:
    job = call.store(Exports).by_id.get(call.path["jobId"])
    ours = job is not None and job.deployment == call.deployment
    if job is None or not ours or job.expires_at <= call.server.clock.now():
        raise ApiError(404, f"Dashboard export {call.path['jobId']} not found or expired")
    return job


@handles("startExport")
def start_export(call: Call) -> Any:
    """One more job, every time it is asked for."""
    body, settings = call.body, call.server.settings
    layout = body.get("layout", "screenshot")
    if layout == "print" and body["format"] != "pdf":
        raise ApiError(400, ["layout print needs format pdf"])
    if ("dashboardId" in body) == ("dashboardPublicId" in body):
        raise ApiError(404, "Name the dashboard by exactly one of dashboardId, dashboardPublicId")
    dashboard = named_dashboard(call, body)
    rendered_as = _subject(call, body.get("renderAs"))
    call.require("DownloadData")
    if dashboard["restrictDataDownload"]:
        raise ApiError(403, f"Dashboard {dashboard['id']} does not allow data to be downloaded")
    jobs, now = call.store(Exports), call.server.clock.now()
    if jobs.in_flight(rendered_as, now) >= MOST_IN_FLIGHT:
        raise ApiError(429, f"Too many exports are in flight for {rendered_as}")
    job = Job(
        job_id=uuid.uuid4().hex,
        deployment=call.deployment,
        rendered_as=rendered_as,
        title=str(dashboard["title"]),
        format=body["format"],
        layout=layout,
        submitted_at=now,
        pace=settings.export_pace,
        expires_at=now + LIFETIME,
        outcome=settings.export_outcome,
    )
    jobs.by_id[job.job_id] = job
    call.record("created", "dashboard-exports", job.job_id)
    return {"jobId": job.job_id, "expiresAt": call.server.clock.stamp(job.expires_at)}


@handles("getExportStatus")
def get_status(call: Call) -> Any:
    job = _meant(call)
    status = job.status(call.server.clock.now())
    progress = {"pending": 0, "processing": 50}.get(status, 100)
    more = {"completed": {"contentType": TYPES[job.format]}, "failed": {"error": _FAILURE}}
    return {"status": status, "progress": progress, **more.get(status, {})}


@handles("downloadExport")
def download(call: Call) -> Response:
    """The file, in several pieces."""
    job = _meant(call)
    status = job.status(call.server.clock.now())
    if status == "failed":
        raise ApiError(422, _FAILURE)
    if status != "completed":
        raise ApiError(409, f"Dashboard export {job.job_id} is still {status}")
    name = quote(f"{call.query.get('filename', 'dashboard')}.{job.format}")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return File(rendered(call.server, job), media_type=TYPES[job.format], headers=headers)


def _subject(call: Call, fields: Item | None) -> str:
    """Return the name of the person for whom the dashboard is rendered."""
    if fields is None:
        return str(owner(call.user)["email"])
    call.require("Admin")
    named = given(fields)
    if named["type"] == "EMBED_USER":
        if "embedTenantName" not in named or "externalId" not in named:
            raise ApiError(
                400, ["renderAs of type EMBED_USER needs embedTenantName and externalId"]
            )
        return f"{named['embedTenantName']}/{named['externalId']}"
    if ("userId" in named) == ("email" in named):
        raise ApiError(400, ["renderAs of type USER needs exactly one of userId and email"])
    user = find_user(named.get("userId"), named.get("email"))
    if user is None:
        raise ApiError(404, "renderAs names no active user of this account")
    return str(user["email"])


def rendered(server: ServerState, job: Job) -> bytes:
    """Return the revenue by country, whatever the dashboard: a real file with sample content."""
    rows = server.warehouse.query(_REVENUE, limit=100).rows
    if job.format == "png":
        return bar_chart([amount for _, amount in rows])
    lines = [job.title, "", *(f"{country}: {amount:,.2f}" for country, amount in rows)]
    return page(lines, A4 if job.layout == "print" else SCREEN)
