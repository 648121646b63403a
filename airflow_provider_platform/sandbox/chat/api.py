"""The chat API over HTTP: the stream and the abort operation of one agent.

They have two addresses: the agent's, and its deployment's, which takes a service token only.
"""

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
from airflow_provider_platform.sandbox.http.responses import ApiError, JsonLines, JsonRpcError
from airflow_provider_platform.sandbox.management.shared.resource import VERBS
from airflow_provider_platform.sandbox.state.journal import AbortEntry
from airflow_provider_platform.sandbox.state.world import World

ACCOUNT, AGENT, DEPLOYMENT = "acme", "1", "1"


def routes() -> list[Route]:
    bases = [
        "/api/v1/public/{account}/agents/{agent}/chat",
        "/api/v1/public/{account}/deployments/{deployment}/chat",
    ]
    operations = {"stream-chat-state": _stream, "abort": _abort}
    return [
        Route(f"{base}/{name}", _checked(handle), methods=list(VERBS))
        for base in bases
        for name, handle in operations.items()
    ]


def _checked(handle: Callable[[World, Request, bytes], Response]) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        handler = handler_of(request.scope)
        if request.method != "POST":
            raise ApiError(405, f"Cannot {request.method} {request.url.path}")
        place = request.path_params
        if (place["account"], place.get("agent", AGENT)) != (ACCOUNT, AGENT):
            raise ApiError(404, "Agent not found")
        if place.get("deployment", DEPLOYMENT) != DEPLOYMENT:
            raise ApiError(404, "Deployment not found")
        if "deployment" in place and "authorization" in request.headers:
            raise JsonRpcError(
                "Unauthorized: the address of a deployment takes service tokens only"
            )
        return handle(handler.world, request, handler.body)

    return endpoint


def _stream(world: World, request: Request, body: bytes) -> Response:
    stream = open_stream(world, read_stream_request(world, request.headers, body))
    return JsonLines(stream.records(), stream.close)


def _abort(world: World, request: Request, body: bytes) -> Response:
    entry = AbortEntry(time.time(), None, None, "refused")
    world.journal.state.aborts.append(entry)
    try:
        asked = read_abort_request(world, request.headers, body)
        entry.chat_id, entry.identity = asked.chat_id, asked.identity
        _stop(world, asked, entry)
        return Response(status_code=204)
    finally:
        world.journal.changed()


def _stop(world: World, asked: AbortRequest, entry: AbortEntry) -> None:
    thread = world.store(Threads).get(asked.chat_id)
    if thread is None:
        entry.outcome = "not_found"
        raise ApiError(404, f"Chat thread {asked.chat_id} not found")
    anonymous = asked.identity is None and not world.settings.abort_needs_identity
    if not anonymous and asked.identity != thread.owner:
        entry.outcome = "forbidden"
        raise ApiError(403, "The caller does not own this chat thread")
    run = thread.current
    if run is None:
        entry.outcome = "nothing_running"
        return
    entry.outcome, entry.message_id = "aborted", run.message_id
    chat_runs.abort(world, run)
