"""Responses that are not a resource: errors in the platform's form, and the tenant's web page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send


class ApiError(Exception):
    """An error response: an HTTP status and one message, or one message for each broken rule."""

    def __init__(self, status: int, message: str | list[str]) -> None:
        super().__init__(str(message))
        self.status = status
        self.message = message

    def response(self) -> Response:
        document = {
            "statusCode": self.status,
            "message": self.message,
            "error": HTTPStatus(self.status).phrase,
        }
        return JSONResponse(document, status_code=self.status)


class JsonRpcError(Exception):
    """A refusal in the chat API's form: HTTP 200 with a JSON-RPC error object, ``indented`` on
    several lines."""

    def __init__(self, message: str, code: int = -32001, *, indented: bool = False) -> None:
        super().__init__(message)
        self.indented = indented
        self.document = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}

    def response(self) -> Response:
        if self.indented:
            body = json.dumps(self.document, indent=2)
            return Response(body, media_type="application/json")
        return JSONResponse(self.document)


class JsonLines(Response):
    """A streamed response of newline-delimited JSON, one body chunk for each line. ``close`` is
    called when the response ends for any reason.
    """

    def __init__(
        self,
        lines: AsyncIterator[dict[str, Any] | bytes],
        close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(media_type="application/json")
        del self.headers["content-length"]
        self._lines = lines
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for line in self._lines:
                whole = isinstance(line, bytes)
                data = line if whole else json.dumps(line, ensure_ascii=False).encode() + b"\n"
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if self._close is not None:
                self._close()


class File(Response):
    """A file of known length, sent in pieces, so that a fault can cut the response between two
    pieces."""

    PIECE = 1024

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        content = bytes(self.body)
        for start in range(0, len(content), self.PIECE):
            piece = content[start : start + self.PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def web_page() -> Response:
    """Return the page that the tenant's host serves for each unknown path."""
    return HTMLResponse(
        "<!doctype html><html><head><title>Analytics Platform</title></head>"
        '<body><div id="root">The web application loads here.</div></body></html>'
    )


def is_json(headers: Mapping[str, str]) -> bool:
    """Return whether the ``Content-Type``, without its parameters, is ``application/json``."""
    media_type = headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == "application/json"
