"""Which connection a request uses.

A request that can be sent twice uses a kept connection, and survives its closing. A request that
must not be sent twice opens a connection of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpcore
import pytest

from airflow_provider_platform.client.errors import (
    PlatformBadRequestError,
    PlatformClosedError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.client.platform_client import AsyncPlatformClient, PlatformClient
from airflow_provider_platform.resources.dbt_sync import DbtSyncRunKind
from airflow_provider_platform.resources.run_kind import RunEnvironment
from tests.support.wire.calls import DELETE, GET, POST, Run, config_for
from tests.support.wire.keep_alive_server import Connection, Reply, keeping, plain
from tests.wire.test_certificates import authority, bundle, certified

if TYPE_CHECKING:
    from pathlib import Path

    import trustme

    from airflow_provider_platform.client.api import Api


__all__ = ["authority", "bundle"]

WAIT = 10.0


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`idle(seconds)`: connections have been idle for so long."""
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0], time=time.time)
    monkeypatch.setattr(httpcore._async.http11, "time", clock)  # type: ignore[attr-defined]

    def advance(seconds: float) -> None:
        passed[0] += seconds

    return advance


async def calls(api: Api, *operations: Any, pause: Any = lambda: None) -> list[Any]:
    outcomes = []
    for number, operation in enumerate(operations):
        if number:
            pause()
        outcomes.append(await api.call(operation, once=True))
    return outcomes


@pytest.mark.parametrize(("seconds", "connections"), [(5.5, 1), (55.0, 1), (65.0, 6)])
def test_polls_within_a_minute_share_one_connection(
    run: Run, idle: Any, seconds: float, connections: int
) -> None:
    with keeping() as server:

        async def polls(api: Api) -> list[Any]:
            return await calls(api, *[GET] * 6, pause=lambda: idle(seconds))

        assert run(config_for(server), polls) == [[1]] * 6
    assert len(server.connections) == connections


def test_connections_that_a_burst_left_expire(run: Run, idle: Any) -> None:
    together = threading.Barrier(3)

    def reply(connection: Connection, request: bytes) -> bytes:
        if len(connection.requests) == 1:
            together.wait(WAIT)
        return plain()(connection, request)

    async def burst_and_polls(api: Api) -> None:
        await asyncio.gather(*(api.call(GET) for _ in range(3)))
        for _ in range(6):
            idle(25.0)
            await api.call(GET)

    with keeping(reply) as server:
        run(config_for(server), burst_and_polls)
    assert sorted(len(one.requests) for one in server.connections) == [1, 1, 7]


def test_polls_share_one_handshake(
    run: Run, idle: Any, authority: trustme.CA, bundle: Path
) -> None:
    with keeping(tls=certified(authority)) as server:
        config = config_for(server, ca_bundle=str(bundle))
        run(config, lambda api: calls(api, *[GET] * 4, pause=lambda: idle(55.0)))
    assert len(server.connections) == 1


def test_polls_of_a_wait_share_one_connection(run: Run, idle: Any) -> None:
    """The start, which must not be sent twice, has another."""

    def status(connection: Connection, request: bytes) -> bytes:
        body = (
            b'{"status":"RUNNING"}' if len(connection.requests) < 5 else b'{"status":"COMPLETED"}'
        )
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        idle(55.0)
        return head % len(body) + body

    async def start_and_wait(api: Api) -> Any:
        await api.call(POST)
        env = RunEnvironment(time.time() + 60, poll_interval=0.01)
        ids = {"sync_job_id": "job", "deployment_id": 1, "waits": True}
        return await DbtSyncRunKind().follow(api, env, ids)

    with keeping(status) as server:
        assert run(config_for(server), start_and_wait).sync_job_id == "job"
    assert [one.requests[0][:4] for one in server.connections] == ["POST", "GET "]


def test_cookies_are_sent_only_to_the_service_that_set_them(run: Run) -> None:
    """By these cookies a load balancer knows which server a wait belongs to."""
    seen: list[list[bytes]] = []

    def reply(connection: Connection, request: bytes) -> bytes:
        seen.append([line for line in request.split(b"\r\n") if line.lower().startswith(b"cookie")])
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: at=seven; Path=/\r\n"
        )
        return head + b"Content-Length: 3\r\n\r\n[1]"

    with keeping(reply) as server:
        run(config_for(server), lambda api: calls(api, GET, GET, POST))
        run(config_for(server), lambda api: calls(api, GET))
    assert seen == [[], [b"Cookie: at=seven"], [b"Cookie: at=seven"], []]


def test_cookie_that_no_request_can_carry_is_ignored(run: Run) -> None:
    with keeping(setting_cookies("user=Jörg")) as server:
        assert run(config_for(server), lambda api: calls(api, GET, GET)) == [[1], [1]]


