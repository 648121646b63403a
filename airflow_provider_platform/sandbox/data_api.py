"""The data API of a deployment: SQL over the sample warehouse, and builds of pre-aggregations.

Each request is checked first: its token, its branch and its body. Rows have the types and values of
one of two dialects:

``core``: as the open core does. It declares decimals and 32-bit integers as ``Int32``, timestamps
as ``String``, dates as an object with one key. Booleans are JSON booleans. ``words``: each column
is declared by the word for its type, and every value is a string.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import sqlglot
from sqlglot import errors, exp
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.client.operations_table import Schema, problems
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import JsonLines, web_page
from airflow_provider_platform.sandbox.management.call import VERBS
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS
from airflow_provider_platform.sandbox.state.branches import branches_of
from airflow_provider_platform.sandbox.state.credentials import verify
from airflow_provider_platform.sandbox.state.pre_aggregations import (
    PRE_AGGREGATIONS,
    PreAggregationJobs,
)
from airflow_provider_platform.sandbox.state.server_state import ServerState
from airflow_provider_platform.sandbox.state.settings import Settings
from airflow_provider_platform.sandbox.state.warehouse import QueryError, Warehouse

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.settings import Settings


class Refused(Exception):
    """The request is refused with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


@dataclass(frozen=True)
class DataRequest:
    """A checked request."""

    server: ServerState
    deployment: int
    branch: str
    document: dict[str, Any]

    def warehouse(self, sql: str) -> Warehouse:
        """Return the warehouse that a query reads."""
        jobs = self.server.store(PreAggregationJobs)
        return jobs.warehouse(self.server, self.deployment, self.branch, sql)


def read_request(request: Request, *, scope: str, body: Schema | None) -> DataRequest:
    """Check the token and its scope, the branch, then the body unless ``body`` is None; raises
    ``Refused``."""
    handler = handler_of(request.scope)
    server, deployment = handler.server, request.path_params["deployment"]
    claims = _claims(server, request.headers.get("authorization", ""))
    if deployment not in DEPLOYMENTS or claims.get("deploymentId", deployment) != deployment:
        raise refuse(403, "The token is for another deployment")
    if scope not in server.settings.default_api_scopes:
        raise refuse(403, f"API scope is missing: {scope}")
    branch = _open_branch(server, deployment, request.path_params.get("branch"))
    document = {} if body is None else _document(handler.body)
    messages = [] if body is None else problems(body, document)
    if messages:
        raise refuse(400, "; ".join(messages))
    handler.speaks_for(claims.get("externalId"))
    return DataRequest(server, deployment, branch, document)


def refuse(status: int, message: str) -> Refused:
    """Return an error in Cube's form: permanent, unless it says "Continue wait"."""
    return Refused(JSONResponse({"error": message}, status))


def _claims(server: ServerState, header: str) -> dict[str, Any]:
    """Return the claims of the token."""
    secret, now = server.credentials.api_secret, server.clock.now()
    try:
        return verify(header, secret, now)
    except ValueError as error:
        raise refuse(403, f"Invalid token: {error}") from None


def _open_branch(server: ServerState, deployment: int, path: str | None) -> str:
    """Return the branch in the path. Raises ``Refused`` if the branch is not served."""
    branches = branches_of(server, deployment)
    name = branches.deploy if path is None else unquote(path)
    answer = branches.ask(name, server)
    if answer.serves:
        return name
    if answer.kind in ("bad", "not_active"):
        raise refuse(400, answer.words)
    if answer.kind == "failed":
        raise refuse(500, f"Error: {answer.words}")
    page = web_page()
    raise Refused(Response(page.body, 503, {"content-type": "text/html"}))


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise refuse(400, "the query must be JSON") from None


def row_limit(sql: str, settings: Settings) -> int | None:
    """Return the most rows of the query, apart from its own limit; None for all rows."""
    return settings.data_max_rows if has_limit(sql) else settings.data_default_rows


def has_limit(sql: str) -> bool:
    """Return whether the query as a whole has a limit. What cannot be read has none."""
    try:
        query = sqlglot.parse_one(sql, dialect="postgres")
    except errors.SqlglotError:
        return False
    limit = query.args.get("limit")
    return limit is not None and not isinstance(limit.args.get("expression"), exp.Var)


_CORE: dict[str, Any] = {"Decimal": "Int32", "Timestamp": "String", "Date": {"Date": False}}
_INT32_COLUMNS = {"quantity"}
"""Integers of 32 bits in the sample warehouse; SQLite itself has 64 bits only."""


def declared(schema: list[dict[str, str]], settings: Settings) -> list[dict[str, Any]]:
    """Return the schema for the first line."""
    if settings.column_types == "words":
        return list(schema)
    return [
        {
            "name": column["name"],
            "column_type": "Int32"
            if column["name"] in _INT32_COLUMNS and column["column_type"] == "Int64"
            else _CORE.get(column["column_type"], column["column_type"]),
        }
        for column in schema
    ]


def sent(
    schema: list[dict[str, str]], rows: list[list[Any]], settings: Settings
) -> list[list[Any]]:
    """Return the values of rows for a data line: strings, and null."""
    core = settings.column_types == "core"
    forms: list[Callable[[Any], Any]] = [
        _form(column["column_type"], core=core) for column in schema
    ]
    return [
        [None if value is None else form(value) for form, value in zip(forms, row, strict=True)]
        for row in rows
    ]


def _form(kind: str, *, core: bool) -> Callable[[Any], Any]:
    if kind == "Boolean":
        return _boolean if core else _boolean_text
    if kind == "Decimal":
        return _decimal
    return _double if core and kind == "Double" else str


def _boolean(value: Any) -> Any:
    return bool(value) if value in (0, 1) else str(value)


