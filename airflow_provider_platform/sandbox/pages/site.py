"""The pages for people: an overview of everything that happened, and a page for each chat thread.

The template library escapes what the pages show. The pages load nothing but their style sheet, run
no scripts, and hide the sandbox's credentials.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from airflow_provider_platform.messages.message import chart_values
from airflow_provider_platform.sandbox.chat.threads import Run, Thread, Threads, fold
from airflow_provider_platform.sandbox.state.server_state import ServerState

PREFIX = "/app/"
_TEMPLATES = Path(__file__).parent / "templates"
_LATEST = 100
"""Changes and requests that the overview lists."""
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_OF_BROWSERS = ("/", "/app", "/favicon.ico", "/robots.txt")
"""Paths that are no operation, which a person or a browser by itself asks for."""


def belongs_here(method: str, path: str) -> bool:
    """Return whether a page answers the request: pages are no part of the service."""
    return method in ("GET", "HEAD") and (path in _OF_BROWSERS or path.startswith(PREFIX))


def routes(server: Callable[[], ServerState]) -> list[Route]:
    """Return the routes. They show the current server state, which a reset replaces."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"time": _time, "number": _number}

    def page(name: str, status: int = 200, **values: Any) -> Response:
        text = templates.get_template(name).render(values)
        for secret in server().credentials.all():
            text = text.replace(secret, "***")
        return HTMLResponse(text, status, _HEADERS)

    async def overview(_request: Request) -> Response:
        state = server().journal.state
        threads = server().store(Threads).all()
        return page(
            "overview.html",
            threads=[(thread.chat_id, thread.runs) for thread in reversed(threads) if thread.runs],
            syncs=state.syncs[::-1],
            changes=state.changes[: -_LATEST - 1 : -1],
            requests=state.requests[: -_LATEST - 1 : -1],
            request_count=len(state.requests),
        )

    async def thread(request: Request) -> Response:
        chat_id = request.path_params["chat"]
        found = server().store(Threads).get(chat_id)
        if found is None:
            return page("thread.html", 404, chat_id=chat_id, turns=[], streaming=False)
        return page("thread.html", chat_id=chat_id, turns=turns(found), streaming=found.streaming)

    async def style(_request: Request) -> Response:
        return Response((_TEMPLATES / "style.css").read_bytes(), media_type="text/css")

    return [
        Route("/", overview),
        Route("/app", overview),
        Route("/app/style.css", style),
        Route("/app/threads/{chat}", thread),
    ]


@dataclass(frozen=True)
class QueryView:
    """One query of the agent. ``bars`` has the name, the number and the width (0 to 100) of each
    bar of its chart. ``error`` is the service's message if the query failed."""

    title: str
    sql: str
    columns: list[str]
    rows: list[list[Any]]
    total: int
    error: str
    bars: list[tuple[str, float, float]]
    specification: str
    """The Vega-Lite specification; "" without a chart."""


@dataclass(frozen=True)
class Turn:
    """One question with its answer and queries."""

    run: Run
    answer: str
    queries: list[QueryView]


def turns(thread: Thread) -> list[Turn]:
    """Return the turns of a thread, oldest first."""
    return [_turn(run) for run in thread.runs]


def _turn(run: Run) -> Turn:
    records = fold(run.replayable())
    answers = [r.get("content", "") for r in records if r.get("graphPath", [None])[0] == "final"]
    errors = [str(r["error"]) for r in run.log if "error" in r]
    queries = [_query(r["toolCall"]) for r in records if _is_query(r.get("toolCall") or {})]
    return Turn(run, next(filter(None, [*answers[::-1], *errors]), ""), queries)


def _is_query(call: dict[str, Any]) -> bool:
    return str(call.get("name", "")).endswith("SqlApi")


def _query(call: dict[str, Any]) -> QueryView:
    given, result = json.loads(call["input"]), json.loads(call.get("result") or "{}")
    columns = [column["name"] for column in result.get("schema", [])]
    rows = result.get("data", [])
    specification = given.get("vegaSpec", "")
    pairs = chart_values([{"name": name} for name in columns], rows) if specification else []
    most = max((abs(number) for _, number in pairs), default=0) or 1
    return QueryView(
        title=given["queryTitle"],
        sql=given["sqlQuery"],
        columns=columns,
        rows=rows,
        total=result.get("totalRows", len(rows)),
        error=result.get("error", ""),
        bars=[(str(name), number, abs(number) / most * 100) for name, number in pairs],
        specification=specification,
    )


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    return f"{value:,}"
