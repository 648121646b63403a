"""The last step before the socket: applies faults to the bytes of one response."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable

from starlette.types import Message, Send

from airflow_provider_platform.sandbox.faults import Armed, Fault

_RESIZING = {"blank_lines", "broken_json", "close", "error_line", "gzip", "odd_field"}
"""The faults after which a response has another length than its header says."""


class Ended(Exception):
    """The response is over, although the application would continue."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class Wire:
    """An ASGI ``send`` that counts the lines and applies faults.

    ``before_start`` is awaited before the first byte. It may raise to replace the response.
    """

    def __init__(
        self,
        send: Send,
        transport: asyncio.Transport,
        faults: list[Armed],
        before_start: Callable[[], Awaitable[None]],
        on_start: Callable[[int], None],
    ) -> None:
        self._send = send
        self._transport = transport
        self._faults = faults
        self._before_start = before_start
        self._on_start = on_start
        self._lines = 0
        kinds = {armed.fault.kind for armed in faults}
        self._lost = "lost_response" in kinds
        self._resized = bool(kinds & _RESIZING)
        self._dribble = "dribble" in kinds
        self._deflate = zlib.compressobj(wbits=31) if "gzip" in kinds else None
        self._odd = [armed.fault for armed in faults if armed.fault.kind == "odd_field"]

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if body:
            await self._line(_with_odd_fields(body, self._odd) if self._odd else body)
        if not more:
            await self._error_line(at_end=True)
            await self._write(b"", last=True)

    async def _start(self, message: Message) -> None:
        await self._before_start()
        if self._lost:
            close(self._transport)
            raise Ended("cut")
        headers = list(message.get("headers", []))
        if self._resized:
            headers = [h for h in headers if h[0].lower() != b"content-length"]
        if self._deflate is not None:
            headers.append((b"content-encoding", b"gzip"))
        self._on_start(message["status"])
        await self._send({**message, "headers": headers})
        await self._strike()

    async def _line(self, line: bytes) -> None:
        for armed in list(self._faults):
            fault = armed.fault
            if self._lines < fault.after:
                continue
            if fault.kind == "cut":
                split = _inside_character(line) if fault.inside_character else fault.bytes
                if split is None:
                    continue
                await self._write(line[:split])
                close(self._transport, reset=fault.reset)
                raise Ended("cut")
            if fault.kind == "broken_json":
                self._faults.remove(armed)
                line = line[: len(line) // 2].rstrip(b"\n") + b"\n"
        await self._write(line)
        self._lines += 1
        await self._strike()

    async def _strike(self) -> None:
        """Apply the faults that take effect between two lines."""
        for armed in list(self._faults):
            fault = armed.fault
            if self._lines < fault.after:
                continue
            if fault.kind == "cut" and not fault.bytes and not fault.inside_character:
                close(self._transport, reset=fault.reset)
                raise Ended("cut")
            if fault.kind == "close":
                await self._write(b"", last=True)
                raise Ended("complete")
            if fault.kind == "error_line":
                await self._error_line()
                await self._write(b"", last=True)
                raise Ended("complete")
            if fault.kind == "silence":
                self._faults.remove(armed)
                await armed.released.wait()
            if fault.kind == "blank_lines":
                self._faults.remove(armed)
                while not armed.released.is_set():
                    await self._write(b"\n")
                    await asyncio.sleep(fault.interval)

    async def _error_line(self, *, at_end: bool = False) -> None:
        """Return the error that ends a started response; at the end, also one that was set for a
        later line."""
        for armed in self._faults:
            if armed.fault.kind == "error_line" and (at_end or self._lines >= armed.fault.after):
                await self._write(json.dumps({"error": armed.fault.message}).encode() + b"\n")
                return

    async def _write(self, data: bytes, *, last: bool = False) -> None:
        if self._deflate is not None:
            data = self._deflate.compress(data) if data else b""
            data += self._deflate.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
        pieces = [data[i : i + 1] for i in range(len(data))] if self._dribble else [data]
        for piece in pieces:
            if piece:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
                if self._dribble:
                    await asyncio.sleep(0)
        if last:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _with_odd_fields(body: bytes, faults: list[Fault]) -> bytes:
    """Return a JSON response with other values in the fields that the faults name, if it has these
    fields."""
    document = json.loads(body)
    for fault in faults:
        *steps, last = (int(s) if s.isdigit() else s for s in fault.field.split("."))
        place = document
        try:
            for step in steps:
                place = place[step]
            place[last] = fault.value
        except (KeyError, IndexError, TypeError):
            continue
    return json.dumps(document).encode()


def close(transport: asyncio.Transport, *, reset: bool = False) -> None:
    """End the connection after the written bytes; with ``reset``, by RST instead of FIN."""
    raw = transport.get_extra_info("socket")
    if reset and raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.close()


def _inside_character(line: bytes) -> int | None:
    """Return the offset of the second byte of the first character that has several bytes."""
    return next((i + 1 for i, byte in enumerate(line) if byte >= 0xC0), None)
