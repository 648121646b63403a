"""The chat API over HTTP: the stream and the abort operation of the agents."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.chat import runs as chat_runs
from airflow_provider_platform.sandbox.chat.requests import (
    AbortRequest,
    read_abort_request,
    read_stream_request,
)
from airflow_provider_platform.sandbox.chat.stream import open_stream
from airflow_provider_platform.sandbox.chat.threads import Threads
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import ApiError, JsonLines
from airflow_provider_platform.sandbox.management.call import VERBS
from airflow_provider_platform.sandbox.management.samples import AGENTS, DEPLOYMENTS
from airflow_provider_platform.sandbox.state.journal import AbortEntry
from airflow_provider_platform.sandbox.state.server_state import ServerState

ACCOUNT = "acme"


def routes() -> list[Route]:
    """Return the routes of both operations, for each agent and for a deployment (its automatic
    agent)."""
    return [
        Route(
            f"/api/v1/public/{{account}}/{kind}/{{id}}/chat/{operation}",
            _checked(kind, handle),
            methods=list(VERBS),
        )
        for kind in ("agents", "deployments")
        for operation, handle in (("stream-chat-state", _stream), ("abort", _abort))
    ]


def _checked(
    kind: str, handle: Callable[[ServerState, str, Request, bytes], Response]
) -> Callable[[Request], object]:
    known = {str(one) for one in (AGENTS if kind == "agents" else DEPLOYMENTS)}

    async def endpoint(request: Request) -> Response:
        handler = handler_of(request.scope)
        if request.method != "POST":
            raise ApiError(405, f"Cannot {request.method} {request.url.path}")
        if request.path_params["account"] != ACCOUNT or request.path_params["id"] not in known:
            raise ApiError(404, "Agent not found")
        agent = f"{kind}/{request.path_params['id']}"
        return handle(handler.server, agent, request, handler.body)

    return endpoint


def _stream(server: ServerState, agent: str, request: Request, body: bytes) -> Response:
    stream = open_stream(server, read_stream_request(server, agent, request.headers, body))
    return JsonLines(stream.records(), stream.close)


def _abort(server: ServerState, agent: str, request: Request, body: bytes) -> Response:
    entry = AbortEntry(time.time(), None, None, "refused")
    server.journal.state.aborts.append(entry)
    try:
        asked = read_abort_request(server, agent, request.headers, body)
        entry.chat_id, entry.identity = asked.chat_id, asked.identity
        _stop(server, asked, entry)
        return Response(status_code=204)
    finally:
        server.journal.changed()


def _stop(server: ServerState, asked: AbortRequest, entry: AbortEntry) -> None:
    thread = server.store(Threads).of_agent(asked.chat_id, asked.agent)
    if thread is None:
        entry.outcome = "not_found"
        raise ApiError(404, f"Chat thread {asked.chat_id} not found")
    if asked.identity != thread.owner:
        entry.outcome = "forbidden"
        raise ApiError(403, "The caller does not own this chat thread")
    run = thread.current
    if run is None:
        entry.outcome = "nothing_running"
        return
    entry.outcome, entry.message_id = "aborted", run.message_id
    chat_runs.abort(server, run)
