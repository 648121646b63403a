"""Connections as an event loop gives them, for httpcore.

httpcore's own way to asyncio leads through anyio: some thirty objects for each connection, and as
much work for each read as all that is read needs otherwise. Errors are httpcore's.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar, cast

import httpcore

T = TypeVar("T")

MAX_WAITING_BYTES = 256 * 1024
"""What a connection takes of the network before anybody reads it."""
NEXT_ADDRESS_SECONDS = 0.25
"""Seconds after which another address of a name is tried, beside the first."""
PIECE_BYTES = 64 * 1024

connected: ContextVar[bool] = ContextVar("connected", default=False)
"""Whether the task has begun a connection since somebody set this to False."""


class Network(httpcore.AsyncNetworkBackend):
    """Makes connections on the running event loop."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A new connection. Raises httpcore.ConnectError, httpcore.ConnectTimeout."""
        connected.set(True)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                _, stream = await loop.create_connection(
                    SocketStream,
                    host,
                    port,
                    local_addr=(local_address, 0) if local_address else None,
                    happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
                )
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for option in socket_options or ():
            stream.get_extra_info("socket").setsockopt(*option)
        return stream

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> httpcore.AsyncNetworkStream:
        """TLS over this connection, which is closed where that fails."""
        stream = TlsStream(self, ssl_context, server_hostname)
        try:
            async with asyncio.timeout(timeout):
                await stream.handshake()
        except TimeoutError as error:
            await self.aclose()
            raise httpcore.ConnectTimeout(str(error)) from error
        except (OSError, httpcore.NetworkError) as error:
            await self.aclose()
            raise httpcore.ConnectError(str(error)) from error
        except BaseException:
            await self.aclose()
            raise
        return stream


class SocketStream(_Stream, asyncio.Protocol):
    """A plain connection."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._ended = False
        self._closed = False
        self._failure: Exception | None = None
        self._full = False
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > MAX_WAITING_BYTES and not self._full:
            self._full = True
            self._transport.pause_reading()
        _wake(self._arrival)

    def eof_received(self) -> bool:
        self._ended = True
        _wake(self._arrival)
        return True  # what is still to be sent goes out

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = self._closed = True
        self._failure = self._failure or exc
        _wake(self._arrival)
        _wake(self._room)

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> bytes:
        """What has arrived, b"" at the end. Raises httpcore.ReadError, httpcore.ReadTimeout."""
        if not self._received and not self._ended:
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await _within(timeout, self._arrival)
            except TimeoutError:
                raise httpcore.ReadTimeout from None
            finally:
                self._arrival = None
        if self._received:
            data = bytes(self._received[:max_bytes])
            del self._received[:max_bytes]
            if self._full and not self._received:
                self._full = False
                self._transport.resume_reading()
            return data
        if self._failure is not None:
            raise httpcore.ReadError(str(self._failure)) from self._failure
        return b""

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> None:
        """Send; returns once there is room for more. Raises httpcore.WriteError,
        httpcore.WriteTimeout."""
        if not buffer:
            return
        if not self._closed:
            self._transport.write(buffer)
            if self._room is not None:
                try:
                    await _within(timeout, asyncio.shield(self._room))
                except TimeoutError:
                    raise httpcore.WriteTimeout from None
        if self._closed:
            raise httpcore.WriteError(str(self._failure or "")) from self._failure

    async def aclose(self) -> None:
        """Close the connection; who reads it meets an error, not its end."""
        self._failure = self._failure or ConnectionAbortedError("closed")
        self._transport.abort()
        await asyncio.sleep(0)  # the socket is closed in the loop's next round

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return bool(self._received) or self._ended or self._is_readable()
        names = {"socket": "socket", "client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names[info]) if info in names else None

    def _is_readable(self) -> bool:
        """Whether there is what the loop has not come to yet: the service's end, mostly."""
        descriptor = self._transport.get_extra_info("socket").fileno()
        if descriptor < 0:
            return True
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(0))


class TlsStream(_Stream):
    """TLS over another connection, which may be TLS itself: a proxy's."""

    def __init__(
        self,
        carrier: httpcore.AsyncNetworkStream,
        context: ssl.SSLContext,
        server_hostname: str | None,
    ) -> None:
        self._carrier = carrier
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=server_hostname
        )

    async def handshake(self) -> None:
        """Raises ssl.SSLError, httpcore.NetworkError."""
        await self._do(self._ssl.do_handshake, None)

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> bytes:
        """What has arrived, b"" at the end: whether that comes too early, HTTP tells."""
        try:
            return await self._do(partial(self._ssl.read, max_bytes), timeout)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> None:
        if not buffer:
            return
        try:
            await self._do(partial(self._ssl.write, buffer), timeout)
        except ssl.SSLError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        await self._carrier.aclose()

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._ssl
        found = self._carrier.get_extra_info(info)
        return found or self._incoming.pending > 0 if info == "is_readable" else found

    async def _do(self, act: Callable[[], T], seconds: float | None) -> T:
        """Do something that may want to read and to write below."""
        while True:
            try:
                outcome = act()
            except ssl.SSLWantReadError:
                await self._flush(seconds)
                data = await self._carrier.read(PIECE_BYTES, seconds)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                await self._flush(seconds)
                return outcome

    async def _flush(self, seconds: float | None) -> None:
        if self._outgoing.pending:
            await self._carrier.write(self._outgoing.read(), seconds)


async def _within(seconds: float | None, future: asyncio.Future[None]) -> None:
    """Wait for it. Raises TimeoutError."""
    if seconds is None:
        await future
    else:
        async with asyncio.timeout(seconds):
            await future


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
