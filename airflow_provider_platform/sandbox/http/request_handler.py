"""One request and its response: recorded, stopped at breakpoints, and changed by faults.

Requests that a web page sends, or that are not addressed to this machine, are refused: any page in
a browser on this machine can send requests to loopback, and a foreign name can be made to resolve
to it. The browser writes the name and the page's origin into the request, so these two are checked
before anything else, whatever the method and the path.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Collection
from email.utils import formatdate
from typing import Any
from urllib.parse import quote_from_bytes

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_provider_platform.sandbox.faults import ANSWER_KINDS, WIRE_KINDS, Api, Armed, Subject
from airflow_provider_platform.sandbox.http.responses import (
    ApiError,
    JsonRpcError,
    is_json,
    web_page,
)
from airflow_provider_platform.sandbox.http.wire import Ended, Wire, close
from airflow_provider_platform.sandbox.state.journal import RequestEntry
from airflow_provider_platform.sandbox.state.server_state import ServerState

log = logging.getLogger(__name__)

MAX_BODY = 50 * 1024 * 1024
_ELSEWHERE = "https://elsewhere.example.com/login"


class RequestHandler:
    """Handles one request to the sandbox. The application finds the handler in the scope."""

    def __init__(
        self, server: ServerState, scope: Scope, body: bytes, gone: asyncio.Task[None]
    ) -> None:
        self.server = server
        self.body = body
        self._scope = scope
        self._gone = gone
        self._transport: asyncio.Transport = scope["state"]["transport"]
        self._subject = _subject(scope, body)
        self._entry = self._record()

    async def run(self, app: ASGIApp, send: Send) -> None:
        """Answer the request. Returns when the client has its response or has disconnected."""
        try:
            await self._answer(app, send)
            self._entry.ended = self._entry.ended or "complete"
        except Ended as ended:
            self._entry.ended = ended.how
        except asyncio.CancelledError:
            self._entry.ended = "cut"
            self._transport.close()
            raise
        finally:
            self.server.journal.changed()

    def speaks_for(self, identity: Any) -> None:
        """Record the user whom the token of the request names."""
        self._entry.identity = _text(identity)

    async def _answer(self, app: ASGIApp, send: Send) -> None:
        answers = self._take(ANSWER_KINDS)
        if any(armed.fault.kind == "drop" for armed in answers):
            close(self._transport)
            raise Ended("cut")
        if not await self._stop_before_call():
            raise Ended("disconnected")
        instead = next(iter(answers), None)
        if instead is not None:
            await self._respond(self._fault_response(instead), send)
            return
        await self._race(app, send)

    async def _race(self, app: ASGIApp, send: Send) -> None:
        """Run the application until it has answered or the client has disconnected."""

        async def before_start() -> None:
            await self._stop_at("before_answer")

        wire = Wire(send, self._transport, self._take(WIRE_KINDS), before_start, self._started)
        work = asyncio.ensure_future(self._call_app(app, wire))
        try:
            await asyncio.wait({work, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._entry.ended = "disconnected"
                return
            work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _call_app(self, app: ASGIApp, send: Send) -> None:
        # Routes see the path as it was sent: an encoded slash is part of a parameter.
        encoded = self._scope["raw_path"].decode("ascii")
        scope = {**self._scope, "path": encoded, "handler": self}
        try:
            if len(self.body) > MAX_BODY:
                raise ApiError(413, f"the body is larger than {MAX_BODY} bytes")
            await app(scope, self._receive, send)
        except ApiError as error:
            await error.response()(scope, self._receive, send)
        except JsonRpcError as error:
            await error.response()(scope, self._receive, send)
        except Ended:
            raise
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            broken = JSONResponse({"message": "The sandbox itself failed"}, status_code=500)
            await broken(scope, self._receive, send)

    def _fault_response(self, armed: Armed) -> Response:
        fault = armed.fault
        if fault.quotes is None:
            return fault_response(armed)
        header = Headers(scope=self._scope).get("authorization", "")
        quoted = header.encode() if fault.quotes == "authorization" else self.body
        if fault.quote_form == "url":
            return fault_response(armed, quote_from_bytes(quoted, safe=""))
        return fault_response(armed, quoted.decode("utf-8", "replace"))

    async def _respond(self, response: Response, send: Send) -> None:
        self._started(response.status_code)
        await response(self._scope, self._receive, send)

    async def _receive(self) -> Message:
        await self._gone
        return {"type": "http.disconnect"}

    async def _stop_before_call(self) -> bool:
        """Stop if a breakpoint matches. Return False if the client left and is to be forgotten."""
        point = self.server.breakpoints.match("before_call", self._subject)
        if point is None:
            return True
        stop = asyncio.ensure_future(self.server.breakpoints.stop(point, self._subject))
        try:
            if point.rule.process_disconnected:
                await stop
                return True
            await asyncio.wait({stop, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            return not self._gone.done()
        finally:
            stop.cancel()

    async def _stop_at(self, name: str) -> None:
        point = self.server.breakpoints.match(name, self._subject)
        if point is not None:
            await self.server.breakpoints.stop(point, self._subject)

    def _take(self, kinds: Collection[str]) -> list[Armed]:
        taken = self.server.faults.take(self._subject, kinds)
        self._entry.faults += [armed.fault.kind for armed in taken]
        return taken

    def _started(self, status: int) -> None:
        self._entry.status = status
        self.server.journal.changed()

    def _record(self) -> RequestEntry:
        state = self.server.journal.state
        subject = self._subject
        entry = RequestEntry(
            number=len(state.requests) + 1,
            at=time.time(),
            api=subject.api,
            method=self._scope["method"],
            path=self._scope["path"],
            query=self._scope["query_string"].decode("latin-1"),
            headers=sorted(set(Headers(scope=self._scope))),
            port=(self._scope.get("client") or (None, None))[1],
            chat_id=subject.chat_id,
            message_id=subject.message_id,
            has_input=subject.has_input,
        )
        state.requests.append(entry)
        self.server.journal.changed()
        return entry


def handler_of(scope: Scope) -> RequestHandler:
    handler: RequestHandler = scope["handler"]
    return handler


async def read_body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if the client disconnected before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def until_gone(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        continue


def _subject(scope: Scope, body: bytes) -> Subject:
    path: str = scope["path"]
    api = _api(path)
    if api != "chat":
        return Subject(api=api, method=scope["method"], path=path)
    try:
        document: Any = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {}
    return Subject(
        api=api,
        method=scope["method"],
        path=path,
        chat_id=_text(document.get("chatId")),
        message_id=_text(document.get("messageId")),
        has_input="input" in document,
        text=_text(document.get("input")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _api(path: str) -> Api | None:
    if path.startswith("/api/v1/public/"):
        return "chat"
    if path.startswith(("/api/", "/build/api/")):
        return "management"
    return "data" if re.search(r"/cubejs-api/", path) else None


def fault_response(armed: Armed, quoted: str = "") -> Response:
    """Return the response with which a fault replaces the real one; ``quoted`` ends its message."""
    fault = armed.fault
    if fault.kind == "html":
        return web_page()
    if fault.kind == "redirect":
        return Response(status_code=fault.status or 302, headers={"location": _ELSEWHERE})
    if fault.kind == "jsonrpc":
        return JsonRpcError(fault.message, indented=fault.indented).response()
    if fault.kind == "continue_wait":
        return JSONResponse({"error": "Continue wait"})
    headers = {}
    if fault.retry_after is not None:
        seconds = fault.retry_after
        as_date = formatdate(time.time() + seconds, usegmt=True)
        headers["retry-after"] = as_date if fault.retry_after_form == "date" else str(seconds)
    status = fault.status or 503
    if fault.body == "empty":
        return Response(status_code=status, headers=headers)
    if fault.body == "html":
        page = web_page()
        return Response(page.body, status, {**headers, "content-type": "text/html"})
    error = ApiError(status, f"{fault.message} {quoted}".strip()).response()
    return Response(error.body, status, {**headers, "content-type": "application/json"})


CONTROL = "/sandbox/"
"""Prefix of the paths of the control API."""

_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
_WITHOUT_EFFECT = ("GET", "HEAD")
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def refusal(scope: Scope) -> Response | None:
    """Return the response to a request that the sandbox refuses; None if it serves the request.

    ``Host`` must be a name of loopback (403). An ``Origin`` must be the one that the request went
    to (403). A control request that changes something must be JSON (415), which a page cannot send
    without asking first.
    """
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0]):
        return _refused(403, "the sandbox answers to 127.0.0.1, localhost and [::1] only")
    own = f"http://{hosts[0]}".lower()
    if any(origin.lower() != own for origin in headers.getlist("origin")):
        return _refused(403, "the sandbox refuses requests from web pages of other addresses")
    control = scope["path"].startswith(CONTROL) and scope["method"] not in _WITHOUT_EFFECT
    if control and not is_json(headers):
        return _refused(415, "a control request must have the Content-Type application/json")
    return None


def _refused(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status, headers=_HEADERS)