SESSION = "s%3A9f8Akq7-2Zp3mWvxyz12345"


def setting_cookies(*cookies: str, body: bytes = b"[1]", status: str = "200 OK") -> Any:
    """A server's reply that sets these cookies."""
    lines = "".join(f"Set-Cookie: {cookie}; Path=/\r\n" for cookie in cookies)
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nx.~key!: {SESSION}\r\n{lines}"
    whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return lambda *_: whole


def test_log_of_the_http_library_shows_no_header_that_may_contain_a_secret(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with keeping(setting_cookies(f"connect.sid={SESSION}")) as server:
        run(config_for(server), lambda api: calls(api, GET))
    assert "(b'Set-Cookie', '***')" in caplog.text
    assert "(b'Content-Type', b'application/json')" in caplog.text
    assert SESSION[5:] not in caplog.text


@pytest.mark.parametrize("cookie", ["country=Germany", "country=Germany; HttpOnly"])
def test_value_of_a_cookie_is_not_a_secret(run: Run, cookie: str) -> None:
    body = b'{"error": "no report for Germany"}'
    with (
        keeping(setting_cookies(cookie, body=body, status="400 Bad Request")) as server,
        pytest.raises(PlatformBadRequestError, match=r"no report for Germany"),
    ):
        run(config_for(server), lambda api: calls(api, GET))


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
def test_repeatable_call_survives_a_connection_that_closes_at_reuse(
    run: Run, operation: Any
) -> None:
    """Not even the one attempt that it has."""
    with keeping(vanish=[1]) as server:
        assert run(config_for(server), lambda api: calls(api, operation, operation)) == [[1]] * 2
    assert [len(one.requests) for one in server.connections] == [2, 1]


def test_parallel_calls_survive_connections_that_close_at_reuse(run: Run) -> None:
    with keeping(vanish=[1, 1, 1]) as server:
        outcomes = run(config_for(server), lambda api: calls(api, *[GET] * 4))
    assert outcomes == [[1]] * 4


def test_new_connection_that_breaks_is_a_failure(run: Run) -> None:
    with keeping(vanish=[0] * 9) as server, pytest.raises(PlatformTransportError):
        run(config_for(server), lambda api: calls(api, GET))
    assert len(server.requests) == 1


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


def test_polls_of_a_thread_share_one_connection(run: Run, idle: Any) -> None:
    async def looks(api: Api) -> None:
        for _ in range(3):
            assert await look(api, repeatable=True) == b"{}\n"
            idle(30.0)

    with keeping(lambda *_: STREAMED + b"3\r\n{}\n\r\n0\r\n\r\n") as server:
        run(config_for(server), looks)
    assert len(server.connections) == 1


def test_each_service_of_a_client_has_a_connection_of_its_own(run: Run) -> None:
    chunked = STREAMED + b"3\r\n{}\n\r\n0\r\n\r\n"

    async def in_turns(api: Api) -> None:
        for _ in range(3):
            assert await calls(api, GET) == [[1]]
            assert await look(api, repeatable=True) == b"{}\n"

    with keeping() as management, keeping(lambda *_: chunked) as chat:
        run(config_for(management, chat_url=f"{chat.url}/agents/7/chat"), in_turns)
    assert [len(management.connections), len(chat.connections)] == [1, 1]


@pytest.mark.parametrize("repeatable", [True, False])
def test_stream_does_not_fail_if_a_connection_closes_at_reuse(run: Run, repeatable: bool) -> None:
    """A repeatable request is sent again; any other does not use that connection."""

    async def looks(api: Api) -> bytes:
        await look(api, repeatable=True)
        return await look(api, repeatable=repeatable)

    with keeping(lambda *_: STREAMED + b"3\r\n{}\n\r\n0\r\n\r\n", vanish=[1]) as server:
        assert run(config_for(server), looks) == b"{}\n"
    assert len(server.requests) == (3 if repeatable else 2)


def test_unrepeatable_stream_is_sent_once(run: Run) -> None:
    with keeping(vanish=[0]) as server, pytest.raises(PlatformTransportError):
        run(config_for(server), lambda api: look(api, repeatable=False))
    assert len(server.requests) == 1


def test_one_client_makes_many_calls_at_once() -> None:
    async def run(config: Any) -> list[Any]:
        async with AsyncPlatformClient(config) as client:
            return await asyncio.gather(*(client.run(GET) for _ in range(30)))

    with keeping() as server:
        assert asyncio.run(run(config_for(server))) == [[1]] * 30


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


def test_program_returns_its_typed_result(run: Run) -> None:
    async def program(api: Api) -> Any:
        return await api.call(GET)

    with keeping() as server:
        assert run(config_for(server), program) == [1]
