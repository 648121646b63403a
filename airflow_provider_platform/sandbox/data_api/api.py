"""The data API of a deployment: SQL, and builds of pre-aggregations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.data_api import jobs_route, requests
from airflow_provider_platform.sandbox.data_api.column_types import declared, sent
from airflow_provider_platform.sandbox.data_api.limits import row_limit
from airflow_provider_platform.sandbox.data_api.requests import DataRequest, Refused, refuse
from airflow_provider_platform.sandbox.http.responses import JsonLines
from airflow_provider_platform.sandbox.management.call import VERBS
from airflow_provider_platform.sandbox.state.settings import Settings
from airflow_provider_platform.sandbox.state.warehouse import QueryError

REFRESHED = "2026-07-20T00:00:00.000Z"
_CACHE = ["stale-if-slow", "stale-while-revalidate", "must-revalidate", "no-cache"]
_SQL_BODY = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "timezone": {"type": "string"},
        "cache": {"type": "string", "enum": _CACHE},
        "throwContinueWait": {"type": "boolean"},
    },
}

STREAMED_ROWS = 500
"""Rows per line if the deployment streams."""

Operation = Callable[[Request], Awaitable[Response]]


def routes() -> list[Route]:
    """Return the routes of production, and the same routes below ``dev-mode/{branch}``."""
    base = "/deployments/{deployment:int}"
    operations = {"cubesql": _cubesql, "pre-aggregations/jobs": jobs_route.jobs}
    return [
        Route(f"{place}/cubejs-api/v1/{name}", _endpoint(operation), methods=list(VERBS))
        for place in (base, f"{base}/dev-mode/{{branch}}")
        for name, operation in operations.items()
    ]


def _endpoint(operation: Operation) -> Operation:
    async def endpoint(request: Request) -> Response:
        if request.method != "POST":
            return refuse(405, f"Cannot {request.method} {request.url.path}").response
        try:
            return await operation(request)
        except Refused as refused:
            return refused.response

    return endpoint


async def _cubesql(request: Request) -> Response:
    return JsonLines(_lines(requests.read(request, scope="data", body=_SQL_BODY)))


async def _lines(asked: DataRequest) -> AsyncIterator[dict[str, Any]]:
    server, document = asked.server, asked.document
    streaming = server.settings.data_max_rows is None
    try:
        limit = row_limit(document["query"], server.settings)
        reading = asked.warehouse(document["query"]).read(document["query"], limit=limit)
        start: dict[str, Any] = {"schema": declared(reading.schema, server.settings)}
        yield start if streaming else {**start, "lastRefreshTime": REFRESHED}
        empty = True
        for rows in reading.pieces(_rows_per_line(server.settings, limit)):
            empty = False
            yield {"data": sent(reading.schema, rows, server.settings)}
            await asyncio.sleep(
                0
            )  # other requests are served meanwhile, and a client that disconnects is noticed
        if empty:
            yield {"data": []}
    except QueryError as error:
        yield {"error": str(error)}


def _rows_per_line(settings: Settings, limit: int | None) -> int:
    """Return the number of rows per line. Without streaming, the whole result is one batch in one
    line."""
    if settings.data_chunk_rows is not None:
        return settings.data_chunk_rows
    return STREAMED_ROWS if settings.data_max_rows is None or limit is None else limit
