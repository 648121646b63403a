"""The chat API over HTTP: a request is authenticated and its body checked strictly, then answered.

The answer is a stream of the thread's records: which of them, in which order and until when, is
decided here too.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from airflow_provider_platform.client.operations_table import Schema, problems
from airflow_provider_platform.sandbox.chat import runs as chat_runs
from airflow_provider_platform.sandbox.chat.agent import Record, aborted_record
from airflow_provider_platform.sandbox.chat.threads import (
    Run,
    Subscription,
    Thread,
    Threads,
    fold,
)
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import (
    ApiError,
    JsonLines,
    JsonRpcError,
    is_json,
)
from airflow_provider_platform.sandbox.management.call import VERBS
from airflow_provider_platform.sandbox.management.samples import AGENTS, DEPLOYMENTS
from airflow_provider_platform.sandbox.state.credentials import matches, verify
from airflow_provider_platform.sandbox.state.journal import (
    AbortEntry,
    MessageEntry,
    SubscriptionEntry,
)
from airflow_provider_platform.sandbox.state.server_state import ServerState

INTERNAL_USERS = frozenset({"analyst@acme.example.com", "admin@acme.example.com"})
USER_ATTRIBUTES = frozenset({"country", "region", "department"})
TOKEN_HEADERS = ("x-service-auth-token", "x-cube-auth-token")

_FORBIDDEN_WITH_INTERNAL_ID = ("roles", "groups", "userAttributes", "securityContext")
_TEXT: Schema = {"type": "string"}
_FILLED: Schema = {"type": "string", "minLength": 1}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_ZONE: Schema = {"type": "string", "format": "timezone"}
_ATTRIBUTE = _object(
    {"name": {"type": "string", "enum": sorted(USER_ATTRIBUTES)}, "value": _TEXT}, "name", "value"
)
_SESSION = _object(
    {
        "externalId": _FILLED,
        "internalId": _FILLED,
        "email": {"type": "string", "format": "email"},
        "userAttributes": _array(_ATTRIBUTE),
        "groups": _array(_FILLED),
        "roles": _array(_FILLED),
        "securityContext": _OBJECT,
        "isEphemeral": _FLAG,
        "ephemeralTtlSeconds": {"type": "integer", "minimum": 1},
        "publicDashboardId": _FILLED,
        "timezone": _ZONE,
        "settings": _object({"timezone": _ZONE}),
        "allowChatWorkspaceAuthoring": _FLAG,
    }
)
_CONTEXTS = [
    *("chat", "workbook", "model", "dashboard", "external", "mcp", "ai-widget", "onboarding"),
    *("explore", "connection_setup", "slack_dm", "published-dashboard"),
]
_STREAM = _object(
    {
        "input": _FILLED,
        "chatId": _FILLED,
        "messageId": {"type": "string", "pattern": "^[0-9]{13,}-message$"},
        "sessionSettings": {},
        "activeBranchName": _FILLED,
        "isDefaultBranch": _FLAG,
        "isDevMode": _FLAG,
        "agentId": {"type": ["number", "null"]},
        "context": {"type": "string", "enum": _CONTEXTS},
        "cubeCredentials": {},
        "dashboardContext": _OBJECT,
        "images": _array(
            _object({"mimeType": _FILLED, "data": _FILLED, "name": _TEXT}, "mimeType", "data")
        ),
        "workbookContext": _OBJECT,
        "workbookId": {"type": "number"},
    }
)
_ABORT = _object({"chatId": _FILLED, "sessionSettings": {}}, "chatId")


def _fits_64_bits(message_id: Any) -> bool:
    """Return whether the number in an id fits a signed integer of 64 bits, as which the service
    stores it."""
    digits = str(message_id).removesuffix("-message")
    return not digits.isdigit() or (len(digits) <= 19 and int(digits) < 2**63)


@dataclass(frozen=True)
class StreamRequest:
    """A valid body of the stream operation, and the agent that it was sent to."""

    agent: str
    identity: str
    input: str | None
    chat_id: str | None
    message_id: str | None
    branch: str | None
    is_default_branch: bool
    session_settings: dict[str, Any] | None
    """What a request with an API key says about the user; None with a service token, which ignores
    it."""


@dataclass(frozen=True)
class AbortRequest:
    """A valid body of the abort operation. An API key alone names no user."""

    agent: str
    identity: str | None
    chat_id: str


def read_stream_request(
    server: ServerState, agent: str, headers: Mapping[str, str], body: bytes
) -> StreamRequest:
    """Check credentials, then the body; raises ``JsonRpcError`` and ``ApiError`` (400, 403)."""
    claims = _authenticate(server, agent, headers)
    document = _document(headers, body)
    settings = document.get("sessionSettings")
    messages = problems(_STREAM, document)
    if not _fits_64_bits(document.get("messageId")):
        messages.append("messageId must be a Unix time in milliseconds that fits 64 bits")
    if claims is None:
        messages += _session_messages(settings, required=True)
    identity = _identity(claims, settings)
    if messages or identity is None:
        raise ApiError(400, messages)
    branch = document.get("activeBranchName")
    return StreamRequest(
        agent=agent,
        identity=identity,
        input=document.get("input"),
        chat_id=document.get("chatId"),
        message_id=document.get("messageId"),
        branch=branch,
        is_default_branch=document.get("isDefaultBranch", branch is None),
        session_settings=settings if claims is None else None,
    )


def read_abort_request(
    server: ServerState, agent: str, headers: Mapping[str, str], body: bytes
) -> AbortRequest:
    """As ``read_stream_request``, for the abort operation."""
    claims = _authenticate(server, agent, headers)
    document = _document(headers, body)
    messages = problems(_ABORT, document)
    settings = document.get("sessionSettings")
    if claims is None and "sessionSettings" in document:
        messages += _session_messages(settings, required=False)
    if messages:
        raise ApiError(400, messages)
    return AbortRequest(agent, _identity(claims, settings), document["chatId"])


def new_message_id() -> str:
    return f"{int(time.time() * 1000)}-message"


def _authenticate(
    server: ServerState, agent: str, headers: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the claims of a service token, or None for a valid API key."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() == "api-key" and not agent.startswith("agents/"):
            raise ApiError(403, "agentId is required for Api-Key authentication")
        if scheme.lower() != "api-key" or not matches(key.strip(), server.credentials.chat_api_key):
            raise JsonRpcError("Unauthorized: the API key is not valid for this agent")
        return None
    token = next((headers[name] for name in TOKEN_HEADERS if name in headers), None)
    if token is None:
        raise JsonRpcError("Unauthorized: no credentials were sent")
    if not server.settings.service_tokens:
        raise JsonRpcError("Unauthorized: service tokens are switched off for this deployment")
    try:
        claims = verify(token, server.credentials.api_secret, server.clock.now())
    except ValueError as error:
        raise JsonRpcError(f"Unauthorized: invalid service token: {error}") from None
    scope = claims.get("scope")
    if not isinstance(scope, list) or "chat" not in scope:
        raise JsonRpcError("Forbidden: the service token lacks the chat scope")
    external_id = claims.get("externalId", claims.get("sub"))
    if not isinstance(external_id, str) or not external_id:
        raise JsonRpcError("Unauthorized: the service token has neither externalId nor sub")
    return claims


def _identity(claims: dict[str, Any] | None, settings: Any) -> str | None:
    if claims is not None:
        return f"external:{claims.get('externalId', claims.get('sub'))}".lower()
    if isinstance(settings, dict):
        kind = "external" if "externalId" in settings else "internal"
        value = settings.get(f"{kind}Id")
        if isinstance(value, str):
            return f"{kind}:{value.strip()}".lower()
    return None


def _document(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the JSON body; an empty body is allowed."""
    if not body:
        return {}
    if not is_json(headers):
        raise ApiError(415, "Content-Type must be application/json")
    try:
        document = json.loads(body)
    except ValueError:
        raise ApiError(400, "the body must be JSON") from None
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be an object")
    return document


