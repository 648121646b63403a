"""The data API of a deployment: SQL over the sample warehouse."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.http import shapes
from airflow_provider_platform.sandbox.http.exchange import exchange_of
from airflow_provider_platform.sandbox.http.responses import JsonLines
from airflow_provider_platform.sandbox.management.shared.resource import DEPLOYMENTS, VERBS
from airflow_provider_platform.sandbox.state.branches import DEFAULT_BRANCH, Branches
from airflow_provider_platform.sandbox.state.credentials import verify
from airflow_provider_platform.sandbox.state.warehouse import QueryError, Result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from airflow_provider_platform.sandbox.state.world import World

_CACHE = shapes.string(
    one_of=("stale-if-slow", "stale-while-revalidate", "must-revalidate", "no-cache")
)
_SQL_BODY = shapes.structure(
    {
        "query": shapes.string(),
        "timezone": shapes.string(),
        "cache": _CACHE,
        "throwContinueWait": shapes.boolean,
    },
    required=("query",),
)
_REFRESHED = "2026-07-20T00:00:00.000Z"

DEFAULT_ROWS = 10_000
"""Rows of a result whose SQL has no limit of its own."""
MOST_ROWS = 50_000
"""Rows of any result."""


def routes() -> list[Route]:
    base = "/deployments/{deployment:int}"
    return [
        Route(f"{place}/cubejs-api/v1/cubesql", _cubesql, methods=list(VERBS))
        for place in (base, f"{base}/dev-mode/{{branch:path}}")
    ]


async def _cubesql(request: Request) -> Response:
    exchange = exchange_of(request.scope)
    world, deployment = exchange.world, request.path_params["deployment"]
    if request.method != "POST":
        return _error(405, f"Cannot {request.method} {request.url.path}")
    try:
        # The token stands alone in the header: this API knows no scheme.
        secret, now = world.credentials.api_secret, world.clock.now()
        claims = verify(request.headers.get("authorization", ""), secret, now)
    except ValueError as error:
        return _error(403, f"Invalid token: {error}")
    if deployment not in DEPLOYMENTS or claims.get("deploymentId", deployment) != deployment:
        return _error(403, "The token is for another deployment")
    branch = unquote(request.path_params.get("branch", DEFAULT_BRANCH))
    if not world.store(Branches).reachable(branch, branch == DEFAULT_BRANCH):
        return _error(400, f"Bad branch: {branch}")
    try:
        document = json.loads(exchange.body)
    except ValueError:
        return _error(400, "the query must be JSON")
    messages = _SQL_BODY(document, "")
    if messages:
        return _error(400, "; ".join(messages))
    return JsonLines(_lines(world, document["query"]))


async def _lines(world: World, query: str) -> AsyncIterator[dict[str, Any]]:
    limited = re.search(r"\blimit\s+\d+", query, re.IGNORECASE)
    limit = MOST_ROWS if limited else DEFAULT_ROWS
    try:
        result = world.warehouse.query(query, limit=limit)
    except QueryError as error:
        yield {"error": str(error)}
        return
    chunk = world.settings.data_chunk_rows
    rows = _texts(result)
    yield {"schema": result.schema, "lastRefreshTime": _REFRESHED}
    for start in range(0, len(rows) or 1, chunk):
        yield {"data": rows[start : start + chunk]}


def _texts(result: Result) -> list[list[str | None]]:
    """Values as this API sends them: strings, whatever their type."""
    return [[None if value is None else str(value) for value in row] for row in result.rows]


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)