def _boolean_text(value: Any) -> str:
    return str(_boolean(value)).lower()


def _decimal(value: Any) -> str:
    return f"{Decimal(str(value)):.2f}" if isinstance(value, float) else str(value)


def _double(value: Any) -> str:
    """Return a number as a string without an exponent, and a whole number without a decimal
    point."""
    if not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or not isfinite(value):
        return str(value)
    return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")


_DAY = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?$"
_NAMES = {"type": "array", "items": {"type": "string"}}
_SOME_NAMES = {**_NAMES, "minItems": 1}
_SELECTOR = {
    "type": "object",
    "required": ["contexts", "timezones"],
    "properties": {
        "contexts": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["securityContext"],
                "properties": {"securityContext": {}},
            },
        },
        "timezones": _SOME_NAMES,
        "dataSources": _NAMES,
        "cubes": _NAMES,
        "preAggregations": _NAMES,
        "dateRange": {
            "type": "array",
            "items": {"type": "string", "pattern": _DAY},
            "minItems": 2,
            "maxItems": 2,
        },
    },
}
_START: Schema = {
    "type": "object",
    "required": ["action", "selector"],
    "properties": {"action": {"enum": ["post"]}, "selector": _SELECTOR},
}
_LOOK: Schema = {
    "type": "object",
    "required": ["action", "tokens"],
    "properties": {
        "action": {"enum": ["get"]},
        "tokens": _SOME_NAMES,
        "resType": {"enum": ["object", "array"]},
    },
}


async def meta(request: Request) -> Response:
    """Return the cubes; with ``extended`` also their tables and pre-aggregations. The cube
    ``products`` is defined by a query."""
    read_request(request, scope="meta", body=None)
    cubes: list[dict[str, Any]] = [
        {"name": name, "type": "cube", "title": name.title()}
        for name in ("customers", "orders", "payments", "products")
    ]
    for cube in cubes if "extended" in request.query_params else ():
        name = cube["name"]
        if name == "products":
            cube["sql"] = "SELECT * FROM public.products WHERE price > 0"
        else:
            cube["sqlTable"] = f"public.{name}"
        cube["preAggregations"] = [
            {
                "name": one.name,
                "type": "rollup",
                "measureReferences": f"[{name}.{'revenue' if one.monthly else 'count'}]",
                "dimensionReferences": f"[{name}.{one.dimension}]" if one.dimension else None,
            }
            for one in PRE_AGGREGATIONS
            if one.cube == name
        ]
    return JSONResponse({"cubes": cubes})


async def jobs(request: Request) -> Response:
    """Start builds (``action`` is ``post``), or report the builds of some tokens (``get``)."""
    asked = read_request(request, scope="jobs", body=None)
    document = _job_document(handler_of(request.scope).body)
    if isinstance(document, dict) and document.get("action") == "get":
        return _report(asked, document)
    return JSONResponse(await _start(asked, document))


def _job_document(body: bytes) -> Any:
    if not body.strip():
        raise _user_error("No job description provided")
    try:
        document = json.loads(body)
    except ValueError:
        raise _user_error("Invalid Job query format: the body must be JSON") from None
    if document in ({}, None):
        raise _user_error("No job description provided")
    return document


async def _start(asked: DataRequest, document: Any) -> list[str]:
    _check(_START, document)
    server, store = asked.server, asked.server.store(PreAggregationJobs)
    selector = document["selector"]
    if not store.selected(selector):
        raise _user_error("The selector matches no pre-aggregation")
    tokens = store.post(server, asked.deployment, asked.branch, selector)
    server.journal.change(
        "created", "pre-aggregation-jobs", tokens[0], asked.deployment, sorted(selector)
    )
    return tokens


def _report(asked: DataRequest, document: Any) -> Response:
    _check(_LOOK, document)
    store, server = asked.server.store(PreAggregationJobs), asked.server
    found = [
        store.report(server, asked.deployment, asked.branch, token) for token in document["tokens"]
    ]
    if document.get("resType") == "object":
        return JSONResponse({one.pop("token"): one for one in found})
    return JSONResponse(found)


def _check(schema: Schema, document: Any) -> None:
    messages = problems(schema, document)
    if messages:
        raise _user_error(f"Invalid Job query format: {'; '.join(messages)}")


def _user_error(text: str) -> Refused:
    return Refused(JSONResponse({"type": "UserError", "error": text}, 400))


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
    operations = {"cubesql": _cubesql, "meta": meta, "pre-aggregations/jobs": jobs}
    return [
        Route(f"{place}/cubejs-api/v1/{name}", _endpoint(operation), methods=list(VERBS))
        for place in (base, f"{base}/dev-mode/{{branch}}")
        for name, operation in operations.items()
    ]


def _endpoint(operation: Operation) -> Operation:
    async def endpoint(request: Request) -> Response:
        if request.method != ("GET" if operation is meta else "POST"):
            return refuse(405, f"Cannot {request.method} {request.url.path}").response
        try:
            return await operation(request)
        except Refused as refused:
            return refused.response

    return endpoint


async def _cubesql(request: Request) -> Response:
    return JsonLines(_lines(read_request(request, scope="data", body=_SQL_BODY)))


async def _lines(asked: DataRequest) -> AsyncIterator[dict[str, Any]]:
    server, document = asked.server, asked.document
    streaming = server.settings.data_max_rows is None
    try:
        limit = row_limit(document["query"], server.settings)
        reading = asked.warehouse(document["query"]).read(document["query"], limit=limit)
        start: dict[str, Any] = {"schema": declared(reading.schema, server.settings)}
        jobs = server.store(PreAggregationJobs)
        if used := jobs.used(server, asked.deployment, asked.branch, document["query"]):
            start["usedPreAggregations"] = used
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
