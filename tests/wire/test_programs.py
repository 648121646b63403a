"""Programs on both clients: notices, failing listeners, signals, cancellation."""

from __future__ import annotations

import asyncio
import dis
import gc
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import platform_client
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformInterruptedError,
    PlatformTransportError,
)
from airflow_provider_platform.client.platform_client import (
    AsyncPlatformClient,
    PlatformClient,
)
from tests.support.wire.calls import GET, POST, config_for, reading
from tests.support.wire.http_server import (
    STREAM_HEAD,
    Exchange,
    Server,
    answer,
    chunk,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from airflow_provider_platform.client.api import Api


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("fails", [False, True])
def test_reported_events_stop_nothing_and_arrive_in_order(fails: bool) -> None:
    """The work does not wait for the listener, which here waits for the work."""
    received: list[Any] = []
    reported = threading.Event()

    def listen(event: Any) -> None:
        assert reported.wait(20)
        received.append(event)

    async def program(api: Api) -> str:
        for number in range(5):
            api.report(number)
        reported.set()
        await api.notify("notice")
        received.append("between")
        api.report("last")
        if fails:
            raise PlatformTransportError("broken")
        return "done"

    with PlatformClient(config_for("http://127.0.0.1:9")) as client:
        if fails:
            with pytest.raises(PlatformTransportError):
                client.run(program, listen)
        else:
            assert client.run(program, listen) == "done"
    assert received == [0, 1, 2, 3, 4, "notice", "between", "last"]


def test_listener_gets_a_notice_before_the_program_continues() -> None:
    received: list[Any] = []

    async def program(api: Api) -> str:
        await api.notify("one")
        received.append("between")
        await api.sleep(-1.0)
        await api.notify("two")
        return "done"

    config = config_for("http://127.0.0.1:9")
    with PlatformClient(config) as client:
        assert client.run(program, received.append) == "done"
    assert received == ["one", "between", "two"]

    async def run() -> str:
        async with AsyncPlatformClient(config) as aclient:
            return await aclient.run(program, received.append)

    assert asyncio.run(run()) == "done"
    assert received == ["one", "between", "two"] * 2


@pytest.mark.parametrize("failure", [ZeroDivisionError("no"), PlatformTransportError("no")])
def test_a_listener_that_fails_ends_the_program(failure: Exception) -> None:
    """Even one that bears failures: those of its listener are not its own."""
    events: list[Any] = []
    closed: list[str] = []

    async def program(api: Api) -> None:
        try:
            with suppress(PlatformError):
                await api.notify("one")
            await api.notify("two")
        finally:
            closed.append("closed")

    def listener(event: Any) -> None:
        events.append(event)
        raise failure

    async def again(api: Api) -> str:
        await api.sleep(0)
        return "usable"

    config = config_for("http://127.0.0.1:9")
    with PlatformClient(config) as client:
        with pytest.raises(type(failure)):
            client.run(program, listener)
        assert closed == ["closed"]
        assert client.run(again) == "usable"

    async def run() -> str:
        async with AsyncPlatformClient(config) as aclient:
            with pytest.raises(type(failure)):
                await aclient.run(program, listener)
            assert closed == ["closed"] * 2
            return await aclient.run(again)

    assert asyncio.run(run()) == "usable"
    assert events == ["one"] * 2


class Stopped(BaseException):
    """What a signal handler raises."""


@pytest.mark.parametrize("work", [POST, None], ids=["a call", "a stream"])
def test_signal_handler_that_raises_cancels_the_running_call(work: Any) -> None:
    """As when Airflow stops a task: the handler raises in the middle of `run`."""
    left = threading.Event()

    def received(exchange: Exchange) -> None:
        if work is None:
            exchange.send(STREAM_HEAD % b"" + chunk(b"one\n"))
        os.kill(os.getpid(), signal.SIGUSR1)
        if exchange.wait_for_the_client_to_leave():
            left.set()

    def stop(number: int, frame: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        answers = [received, answer(body=b"[1]")]
        with serving(*answers) as server, PlatformClient(config_for(server)) as client:
            with pytest.raises(Stopped):
                client.run(work or (reading({})))
            assert left.wait(20)
            assert client.run(GET) == [1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_cancelling_a_task_closes_its_connection() -> None:
    left = threading.Event()

    async def run(server: Server) -> None:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()

        def received(exchange: Exchange) -> None:
            exchange.send(STREAM_HEAD % b"" + chunk(b"one\n"))
            loop.call_soon_threadsafe(arrived.set)
            if exchange.wait_for_the_client_to_leave():
                left.set()

        server.answers.append(received)
        async with AsyncPlatformClient(config_for(server)) as client:
            task = asyncio.create_task(client.run(reading({})))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(left.wait, 20)

    with serving() as server:
        asyncio.run(run(server))


def test_client_may_be_closed_twice() -> None:
    client = PlatformClient(config_for("http://127.0.0.1:9"))
    client.close()
    with serving(answer(body=b"[1]"), answer(body=b"[2]")) as server:
        client = PlatformClient(config_for(server))
        assert client.run(GET) == [1]
        client.close()
        client.close()


@pytest.mark.parametrize("to", ["the process", "another thread"])
def test_interrupt_from_a_signal_handler_ends_the_running_program(to: str) -> None:
    """And lets nothing begin after it, whatever the program makes of it. The kernel may give the
    signal of a process that was stopped to a thread that runs no handler."""
    seen: list[str] = []

    async def program(api: Api) -> None:
        timer.start()
        with suppress(PlatformInterruptedError):
            await api.sleep(60)
        seen.append("interrupted")
        await api.sleep(60)

    client = PlatformClient(config_for("http://127.0.0.1:9"))
    before = signal.signal(signal.SIGUSR1, lambda *_: client.interrupt())

    def send() -> None:
        if to == "the process":
            os.kill(os.getpid(), signal.SIGUSR1)
        else:
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    timer = threading.Timer(0.2, send)
    try:
        with client, pytest.raises(PlatformInterruptedError):
            client.run(program)
        assert seen == ["interrupted"]
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupted_client_sends_nothing_more() -> None:
    with serving(answer(body=b"[1]")) as server, PlatformClient(config_for(server)) as client:
        client.interrupt()
        with pytest.raises(PlatformInterruptedError):
            client.run(GET)
        assert server.requests == []


def test_interrupt_during_clean_up_does_not_close_the_client() -> None:
    """It is no end of the client, which would not be tried again."""
    cleaning = threading.Event()

    async def work(api: Api) -> None:
        try:
            raise PlatformInterruptedError("ended")
        finally:
            cleaning.set()
            await api.sleep(30)

    with PlatformClient(config_for("http://127.0.0.1:9")) as client, ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(client.run, work)
        assert cleaning.wait(20)
        client.interrupt()
        with pytest.raises(PlatformInterruptedError):
            outcome.result(20)


class RaisesAfterCall:
    """Raises `Stopped` in this thread after so many calls: where a signal handler may do it."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._last: dict[FrameType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> RaisesAfterCall:
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._calls -= self._last.get(frame, "").startswith("CALL")
            self._last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if not self._calls:
                sys.settrace(None)
                raise Stopped
        return self


def test_signals_while_a_run_is_closed_do_not_block_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever their handler raises: it must leave nothing locked for which the loop waits."""
    monkeypatch.setattr(platform_client, "SIGNAL_SECONDS", 0.001)
    kept: list[Any] = []

    async def again(api: Api) -> None:
        api.report("usable")

    answers: SimpleQueue[str] = SimpleQueue()
    with no_garbage_collection(), PlatformClient(config_for("http://127.0.0.1:9")) as client:
        for calls in range(1, 40):
            may_end = threading.Event()

            async def work(api: Api, may_end: threading.Event = may_end) -> None:
                try:
                    await api.notify("one")
                finally:
                    await asyncio.to_thread(may_end.wait, 20)

            events = client.events(work)
            kept.append(events)  # Python ignores what is raised where an object is freed
            assert next(events) == "one"
            before = sys.gettrace()
            try:
                sys.settrace(RaisesAfterCall(calls))
                events.close()
            except Stopped:
                pass
            else:
                raise AssertionError("the signal was lost")
            finally:
                sys.settrace(before)
                may_end.set()
            run_again = partial(client.run, again, answers.put)
            threading.Thread(target=run_again, daemon=True).start()
            assert answers.get(timeout=20) == "usable"


def test_work_that_notifies_while_it_is_ended_cannot_delay_the_end() -> None:
    """Nobody handles its events any more."""
    after: list[str] = []

    async def program(api: Api) -> None:
        try:
            await api.notify("one")
        finally:
            with suppress(asyncio.CancelledError):
                await api.notify("cleaning up")
            after.append("end")

    with PlatformClient(config_for("http://127.0.0.1:9")) as client:
        events = client.events(program)
        assert next(events) == "one"
        events.close()
        assert after == ["end"]
        with pytest.raises(PlatformClosedError, match="before it was complete"):
            next(events)


def test_parallel_notices_are_handled_one_after_another() -> None:
    handled: list[int] = []

    async def program(api: Api) -> None:
        async def notify(number: int) -> None:
            await api.notify(number)
            assert handled[-1] == number

        await asyncio.gather(*(notify(number) for number in range(3)))

    with PlatformClient(config_for("http://127.0.0.1:9")) as client:
        client.run(program, handled.append)
    assert handled == [0, 1, 2]


def test_interrupt_while_an_event_is_handled_ends_the_program_at_its_next_step() -> None:
    after: list[str] = []

    async def program(api: Api) -> None:
        await api.notify("one")
        after.append("handled")
        await api.sleep(60)

    client = PlatformClient(config_for("http://127.0.0.1:9"))
    with client, pytest.raises(PlatformInterruptedError):
        client.run(program, lambda _: client.interrupt())
    assert after == ["handled"]


def test_second_end_does_not_break_the_clean_up_off() -> None:
    waiting, cleaning = threading.Event(), threading.Event()
    cleaned: list[str] = []

    async def program(api: Api) -> None:
        await api.notify("one")
        waiting.set()
        try:
            await api.sleep(60)
        finally:
            cleaning.set()
            await asyncio.sleep(0.2)
            cleaned.append("cleaned")

    client = PlatformClient(config_for("http://127.0.0.1:9"))
    events = client.events(program)
    next(events)
    with ThreadPoolExecutor(2) as pool:
        outcome = pool.submit(next, events)
        assert waiting.wait(20)
        pool.submit(events.close)
        assert cleaning.wait(20)
        client.close()
        assert cleaned == ["cleaned"]
        with pytest.raises(PlatformClosedError):
            outcome.result(20)


def test_work_that_calls_its_own_client_synchronously_is_refused() -> None:
    """It would wait for itself."""

    async def program(api: Api) -> None:
        client.run(GET)

    client = PlatformClient(config_for("http://127.0.0.1:9"))
    with client, pytest.raises(RuntimeError, match="own thread cannot wait"):
        client.run(program)
