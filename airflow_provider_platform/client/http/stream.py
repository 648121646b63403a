"""The open body of a response, read piece by piece as it arrives.

The caller says how long a read may wait: for a chat it is the setting `stream_idle_timeout`.
"""

from __future__ import annotations

import asyncio
from collections import deque

from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.http.connection_errors import BROKEN, broken_answer
from airflow_provider_platform.client.http.connection_pool import OpenResponse

DRAIN_SECONDS = 0.25
MAX_WAITING_BYTES = 1024 * 1024
"""The most bytes that a stream receives before its reader takes them."""


class Stream:
    """The open response of a request, read piece by piece and decoded.

    A separate task receives what arrives, so that a reader gets all of it at once.
    """

    def __init__(self, name: RequestName, response: OpenResponse) -> None:
        self._name = name
        self._response = response
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._failure: PlatformError | None = None
        self._progress = asyncio.Event()
        self._room = asyncio.Event()
        self._arrivals = asyncio.create_task(self._receive())

    @property
    def is_open_ended(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that it may have
        been cut."""
        return self._response.is_open_ended

    async def read(self, seconds: float) -> bytes | None:
        """Return the bytes that have arrived: b"" at the end of the body, None after `seconds`
        without bytes (the connection is then lost). Raises PlatformTransportError if the response
        broke off, PlatformProtocolError if its coding cannot be decoded, PlatformClosedError if it
        was closed before its end."""
        if not self._progress.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._progress.wait()
            except TimeoutError:
                return None
        if self._response.connections.closed and not self._over:
            raise PlatformClosedError(
                f"{self._name.action}: the client was closed before the stream ended.",
                where=self._name.where,
            )
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._room.set()
            if not (self._ended or self._failure or self._arrivals.done()):
                self._progress.clear()
            return data
        if self._ended:
            return b""
        raise self._failure or PlatformTransportError(
            f"{self._name.action}: reading stopped before the end.", where=self._name.where
        )

    async def drain(self) -> None:
        """Wait a moment for the end of a response whose content is no longer needed."""
        self._pieces.clear()
        self._room.set()
        await asyncio.wait({self._arrivals}, timeout=DRAIN_SECONDS)

    @property
    def _over(self) -> bool:
        """Return whether the body was read to its proper end."""
        return self._ended and not self._pieces

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it."""
        self._failure = self._failure or PlatformClosedError(
            f"{self._name.action}: this client closed the stream before the stream ended.",
            where=self._name.where,
        )
        self._progress.set()
        self._arrivals.cancel()
        try:
            await asyncio.wait({self._arrivals})
        finally:
            await self._response.aclose()

    async def _receive(self) -> None:
        try:
            async for piece in self._response.pieces():
                self._pieces.append(piece)
                self._size += len(piece)
                self._progress.set()
                if self._size > MAX_WAITING_BYTES:
                    self._room.clear()
                    await self._room.wait()
            self._ended = True
        except BROKEN as error:
            self._failure = broken_answer(self._name, error)
            self._failure.__cause__ = error
        finally:
            self._progress.set()
