"""The pages' routes, below ``/app/`` and at ``/``: read only, for the machine's own browser.

What the pages show is escaped by the template library; they load nothing but their own style sheet
and pictures, run no scripts, and hide the sandbox's credentials wherever they might stand. A chart
that a task wrote as HTML has scripts: it is shown in a frame without an origin, so that it can read
nothing of this sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.chat.threads import Threads
from airflow_provider_platform.sandbox.management import exports
from airflow_provider_platform.sandbox.management.items import Items
from airflow_provider_platform.sandbox.pages import files
from airflow_provider_platform.sandbox.pages.threads import turns
from airflow_provider_platform.sandbox.state.branches import Branches
from airflow_provider_platform.sandbox.state.server_state import ServerState

PREFIX = "/app/"
_TEMPLATES = Path(__file__).parent / "templates"
_FILES = f"{PREFIX}file"
_LATEST = 100
"""Requests that the overview lists."""
_RESOURCES = ("dashboards", "notifications", "reports", "workbooks")
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FRAMED = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
)
"""The policy of a page of HTML that a task wrote: it runs, without an origin, and loads nothing."""
_ASKED_BY_BROWSERS = ("/", "/app", "/favicon.ico", "/robots.txt")
"""Paths that are no operation, which a person or a browser by itself asks for."""


def belongs_here(method: str, path: str) -> bool:
    """Whether a page answers the request: pages are not part of the service that is played."""
    is_page = path in _ASKED_BY_BROWSERS or path.startswith(PREFIX)
    return method in ("GET", "HEAD") and is_page


def routes(server: Callable[[], ServerState]) -> list[Route]:
    """The routes of the current server state, which a reset replaces."""
    site = _Site(server)
    table: list[tuple[str, Callable[[Request], Response]]] = [
        ("/", site.overview),
        ("/app", site.overview),
        ("/app/style.css", site.style),
        ("/app/icon.svg", site.icon),
        ("/favicon.ico", site.icon),
        ("/app/file", site.file),
        ("/app/file/content", site.file_content),
        ("/app/agents/{agent}", site.overview),
        ("/app/threads/{chat}", site.thread),
        ("/app/branches/{name:path}", site.branch),
        ("/app/exports/{job}", site.export),
        ("/app/exports/{job}/file", site.export_file),
        ("/app/{kind}/{id:int}", site.item),
    ]
    return [Route(path, _with_headers(page), methods=["GET"]) for path, page in table]


def _with_headers(page: Callable[[Request], Response]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        reads_files = request.url.path.startswith(_FILES)
        response = await run_in_threadpool(page, request) if reads_files else page(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return endpoint


class _Site:
    """The pages over one sandbox."""

    def __init__(self, server: Callable[[], ServerState]) -> None:
        self._current_server = server
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["time"] = _time
        self._templates.filters["number"] = _number
        self._templates.filters["pretty"] = _pretty

    @property
    def _server(self) -> ServerState:
        return self._current_server()

    def overview(self, _request: Request) -> Response:
        server, state = self._server, self._server.journal.state
        return self._page(
            "overview.html",
            threads=[
                (thread.chat_id, turns(thread)) for thread in reversed(server.store(Threads).all())
            ],
            syncs=list(reversed(state.syncs)),
            notifications=[
                (item, item["recipients"]) for item in server.store(Items).all("notifications")
            ],
            exports=[
                (job, job.status(server.clock.now()))
                for job in reversed(server.store(exports.Exports).by_id.values())
            ],
            changes=list(reversed(state.changes[-_LATEST:])),
            requests=list(reversed(state.requests[-_LATEST:])),
            asked=len(state.requests),
        )

    def thread(self, request: Request) -> Response:
        thread = self._server.store(Threads).get(request.path_params["chat"])
        if thread is None:
            return self._forgotten(f"thread {request.path_params['chat']}")
        return self._page(
            "thread.html", chat_id=thread.chat_id, turns=turns(thread), streaming=thread.streaming
        )

    def branch(self, request: Request) -> Response:
        name = request.path_params["name"]
        branches = self._server.store(Branches).with_branch(name)
        state = self._server.journal.state
        syncs = [sync for sync in state.syncs if sync.branch_name == name]
        runs = [run for run in state.runs if run.branch == name]
        deleted = [
            change
            for change in state.changed("branches", "deleted")
            if change.id == name and not branches
        ]
        if not (branches or syncs or runs or deleted):
            return self._forgotten(f"branch {name}")
        found = [
            (one.deployment, one.get(name), one.status(name, self._server)) for one in branches
        ]
        at = deleted[-1].at if deleted else None
        return self._page(
            "branch.html", name=name, found=found, syncs=syncs, runs=runs, deleted_at=at
        )

    def export(self, request: Request) -> Response:
        job = self._server.store(exports.Exports).by_id.get(request.path_params["job"])
        if job is None:
            return self._forgotten(f"export {request.path_params['job']}")
        return self._page("export.html", job=job, status=job.status(self._server.clock.now()))

    def export_file(self, request: Request) -> Response:
        server = self._server
        job = server.store(exports.Exports).by_id.get(request.path_params["job"])
        if job is None or job.status(server.clock.now()) != "completed":
            return self._forgotten(f"the file of export {request.path_params['job']}")
        return Response(exports.rendered(server, job), media_type=exports.TYPES[job.format])

    def item(self, request: Request) -> Response:
        kind, item_id = request.path_params["kind"], request.path_params["id"]
        items = self._server.store(Items).all(kind) if kind in _RESOURCES else None
        item = next((one for one in items or [] if one["id"] == item_id), None)
        if item is None:
            single = kind.removesuffix("s")
            deleted = [
                change
                for change in self._server.journal.state.changed(kind, "deleted")
                if change.id == item_id
            ]
            if deleted:
                return self._missing(
                    f"The {single} {item_id} was deleted {_time(deleted[-1].at)}. It was there "
                    "when the task that links to it ran."
                )
            return self._forgotten(f"{single} {item_id}")
        return self._page("item.html", kind=kind.removesuffix("s"), item=item)

    def style(self, _request: Request) -> Response:
        return Response((_TEMPLATES / "style.css").read_bytes(), media_type="text/css")

    def icon(self, _request: Request) -> Response:
        return Response((_TEMPLATES / "icon.svg").read_bytes(), media_type="image/svg+xml")

    def file(self, request: Request) -> Response:
        path, sha256 = _linked_file(request)
        try:
            if (answer := files.answer_of(path, sha256)) is not None:
                return self._page("answer.html", answer=answer)
            shown = files.view(path, sha256)
            others = files.listed(path, sha256) if shown.kind == "other" else []
            return self._page("file.html", file=shown, files=others)
        except files.NotShown as error:
            return self._missing(str(error))

    def file_content(self, request: Request) -> Response:
        try:
            content, kind = files.content(*_linked_file(request))
        except files.NotShown as error:
            return self._missing(str(error))
        headers = {"content-security-policy": _FRAMED} if kind.startswith("text/html") else {}
        return Response(content, media_type=kind, headers=headers)

    def _forgotten(self, what: str) -> Response:
        return self._missing(
            f"This sandbox does not know {what}. A sandbox forgets everything when it ends, unless "
            "it was started with --keep, and when another version of its code is started."
        )

    def _missing(self, said: str) -> Response:
        response = self._page("missing.html", said=said)
        response.status_code = 404
        return response

    def _page(self, template: str, **values: Any) -> Response:
        text = self._templates.get_template(template).render(values)
        for secret in self._server.credentials.all():
            text = text.replace(secret, "***")
        return HTMLResponse(text)


def _linked_file(request: Request) -> tuple[str, str]:
    """The path and the digest in a link."""
    return request.query_params.get("path", ""), request.query_params.get("sha256", "")


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    return f"{value:,}"
