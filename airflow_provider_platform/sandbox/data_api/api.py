"""The data API of a deployment: SQL over the sample warehouse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.data_api.limits import row_limit
from airflow_provider_platform.sandbox.data_api.queries import RunningQueries
from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import JsonLines
from airflow_provider_platform.sandbox.management.shared.resource import DEPLOYMENTS, VERBS
from airflow_provider_platform.sandbox.state.branches import DEFAULT_BRANCH, Branches
from airflow_provider_platform.sandbox.state.credentials import verify_data_token
from airflow_provider_platform.sandbox.state.warehouse import QueryError, Reading
from airflow_provider_platform.sandbox.state.world import World

_CACHE = checks.string(
    one_of=("stale-if-slow", "stale-while-revalidate", "must-revalidate", "no-cache")
)
_SQL_BODY = checks.structure(
    {
        "query": checks.needed(checks.string()),
        "timezone": checks.string(),
        "cache": _CACHE,
        "throwContinueWait": checks.boolean,
    }
)
_REFRESHED = "2026-07-20T00:00:00.000Z"


def routes() -> list[Route]:
    base = "/deployments/{deployment:int}"
    return [
        Route(f"{place}/cubejs-api/v1/cubesql", _cubesql, methods=list(VERBS))
        for place in (base, f"{base}/dev-mode/{{branch:path}}")
    ]


async def _cubesql(request: Request) -> Response:
    handler = handler_of(request.scope)
    world, deployment = handler.world, request.path_params["deployment"]
    if request.method != "POST":
        return _error(405, f"Cannot {request.method} {request.url.path}")
    try:
        secret, now = world.credentials.api_secret, world.clock.now()
        either = world.settings.data_bearer == "either"
        header = request.headers.get("authorization", "")
        claims = verify_data_token(header, secret, now, either=either)
    except ValueError as error:
        return _error(403, f"Invalid token: {error}")
    if deployment not in DEPLOYMENTS or claims.get("deploymentId", deployment) != deployment:
        return _error(403, "The token is for another deployment")
    branch = unquote(request.path_params.get("branch", DEFAULT_BRANCH))
    if not world.store(Branches).reachable(branch, branch == DEFAULT_BRANCH):
        return _error(400, f"Bad branch: {branch}")
    try:
        document = json.loads(handler.body)
    except ValueError:
        return _error(400, "the query must be JSON")
    messages = _SQL_BODY(document, "")
    if messages:
        return _error(400, "; ".join(messages))
    handler.speaks_for(claims.get("externalId"))
    key = (deployment, branch, json.dumps(document, sort_keys=True))
    return JsonLines(_lines(world, document, key))


async def _lines(
    world: World, document: dict[str, Any], key: tuple[object, ...]
) -> AsyncIterator[dict[str, Any]]:
    comes_again = bool(document.get("throwContinueWait"))
    if not await world.store(RunningQueries).done(world, key, comes_again=comes_again):
        yield {"error": "Continue wait"}
        return
    streaming = world.settings.data_streaming
    try:
        limit = row_limit(document["query"], streaming=streaming)
        reading = world.warehouse.read(document["query"], limit=limit)
        start: dict[str, Any] = {"schema": reading.schema}
        yield start if streaming else {**start, "lastRefreshTime": _REFRESHED}
        empty = True
        for rows in reading.pieces(world.settings.data_chunk_rows):
            empty = False
            yield {"data": _texts(reading, rows)}
            await asyncio.sleep(0)  # others are served meanwhile, and who has left is noticed
        if empty:
            yield {"data": []}
    except QueryError as error:
        yield {"error": str(error)}


def _texts(reading: Reading, rows: list[list[Any]]) -> list[list[str | None]]:
    """Values as this API sends them: strings, whatever their type."""
    kinds = [column["column_type"] for column in reading.schema]
    special = {at: kind for at, kind in enumerate(kinds) if kind in ("Boolean", "Decimal")}
    texts = [[None if value is None else str(value) for value in row] for row in rows]
    for at, kind in special.items():
        for row, text in zip(rows, texts, strict=True):
            text[at] = _text(row[at], kind)
    return texts


def _text(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    if kind == "Boolean" and value in (0, 1):
        return "true" if value else "false"
    return f"{Decimal(str(value)):.2f}" if isinstance(value, float) else str(value)


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)