def _session_messages(settings: Any, *, required: bool) -> list[str]:
    if settings is None and required:
        return ["sessionSettings is required with API key authentication"]
    whole = _object({"sessionSettings": _SESSION})
    if messages := problems(whole, {"sessionSettings": settings}):
        return messages
    ids = [key for key in ("externalId", "internalId") if key in settings]
    if len(ids) != 1:
        return ["sessionSettings must have exactly one of externalId and internalId"]
    if ids == ["externalId"]:
        external_id = settings["externalId"]
        if external_id != external_id.lower() or re.search(r"\s", external_id):
            return ["sessionSettings.externalId must be lowercase and without spaces"]
        return []
    barred = [key for key in _FORBIDDEN_WITH_INTERNAL_ID if key in settings]
    if barred:
        return [f"sessionSettings.{key} is not allowed with internalId" for key in barred]
    if settings["internalId"].strip().lower() not in INTERNAL_USERS:
        return [f"sessionSettings.internalId: no user {settings['internalId']}"]
    return []


BUSY = "Streaming for thread is in progress"
_OVERLAP = 3
"""Records that are repeated after ``__cutoff__`` with ``replay`` set to ``overlap``."""


class ChatStream:
    """The records of one response. Its creator must ``close`` it."""

    def __init__(
        self,
        head: Sequence[Record | bytes],
        *,
        subscription: Subscription | None = None,
        tail: list[Record] | None = None,
        opens: bool = False,
    ) -> None:
        self._head = head
        self._subscription = subscription
        self._tail = tail or []
        self._opens = opens

    async def records(self) -> AsyncIterator[Record | bytes]:
        """Yield the records; bytes are sent unchanged."""
        for record in self._head:
            yield record
        self._open()
        if self._subscription is not None:
            async for record in _follow(self._subscription):
                yield record
        for record in self._tail:
            yield record

    def close(self) -> None:
        self._open()
        if self._subscription is not None:
            self._subscription.run.unsubscribe(self._subscription)

    def _open(self) -> None:
        if self._opens and self._subscription is not None:
            self._subscription.run.opened.set()


