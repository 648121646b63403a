"""Which connection a request uses.

A request that can be sent twice uses a kept connection. A request that
must not be sent twice opens a connection of its own.
"""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import http
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.client.platform_client import AsyncPlatformClient, PlatformClient
from tests.support.wire.calls import DELETE, GET, POST, Run, config_for
from tests.support.wire.keep_alive_server import Connection, Reply, keeping, plain
from tests.wire.test_certificates import authority, bundle, certified

if TYPE_CHECKING:
    from pathlib import Path

    import trustme

    from airflow_provider_platform.client.api import Api


__all__ = ["authority", "bundle"]

WAIT = 10.0


async def calls(api: Api, *operations: Any, pause: Any = lambda: None) -> list[Any]:
    """Make each call once, with a pause between them."""
    outcomes = []
    for number, operation in enumerate(operations):
        if number:
            pause()
        outcomes.append(await api.call(operation, once=True))
    return outcomes


@pytest.mark.parametrize(("kept", "connections"), [(http.KEPT_SECONDS, 1), (0.0, 6)])
def test_polls_share_one_connection_until_it_was_idle_for_too_long(
    run: Run, monkeypatch: pytest.MonkeyPatch, kept: float, connections: int
) -> None:
    monkeypatch.setattr(http, "KEPT_SECONDS", kept)
    with keeping() as server:
        assert run(config_for(server), lambda api: calls(api, *[GET] * 6)) == [[1]] * 6
    assert len(server.connections) == connections


def setting_cookies(*cookies: str, body: bytes = b"[1]", status: str = "200 OK") -> Any:
    """A server's reply that sets these cookies."""
    lines = "".join(f"Set-Cookie: {cookie}; Path=/\r\n" for cookie in cookies)
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{lines}"
    whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return lambda *_: whole


@pytest.mark.parametrize("cookie", ["at=seven", "at=seven; Domain=127.0.0.1", "user=Jörg"])
def test_cookies_are_not_sent_back(run: Run, cookie: str) -> None:
    """What one host sets reaches no other, and cannot grow."""
    seen: list[bytes] = []

    def reply(connection: Connection, request: bytes) -> bytes:
        seen.append(request)
        reply: bytes = setting_cookies(cookie)(connection, request)
        return reply

    async def kept(api: Api) -> list[int]:
        assert await calls(api, GET, GET, POST) == [[1]] * 3
        clients = api._state.connections._clients.values()
        return [len(client.cookies.jar) for client in clients]

    with keeping(reply) as server:
        assert run(config_for(server), kept) == [0, 0]
    assert not any(b"cookie" in request.lower() for request in seen)


def test_properly_closed_connection_is_replaced(run: Run) -> None:
    with keeping() as server:
        run(config_for(server), lambda api: calls(api, GET, POST, GET, pause=server.close_all))
        assert server.requests == ["GET /api/v1/x", "POST /api/v1/x", "GET /api/v1/x"]
    assert len(server.connections) == 3


def test_connection_on_which_the_service_spoke_unasked_is_not_used_again(run: Run) -> None:
    """A proxy may send 408 when it drops an idle connection: that answers no request."""

    async def twice(api: Api) -> list[Any]:
        first = await api.call(GET, once=True)
        server.connections[0].socket.sendall(b"HTTP/1.1 408 Time-out\r\nContent-Length: 0\r\n\r\n")
        for _ in range(3):  # the loop receives it
            await asyncio.sleep(0)
        return [first, await api.call(GET, once=True)]

    with keeping() as server:
        assert run(config_for(server), twice) == [[1], [1]]
    assert [len(one.requests) for one in server.connections] == [1, 1]


@pytest.mark.parametrize("operation", [GET, DELETE])
def test_repeatable_call_is_repeated_if_its_connection_closes_at_reuse(
    run: Run, operation: Any
) -> None:
    async def twice(api: Api) -> list[Any]:
        return [await api.call(operation), await api.call(operation)]

    with keeping(vanish=[1]) as server:
        assert run(config_for(server), twice) == [[1]] * 2
    assert [len(one.requests) for one in server.connections] == [2, 1]


@pytest.mark.parametrize("operation", [GET, DELETE])
def test_single_attempt_is_sent_once_also_on_a_kept_connection(run: Run, operation: Any) -> None:
    async def twice(api: Api) -> list[Any]:
        return [await api.call(operation), await api.call(operation)]

    with keeping(vanish=[1]) as server, pytest.raises(PlatformTransportError):
        run(config_for(server, max_attempts=1), twice)
    assert len(server.requests) == 2


def test_unrepeatable_call_is_sent_once(run: Run) -> None:
    with keeping(vanish=[1, 0]) as server, pytest.raises(PlatformTransportError) as caught:
        run(config_for(server), lambda api: calls(api, GET, POST))
    assert caught.value.processed is None
    assert server.requests.count("POST /api/v1/x") == 1


def test_unrepeatable_calls_never_use_a_connection_that_was_used_before(run: Run) -> None:
    with keeping(vanish=[1, 1, 1, 1]) as server:
        posted = run(config_for(server), lambda api: calls(api, GET, POST, POST, POST))
        assert posted == [[1]] * 4
        assert all(one.ended.wait(WAIT) for one in server.connections[1:])
    assert [one.requests for one in server.connections] == [
        ["GET /api/v1/x"],
        *[["POST /api/v1/x"]] * 3,
    ]


STREAMED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


async def look(api: Api, *, repeatable: bool) -> bytes:
    await api.open_stream({}, timeout=20.0, repeatable=repeatable)
    data = b""
    while piece := await api.read_stream(20.0):
        data += piece
    await api.close_stream()
    return data


