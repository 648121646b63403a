"""``/v1/pre-aggregations/jobs``: one POST that starts builds, or reports the builds of some
tokens."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from airflow_provider_platform.sandbox.data_api import requests
from airflow_provider_platform.sandbox.data_api.requests import DataRequest, Refused, refuse
from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.state.pre_aggregations import PreAggregationJobs

_NAMES = checks.array(checks.string())
_DAY = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?")


def _days(value: list[str], name: str) -> list[str]:
    """A further rule for ``dateRange``: two times without a time zone."""
    return [] if all(map(_DAY.fullmatch, value)) else [f"{name} must be two dates"]


_SELECTOR = checks.structure(
    {
        "contexts": checks.needed(
            checks.array(
                checks.structure({"securityContext": checks.needed(checks.anything)}), minimum=1
            )
        ),
        "timezones": checks.needed(checks.array(checks.string(), minimum=1)),
        "dataSources": _NAMES,
        "cubes": _NAMES,
        "preAggregations": _NAMES,
        "dateRange": checks.array(checks.string(), minimum=2, maximum=2).also(_days),
    }
)
_START = checks.structure(
    {
        "action": checks.needed(checks.string(one_of=("post",))),
        "selector": checks.needed(_SELECTOR),
    }
)
_LOOK = checks.structure(
    {
        "action": checks.needed(checks.string(one_of=("get",))),
        "tokens": checks.needed(checks.array(checks.string(), minimum=1)),
        "resType": checks.string(one_of=("object", "array")),
    }
)


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
        if server.settings.jobs_no_match == "empty":
            return []
        raise _user_error("The selector matches no pre-aggregation")
    await _evaluate(asked, store, selector)
    tokens = store.post(server, asked.deployment, asked.branch, selector)
    server.journal.change(
        "created", "pre-aggregation-jobs", tokens[0], asked.deployment, sorted(selector)
    )
    return tokens


async def _evaluate(asked: DataRequest, store: PreAggregationJobs, selector: Any) -> None:
    """Wait for build ranges and refresh keys, which are queries on the warehouse. Raises
    ``Refused`` if one request has waited long enough."""
    server, settings = asked.server, asked.server.settings
    key = json.dumps([asked.deployment, asked.branch, selector], sort_keys=True)
    now = server.clock.now()
    began = store.starting.setdefault(key, now)
    until = now + settings.query_wait
    while (now := server.clock.now()) < began + settings.jobs_start_seconds:
        if now >= until:
            raise refuse(200, requests.CONTINUE_WAIT)
        await asyncio.sleep(0.01)
    store.starting.pop(key, None)


def _report(asked: DataRequest, document: Any) -> Response:
    _check(_LOOK, document)
    store, server = asked.server.store(PreAggregationJobs), asked.server
    found = [
        store.report(server, asked.deployment, asked.branch, token) for token in document["tokens"]
    ]
    if document.get("resType") == "object":
        return JSONResponse({one.pop("token"): one for one in found})
    return JSONResponse(found)


def _check(check: checks.Check, document: Any) -> None:
    messages = check(document, "")
    if messages:
        raise _user_error(f"Invalid Job query format: {'; '.join(messages)}")


def _user_error(text: str) -> Refused:
    return Refused(JSONResponse({"type": "UserError", "error": text}, 400))
