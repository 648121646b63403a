"""Connections of the event loop do what httpcore's own do, by whoever is at their other end."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpcore
import pytest

from airflow_provider_platform.client.network.sockets import (
    MAX_WAITING_BYTES,
    Network,
    SocketStream,
    connected,
)
from tests.unit.client.http.test_certificates import authority, certified

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    import trustme

    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

__all__ = ["authority"]

SECONDS = 20.0
MUCH = b"0123456789abcdef" * 500_000

NETWORKS = pytest.mark.parametrize("network", [Network(), httpcore.AnyIOBackend()])


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, limit=2 * len(MUCH))
    async with server:
        yield server.sockets[0].getsockname()[1]


def on_a_loop(work: Awaitable[Any]) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(SECONDS):
            return await work

    return asyncio.run(run())


async def reads_all(stream: httpcore.AsyncNetworkStream) -> bytes:
    pieces = []
    while piece := await stream.read(65536, timeout=SECONDS):
        assert len(piece) <= 65536
        pieces.append(piece)
    return b"".join(pieces)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back one line, whatever its length, and closes."""
    writer.write(await reader.readuntil(b"\n"))
    await writer.drain()
    writer.close()


async def until_left(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says nothing."""
    await reader.read()
    writer.close()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\n")
    lingers = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingers)
    writer.transport.abort()


@NETWORKS
def test_what_is_sent_comes_back_and_ends(network: httpcore.AsyncNetworkBackend) -> None:
    async def run() -> None:
        async with serving(echo) as port:
            stream = await network.connect_tcp("127.0.0.1", port, timeout=SECONDS)
            assert not stream.get_extra_info("is_readable")
            await stream.write(b"", timeout=SECONDS)
            await stream.write(b"said\n", timeout=SECONDS)
            assert await reads_all(stream) == b"said\n"
            assert await stream.read(1) == b""
            assert stream.get_extra_info("is_readable")
            assert stream.get_extra_info("server_addr")[1] == port
            await stream.aclose()

    on_a_loop(run())


@NETWORKS
def test_much_at_once(network: httpcore.AsyncNetworkBackend) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert len(await reader.readexactly(len(MUCH))) == len(MUCH)
        writer.write(MUCH)
        await writer.drain()
        writer.close()

    async def run() -> bytes:
        async with serving(answer) as port:
            stream = await network.connect_tcp("127.0.0.1", port)
            await stream.write(MUCH, timeout=SECONDS)
            return await reads_all(stream)

    assert on_a_loop(run()) == MUCH


@NETWORKS
def test_failures_have_their_names(network: httpcore.AsyncNetworkBackend) -> None:
    async def run() -> None:
        async with serving(until_left) as port:
            stream = await network.connect_tcp("127.0.0.1", port, timeout=SECONDS)
            with pytest.raises(httpcore.ReadTimeout):
                await stream.read(1, timeout=0.01)
            with pytest.raises(httpcore.WriteTimeout):
                await stream.write(MUCH * 4, timeout=0.01)
            await stream.aclose()
        with pytest.raises(httpcore.ConnectError):
            await network.connect_tcp("127.0.0.1", port, timeout=SECONDS)
        with pytest.raises(httpcore.ConnectTimeout):
            await network.connect_tcp("192.0.2.1", port, timeout=0.0)
        async with serving(reset) as port:
            stream = await network.connect_tcp("127.0.0.1", port, timeout=SECONDS)
            await stream.write(b"\n")
            with pytest.raises(httpcore.ReadError):
                await reads_all(stream)
            with pytest.raises(httpcore.WriteError):
                await stream.write(b"more")
            await stream.aclose()

    on_a_loop(run())


@NETWORKS
def test_one_that_is_closed_while_it_is_read_has_not_ended(
    network: httpcore.AsyncNetworkBackend,
) -> None:
    async def run() -> None:
        async with serving(until_left) as port:
            stream = await network.connect_tcp("127.0.0.1", port)
            reading = asyncio.create_task(stream.read(1))
            await asyncio.sleep(0)
            await stream.aclose()
            with pytest.raises(httpcore.ReadError):
                await reading
            with pytest.raises(httpcore.ReadError):
                await stream.read(1)
            with pytest.raises(httpcore.WriteError):
                await stream.write(b"more")
            await stream.aclose()

    on_a_loop(run())


@NETWORKS
def test_a_read_that_was_cancelled_loses_nothing(network: httpcore.AsyncNetworkBackend) -> None:
    async def run() -> bytes:
        async with serving(echo) as port:
            stream = await network.connect_tcp("127.0.0.1", port)
            reading = asyncio.create_task(stream.read(1))
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
            await stream.write(b"said\n")
            return await reads_all(stream)

    assert on_a_loop(run()) == b"said\n"


@NETWORKS
@pytest.mark.parametrize("layers", [1, 2])
def test_tls(network: httpcore.AsyncNetworkBackend, layers: int, authority: trustme.CA) -> None:
    """Also through a proxy that speaks TLS itself."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def run() -> bytes:
        async with serving(echo, certified(authority)) as port, tunnel(port) as outer:
            stream = await network.connect_tcp("127.0.0.1", outer if layers == 2 else port)
            for _ in range(layers):
                stream = await stream.start_tls(trusting, "127.0.0.1", timeout=SECONDS)
            assert stream.get_extra_info("ssl_object").version()
            await stream.write(MUCH + b"\n", timeout=SECONDS)
            received = await reads_all(stream)
            await stream.aclose()
            return received

    @asynccontextmanager
    async def tunnel(port: int) -> AsyncIterator[int]:
        async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(pipe(reader, up[1]), pipe(up[0], writer), return_exceptions=True)

        async with serving(carry, certified(authority)) as outer:
            yield outer

    assert on_a_loop(run()) == MUCH + b"\n"


@NETWORKS
def test_tls_that_fails(network: httpcore.AsyncNetworkBackend, authority: trustme.CA) -> None:
    async def run() -> None:
        async with serving(echo, certified(authority)) as port:
            stream = await network.connect_tcp("127.0.0.1", port)
            with pytest.raises(httpcore.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await stream.start_tls(ssl.create_default_context(), "127.0.0.1", timeout=SECONDS)
            with pytest.raises(httpcore.WriteError):
                await stream.write(b"more")
        async with serving(until_left) as port:
            stream = await network.connect_tcp("127.0.0.1", port)
            with pytest.raises(httpcore.ConnectTimeout):
                await stream.start_tls(ssl.create_default_context(), "127.0.0.1", timeout=0.05)
        async with serving(reset) as port:
            stream = await network.connect_tcp("127.0.0.1", port)
            await stream.write(b"\n")
            with pytest.raises(httpcore.ConnectError):
                await stream.start_tls(ssl.create_default_context(), "127.0.0.1", timeout=SECONDS)

    on_a_loop(run())


def test_what_nobody_reads_waits_at_the_service() -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MUCH * 4)
        filled.set()
        await writer.drain()
        writer.close()

    filled = asyncio.Event()

    async def run() -> None:
        async with serving(pour) as port:
            stream = await Network().connect_tcp("127.0.0.1", port)
            assert isinstance(stream, SocketStream)
            await filled.wait()
            while stream._transport.is_reading():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)
            assert len(stream._received) < 2 * MAX_WAITING_BYTES + 256 * 1024
            assert len(await reads_all(stream)) == 4 * len(MUCH)

    on_a_loop(run())


def test_an_end_that_the_loop_has_not_come_to_shows() -> None:
    """So that what must not be sent twice does not go out on it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def run() -> None:
            stream = await Network().connect_tcp("127.0.0.1", listener.getsockname()[1])
            accepted, _ = listener.accept()
            assert not stream.get_extra_info("is_readable")
            accepted.close()
            assert stream.get_extra_info("is_readable")
            await stream.aclose()

        on_a_loop(run())


def test_who_has_begun_a_connection() -> None:
    async def connects(port: int, *, does: bool) -> bool:
        connected.set(False)
        if does:
            await Network().connect_tcp("127.0.0.1", port)
        await asyncio.sleep(0.01)
        return connected.get()

    async def run() -> list[bool]:
        async with serving(until_left) as port:
            return await asyncio.gather(connects(port, does=True), connects(port, does=False))

    assert on_a_loop(run()) == [True, False]