def test_each_service_of_a_client_has_a_connection_of_its_own(run: Run) -> None:
    chunked = STREAMED + b"3\r\n{}\n\r\n0\r\n\r\n"

    async def in_turns(api: Api) -> None:
        for _ in range(3):
            assert await calls(api, GET) == [[1]]
            assert await look(api, repeatable=True) == b"{}\n"

    with keeping() as management, keeping(lambda *_: chunked) as chat:
        run(config_for(management, chat_url=f"{chat.url}/agents/7/chat"), in_turns)
    assert [len(management.connections), len(chat.connections)] == [1, 1]


def test_stream_that_must_not_be_sent_twice_uses_no_kept_connection(run: Run) -> None:
    async def looks(api: Api) -> bytes:
        await look(api, repeatable=True)
        return await look(api, repeatable=False)

    with keeping(lambda *_: STREAMED + b"3\r\n{}\n\r\n0\r\n\r\n", vanish=[1]) as server:
        assert run(config_for(server), looks) == b"{}\n"
    assert len(server.connections) == len(server.requests) == 2


def test_unrepeatable_stream_is_sent_once(run: Run) -> None:
    with keeping(vanish=[0]) as server, pytest.raises(PlatformTransportError):
        run(config_for(server), lambda api: look(api, repeatable=False))
    assert len(server.requests) == 1


def test_kept_connection_with_tls_takes_little_memory(authority: trustme.CA, bundle: Path) -> None:
    """A triggerer keeps one for each wait."""
    together = threading.Barrier(20)

    def reply(connection: Connection, request: bytes) -> bytes:
        together.wait(WAIT)  # so that each call has its own connection
        return plain()(connection, request)

    async def on_a_loop(config: Any) -> int:
        async with AsyncPlatformClient(config) as client:
            tracemalloc.start()
            await asyncio.gather(*(client.run(GET) for _ in range(20)))
            return tracemalloc.get_traced_memory()[0] // 20

    with keeping(reply, tls=certified(authority)) as server:
        try:
            each = asyncio.run(on_a_loop(config_for(server, ca_bundle=str(bundle))))
        finally:
            tracemalloc.stop()
    assert len(server.connections) == 20
    assert each < 150_000


def test_closed_client_sends_nothing() -> None:
    with keeping() as server:
        client = PlatformClient(config_for(server))
        client.run(GET)
        client.close()
        with pytest.raises(PlatformClosedError, match="closed: nothing was sent"):
            client.run(GET)
        unused = PlatformClient(config_for(server))
        unused.close()
        with pytest.raises(PlatformClosedError):
            unused.run(GET)

        async def on_a_loop() -> None:
            async with AsyncPlatformClient(config_for(server)) as aclient:
                await aclient.run(GET)
            with pytest.raises(PlatformClosedError):
                await aclient.run(GET)

        asyncio.run(on_a_loop())
    assert len(server.requests) == 2


@pytest.mark.parametrize("used_before", [False, True])
def test_request_of_a_client_that_closes_meanwhile_fails_clearly(used_before: bool) -> None:
    """At whichever step of the request the client is closed."""

    async def outcome(config: Any, steps: int) -> Any:
        client = AsyncPlatformClient(config)
        if used_before:
            await client.run(GET)
        request = asyncio.create_task(client.run(GET))
        for _ in range(steps):
            await asyncio.sleep(0)
        await client.aclose()
        [told] = await asyncio.gather(request, return_exceptions=True)
        return told

    with keeping() as server:
        for steps in range(16):
            told = asyncio.run(outcome(config_for(server), steps))
            assert told == [1] or isinstance(told, PlatformError), repr(told)


def test_client_that_closes_during_a_request_does_not_repeat_it() -> None:
    asked = threading.Event()
    closed = threading.Event()

    def reply(connection: Connection, request: bytes) -> bytes:
        if len(connection.requests) == 2:
            asked.set()
            closed.wait(WAIT)
        return plain()(connection, request)

    async def on_a_loop(config: Any) -> None:
        client = AsyncPlatformClient(config)
        await client.run(GET)
        polling = asyncio.create_task(client.run(lambda api: api.call(GET, once=True)))
        await asyncio.to_thread(asked.wait, WAIT)
        await client.aclose()
        with pytest.raises(PlatformTransportError, match="connection broke"):
            await polling
        closed.set()

    with keeping(reply) as server:
        asyncio.run(on_a_loop(config_for(server)))
    assert len(server.requests) == 2


def endless(connection: Connection, request: bytes) -> bytes:
    return STREAMED + b"3\r\n{}\n\r\n"


def open_ended(connection: Connection, request: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n\r\n{}\n"


@pytest.mark.parametrize("reply", [endless, open_ended])
def test_closed_stream_is_not_reported_as_complete(run: Run, reply: Reply) -> None:
    """Nor does one whose client was closed under it."""
    seen: list[Any] = []

    async def on_a_loop(config: Any) -> None:
        client = AsyncPlatformClient(config)

        async def program(api: Api) -> None:
            await api.open_stream({}, timeout=20.0)
            seen.append(await api.read_stream(20.0))
            await api.sleep(0.0)
            asyncio.get_running_loop().create_task(client.aclose())
            try:
                seen.append(await api.read_stream(20.0))
            except PlatformClosedError:
                seen.append("closed")
                raise

        with pytest.raises(PlatformClosedError):
            await client.run(program)

    with keeping(reply) as server:
        asyncio.run(on_a_loop(config_for(server)))
    assert seen == [b"{}\n", "closed"]
