"""``/v1/pre-aggregations/jobs``: one POST that starts builds, or reports the builds of some
tokens."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from airflow_provider_platform.client.table import Schema, problems
from airflow_provider_platform.sandbox.data_api import requests
from airflow_provider_platform.sandbox.data_api.requests import DataRequest, Refused
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.state.pre_aggregations import PreAggregationJobs

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


async def jobs(request: Request) -> Response:
    """Start builds (``action`` is ``post``), or report the builds of some tokens (``get``)."""
    asked = requests.read(request, scope="jobs", body=None)
    document = _document(handler_of(request.scope).body)
    if isinstance(document, dict) and document.get("action") == "get":
        return _report(asked, document)
    return JSONResponse(await _start(asked, document))


def _document(body: bytes) -> Any:
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