async def _follow(subscription: Subscription) -> AsyncIterator[Record]:
    run, suspended = subscription.run, False
    while True:
        while subscription.sent < len(run.log):
            record = run.log[subscription.sent]
            yield record
            subscription.sent += 1
            suspended = suspended or record.get("id") == "__suspended__"
            if suspended and not _usage_follows(run, subscription.sent):
                run.served()
                return
        run.served()
        if not run.active:
            return
        await run.changed()


def _usage_follows(run: Run, place: int) -> bool:
    return place < len(run.log) and run.log[place].get("id") == "__usage__"


def open_stream(server: ServerState, request: StreamRequest) -> ChatStream:
    """Apply the request to the thread and return the response. Raises ``ApiError``."""
    threads = server.store(Threads)
    if request.chat_id is None:
        thread = threads.create(request.identity, request.agent)
    else:
        found = threads.of_agent(request.chat_id, request.agent)
        if found is None or found.owner != request.identity:
            raise ApiError(404, f"Chat thread {request.chat_id} not found")
        thread = found
    if request.input is None:
        return _look(server, thread, request.message_id)
    return _submit(server, thread, request)


def _submit(server: ServerState, thread: Thread, request: StreamRequest) -> ChatStream:
    text = request.input or ""
    message_id = request.message_id or new_message_id()
    current = thread.current
    if current is None or current.message_id != message_id:
        outcome = "busy" if thread.streaming else "started"
    elif current.active:
        outcome = "resubscribed"
    else:
        outcome = "resumed" if _resumable(server, current) else "started"
    server.journal.state.messages.append(
        MessageEntry(
            time.time(),
            thread.chat_id,
            message_id,
            text,
            thread.owner,
            outcome,
            request.session_settings,
        )
    )
    server.journal.changed()
    if current is not None and outcome == "resubscribed":
        return _join(server, thread, current, "input")
    if current is not None and outcome == "resumed":
        return _resume(server, thread, current)
    if outcome == "busy":
        return ChatStream([thread.cutoff(True), {"error": BUSY}])
    if current is not None:
        chat_runs.give_up(server, current)
    history = _history(server, thread.runs)
    run = chat_runs.start(
        server,
        thread,
        message_id=message_id,
        text=text,
        branch=request.branch,
        is_default_branch=request.is_default_branch,
    )
    _note(server, run, "submit")
    head = [*history, thread.cutoff(False)]
    return ChatStream(head, subscription=run.subscribe(0), opens=True)


def _look(server: ServerState, thread: Thread, message_id: str | None) -> ChatStream:
    """Answer a request without input. It never starts a run."""
    current = thread.current
    mine = current is not None and current.message_id == message_id
    if current is not None and mine and server.settings.follow_up == "subscribe":
        if current.active:
            return _join(server, thread, current, "follow_up")
        if current.resume_on == "follow_up" and _resumable(server, current):
            return _resume(server, thread, current)
    head = [*_history(server, thread.runs), thread.cutoff(thread.streaming)]
    if current is not None and mine and _resumable(server, current):
        return ChatStream(head, tail=[{"id": "__suspended__", "role": "assistant"}])
    return ChatStream(head, tail=_end(server, thread))


def _end(server: ServerState, thread: Thread) -> list[Record]:
    """Return the last records of the response to a read of a thread."""
    stopped = bool(thread.runs) and thread.runs[-1].status == "aborted"
    if not stopped or server.settings.stopped_thread == "state":
        return [thread.state()]
    return [aborted_record()] if server.settings.stopped_thread == "aborted" else []


def _resumable(server: ServerState, run: Run) -> bool:
    return run.status == "suspended" and server.clock.now() < run.resume_until


def _resume(server: ServerState, thread: Thread, run: Run) -> ChatStream:
    run.become("streaming")
    run.resumed.set()
    server.journal.changed()
    return _join(server, thread, run, "resume")


def _join(server: ServerState, thread: Thread, run: Run, reason: str) -> ChatStream:
    """Follow an active run. The settings say where its earlier records come."""
    _note(server, run, reason)
    settings = server.settings
    earlier = _history(server, thread.runs[:-1])
    seen = run.replayable()
    own = fold(seen)
    cutoff = thread.cutoff(True)
    placed = {
        "before_cutoff": [*earlier, *own, cutoff],
        "after_cutoff": [*earlier, cutoff, *own],
        "overlap": [*earlier, cutoff, *seen[1:][-_OVERLAP:]],
        "none": [*earlier, cutoff],
    }
    return ChatStream(placed[settings.replay], subscription=run.subscribe(len(run.log)))


def _history(server: ServerState, runs: list[Run]) -> list[Record]:
    if server.settings.replay == "none":
        return []
    return [record for run in runs for record in fold(run.replayable())]


def _note(server: ServerState, run: Run, reason: str) -> None:
    entry = SubscriptionEntry(time.time(), run.thread.chat_id, run.message_id, reason)
    server.journal.state.subscriptions.append(entry)
    server.journal.changed()


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
