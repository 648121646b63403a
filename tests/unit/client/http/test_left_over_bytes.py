"""Bytes left by a response or a cancelled call reach no other call, and the connection closes."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.http.client import AsyncPlatformClient
from tests.unit.client.http.calls import GET, POST, Run, config_for
from tests.unit.client.http.keep_alive_server import Connection, keeping, plain
from tests.unit.client.http.test_certificates import authority, bundle, certified
from tests.unit.client.http.test_connection_pool import calls, idle

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from pathlib import Path

    import trustme

pytestmark = pytest.mark.one_case_in(4)

__all__ = ["authority", "bundle", "idle"]

WAIT = 10.0
STOLEN = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n["stolen"]'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def with_length(size: int) -> bytes:
    """An answer of so many bytes in all."""
    fields = HEAD + b"Content-Length: %06d\r\n\r\n"
    rest = size - len(fields % 0)
    return fields % rest + b"[1]" + b" " * (rest - 3)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n0\r\n\r\n"
ANSWERS = {
    "a length": with_length(200),
    "chunks": CHUNKED,
    "a TLS record": with_length(16 * 1024),
    "a read of httpcore": with_length(64 * 1024),
}


@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("whole", ANSWERS.values(), ids=ANSWERS)
def test_bytes_after_a_response_are_not_the_next_response(
    run: Run, by_tls: bool, whole: bytes, authority: trustme.CA, bundle: Path
) -> None:
    """Wherever they wait: in the parser, in TLS, or in the transport of the event loop."""

    def reply(connection: Connection, request: bytes) -> bytes:
        return whole + STOLEN if connection.number == 1 else plain(b"[2]")(connection, request)

    with keeping(reply, tls=certified(authority) if by_tls else None) as server:
        config = config_for(server, ca_bundle=str(bundle) if by_tls else None)
        assert run(config, calls(GET, GET, GET)) == [[1], [2], [2]]
        assert server.connections[0].ended.wait(WAIT)
    assert [len(one.requests) for one in server.connections] == [1, 2]


def test_unrepeatable_call_opens_a_new_connection_after_two_parallel_calls(
    idle: Any,
) -> None:
    """One of their connections has been idle since the first of them ended."""
    release = {1: threading.Event(), 2: threading.Event()}
    both = threading.Barrier(3)

    def reply(connection: Connection, request: bytes) -> bytes:
        if connection.number in release and len(connection.requests) == 1:
            both.wait(WAIT)
            release[connection.number].wait(WAIT)
        return plain()(connection, request)

    async def use(config: Any) -> None:
        async with AsyncPlatformClient(config) as client:
            two = {asyncio.create_task(client.run(GET)) for _ in range(2)}
            await asyncio.to_thread(both.wait, WAIT)
            release[1].set()
            await asyncio.wait(two, return_when=asyncio.FIRST_COMPLETED)
            idle(30.0)
            release[2].set()
            await asyncio.wait(two)
            assert await client.run(POST) == [1]

    with keeping(reply, vanish=[1, 1]) as server:
        asyncio.run(use(config_for(server)))
    assert server.connections[2].requests == ["POST /api/v1/x"]


def test_each_idle_connection_has_its_own_age(run: Run, idle: Any) -> None:
    pauses = iter([5.0, 0.5])
    with keeping(vanish=[1]) as server:
        outcomes = run(config_for(server), calls(GET, POST, POST, pause=lambda: idle(next(pauses))))
    assert outcomes == [[1]] * 3
    assert [len(one.requests) for one in server.connections] == [1, 2]


class CancelledAtStep:
    """Awaits a coroutine and has the task cancelled at one of its steps, and the ones after it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: int, times: int) -> None:
        self._coroutine = coroutine
        self._steps = range(first, first + times)
        self.came = False
        """Whether the coroutine had so many steps."""

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        proceed: Callable[[], Any] = partial(next, inner)
        for step in count():
            try:
                waited_for = proceed()
            except StopIteration as end:
                return end.value
            if step in self._steps:
                self.came = True
                loop.call_soon(task.cancel)
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001 - the coroutine sees what the task does
                proceed = partial(inner.throw, error)
            else:
                proceed = partial(next, inner)
        raise AssertionError("a coroutine ends")


@pytest.mark.parametrize("cancels", [1, 2])
@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "TLS"])
def test_a_cancelled_call_leaves_no_connection_open(
    by_tls: bool, used_before: bool, cancels: int, authority: trustme.CA, bundle: Path
) -> None:
    """Whenever it is cancelled, and however often: only the connection in use stays."""

    async def cancelled_at(config: Any, step: int) -> bool:
        async with AsyncPlatformClient(config) as client:
            if used_before:
                await client.run(GET)
            call = CancelledAtStep(client.run(GET), step, cancels)

            async def run() -> Any:
                return await call

            await asyncio.wait({asyncio.create_task(run())})
            assert await client.run(POST) == [1]
            left = [one for one in server.connections if "POST /api/v1/x" not in one.requests]
            ended = [await asyncio.to_thread(one.ended.wait, WAIT) for one in left]
            assert all(ended)
            server.connections.clear()
            return call.came

    with keeping(tls=certified(authority) if by_tls else None) as server:
        config = config_for(server, ca_bundle=str(bundle) if by_tls else None)
        steps = next(step for step in count() if not asyncio.run(cancelled_at(config, step)))
    assert steps > 3
