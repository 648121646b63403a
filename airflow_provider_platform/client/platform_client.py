"""The two clients, which run functions that call the service.

A client makes an `Api` and calls a function with it: `client.run(lambda api: follow(api, ids))`.

`AsyncPlatformClient` runs such a function on the event loop of its caller. `PlatformClient` is for
synchronous code and has an event loop in its own thread (`LoopThread`). The caller's thread
receives only the events of the function, in order (`Events`, from the `Steps` of `client.wire`).
The function waits until an event of `notify` is handled. An event of `report`, for the log, does
not stop it.

Nothing waits for such a thread forever. It is a daemon thread, so a process can end while the
thread works. The thread ends by itself if nothing refers to it any more. A forked process has none
of its parent's threads, so it starts a new one.

Work that starts together on one loop takes turns (`yield_turn`): a thousand waits do their first
step one after another, and the loop does all other work in between.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
)
from concurrent.futures import CancelledError, Future
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary

from airflow_provider_platform.client import pages as paging
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformClosedError, PlatformError
from airflow_provider_platform.client.operation import Operation, prepared
from airflow_provider_platform.client.wire import (
    END,
    Clock,
    OnEvent,
    Steps,
    Transport,
    Work,
    ignore_event,
    run_here,
)

T = TypeVar("T")


# An event loop in its own thread, for synchronous code.


Cleanup = Callable[[], Awaitable[None]]

STOP_SECONDS = 5.0
EXIT_SECONDS = 2.0
"""How long `stop`, and the end of a process, wait for connections to be closed."""

SIGNAL_SECONDS = 0.5
"""Seconds between two wake-ups of a waiting thread: the longest delay of a signal handler while the
main thread waits here."""

_running: weakref.WeakSet[LoopThread] = weakref.WeakSet()


class LoopStoppedError(Exception):
    """The loop has been stopped, or belongs to the parent of this forked process."""


class LoopThread:
    """Runs coroutines for other threads, from its creation until `stop`.

    `cleanup` is awaited at the end. It must not refer to the object whose deletion stops the loop.
    """

    def __init__(self, cleanup: Cleanup) -> None:
        self._cleanup = cleanup
        self._loop = asyncio.new_event_loop()
        # A signal handler may stop the loop while its own thread is inside `call`.
        self._gate = threading.RLock()
        self._open = True
        self._pid = os.getpid()
        self._thread = threading.Thread(
            target=_run, args=(self._loop, cleanup), name="platform-client", daemon=True
        )
        self._thread.start()
        _running.add(self)

    @property
    def here(self) -> bool:
        """Whether the loop belongs to this process."""
        return self._pid == os.getpid()

    def call(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the function on the loop and return its outcome. If the caller's thread gets an
        exception (a signal handler may raise), the function is cancelled. Raises
        LoopStoppedError."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("the loop's own thread cannot wait for it")

        if not self.here:
            raise LoopStoppedError
        future: Future[T] | None = None
        try:
            with self._gate:
                if not self._open:
                    raise LoopStoppedError
                future = asyncio.run_coroutine_threadsafe(function(), self._loop)
            return _outcome(future)
        except CancelledError:
            raise LoopStoppedError from None
        except BaseException:
            if future is not None:
                future.cancel()
            raise

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call the function on the loop if the loop still runs, without waiting for it."""
        if self.here and self._open:
            self._loop.call_soon_threadsafe(function)

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """Cancel the running tasks, clean up and end the thread. Waits for this at most
        `seconds`."""
        if not self.here:
            return
        with self._gate:
            self._ask_to_end()
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    def abandon(self) -> None:
        """`stop` without waiting and without locks, for the garbage collector."""
        if self.here:
            self._ask_to_end()

    def _ask_to_end(self) -> None:
        if self._open:
            self._open = False
            self._loop.call_soon_threadsafe(self._loop.stop)


def _outcome(future: Future[T]) -> T:
    """Return the future's result, or raise its error. The wait wakes up regularly, because Python
    runs signal handlers in the main thread. The kernel may deliver the signal to another thread (as
    it does if the process was stopped), which does not wake the main thread."""
    while True:
        try:
            return future.result(SIGNAL_SECONDS)
        except TimeoutError:
            if future.done():
                return future.result()


def _run(loop: asyncio.AbstractEventLoop, cleanup: Cleanup) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_end(cleanup))
    finally:
        loop.close()


async def _end(cleanup: Cleanup) -> None:
    """Cancel the running tasks, then close connections, so that the tasks can report why they
    ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        if not task.cancelling():  # a second cancel would end the clean-up
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await cleanup()


@atexit.register
def _stop_all() -> None:
    """Close connections at the end of the process, without waiting for a connection that does not
    close."""
    threads = list(_running)
    for thread in threads:
        thread.abandon()
    until = time.monotonic() + EXIT_SECONDS
    for thread in threads:
        thread.stop(seconds=max(0.0, until - time.monotonic()))


# The events of one run of work.


class Events(Generic[T]):
    """The events of work on the loop of another thread, as an iterator. Where the work notifies, it
    continues when the next event is requested.

    `close` ends the work before its end. Work that did not reach its end never looks complete: each
    later request raises again. Raises PlatformError; PlatformClosedError if the client or this
    iterator was closed before the work's end.
    """

    def __init__(self, begin: Callable[[], RunningWork[T]]) -> None:
        self._begin = begin
        self._running: RunningWork[T] | None = None
        self._ended = False
        self._closed = False
        self._failure: PlatformError | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise PlatformClosedError(
                "This run was closed before it was complete, so it has no more events."
            )
        try:
            self._running = self._running or self._begin()
            event = self._running.step()
        except LoopStoppedError:
            self._failure = PlatformClosedError(_why_stopped(self._running))
            raise self._failure from None
        except PlatformError as error:
            self._failure = error
            raise
        except BaseException:
            self._failure = PlatformClosedError("The run was interrupted before its end.")
            raise
        if event is END:
            self._ended = True
            raise StopIteration
        return event

    @property
    def result(self) -> T:
        """The work's result, after its last event."""
        if self._running is None or not self._ended:
            raise RuntimeError("the work has not ended")
        return self._running.steps.result

    def close(self) -> None:
        """End the work if it has not ended, and close its stream."""
        if self._closed:
            return
        self._closed = True
        if self._ended or self._running is None:
            return
        try:
            self._running.close()
        except LoopStoppedError:
            return


class RunningWork(Generic[T]):
    """Work that is running on the loop of another thread."""

    def __init__(self, thread: LoopThread, steps: Steps[T]) -> None:
        self.thread = thread
        self.steps = steps
        # If nobody refers to the events any more, the work ends. Until then this keeps it alive:
        # an event loop has no strong reference to a task.
        self._ending = weakref.finalize(self, thread.call_soon, steps.end_soon)
        self._ending.atexit = False

    def step(self) -> Any:
        """Return the next event; `END` at the end."""
        event = END
        try:
            event = self.thread.call(self.steps.step)
        finally:
            if event is END and self.steps.ended:
                # Its error holds the frames of the caller, and they this object.
                self._ending.detach()
        return event

    def close(self) -> None:
        """End the work, and wait for it."""
        self.thread.call(self.steps.aclose)

    def interrupt(self) -> None:
        """Cancel the current step, without waiting."""
        self.thread.call_soon(self.steps.cancel)


def _why_stopped(running: RunningWork[Any] | None) -> str:
    if running is not None and not running.thread.here:
        return (
            "The run was started in another process (the parent of this one, before a fork). Start "
            "it again in this process."
        )
    return "The client was closed before the run was complete."


# The clients.


async def run_sync(function: Callable[..., T], *args: Any) -> T:
    """Call a function that may block, without blocking the loop."""
    return await asyncio.to_thread(function, *args)


async def _in_thread(mask: Callable[[list[str]], None], secrets: list[str]) -> None:
    await run_sync(mask, secrets)


class _Client:
    """What both clients have."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.clock = transport.clock
        """The clock that this client uses."""
        self.secrets = transport.secrets
        """All secrets that this client has sent or received."""

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._transport.config

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Remove this client's secrets from errors that are raised in the block."""
        try:
            yield
        except Exception as error:
            self.secrets.hide_in(error)
            raise


class AsyncPlatformClient(_Client):
    """The client of an event loop. Use it in an `async with`, or call `aclose`.

    `reload` reads the configuration again. `mask` is called with each new secret that is sent or
    received, except those of the configuration. A closed client raises PlatformClosedError.
    """

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Callable[[], Awaitable[PlatformConfig]] | None = None,
        clock: Clock | None = None,
        mask: Callable[[list[str]], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(Transport(config, reload=reload, clock=clock, mask=mask))

    async def run(self, work: Operation[T] | Work[T], on_event: OnEvent = ignore_event) -> T:
        """Run an operation or other work to its end; `on_event` hears what it notifies of."""
        return await run_here(work, self._transport, on_event)

    async def call(
        self,
        operation: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **ids: Any,
    ) -> Any:
        """Call an operation of the management API, as `PlatformHook.call`."""
        return await self.run(prepared(operation, query=query, body=body, **ids))

    def iterate(
        self,
        operation: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        **ids: Any,
    ) -> AsyncIterator[Any]:
        """Yield the items of a list, as `PlatformHook.iterate`."""
        return paging.aiterate(paging.listing(operation, query=query, **ids), self.run)

    async def events(self, work: Work[Any]) -> AsyncGenerator[Any]:
        """Run work to its end, one step at a time: what it notifies of, as it is wanted."""
        steps = Steps(work, self._transport)
        try:
            while (event := await steps.step()) is not END:
                yield event
        finally:
            await steps.aclose()

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._transport.connections.closed

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class PlatformClient(_Client):
    """The client of synchronous code. Use it in a `with`, or call `close`.

    `reload` and `mask` are those of `AsyncPlatformClient`, but run in a separate thread. The
    client's event loop runs in a thread that starts at the first use and ends with the client. A
    signal handler may raise through `run`: what was under way is cancelled. It may also call
    `interrupt`. Threads may share a client. A forked process opens its own connections, and cannot
    continue what its parent began. A closed client raises PlatformClosedError.
    """

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Callable[[], PlatformConfig] | None = None,
        clock: Clock | None = None,
        mask: Callable[[list[str]], None] | None = None,
    ) -> None:
        super().__init__(
            Transport(
                config,
                reload=partial(run_sync, reload) if reload else None,
                clock=clock,
                mask=partial(_in_thread, mask) if mask else None,
            )
        )
        self._thread: LoopThread | None = None
        self._running: weakref.WeakSet[RunningWork[Any]] = weakref.WeakSet()
        self._interrupted: list[bool] = []  # work that runs must not refer to this client
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def run(self, work: Operation[T] | Work[T], on_event: OnEvent = ignore_event) -> T:
        """Run an operation or other work to its end; `on_event` hears what it notifies of, in the
        caller's thread."""
        with closing(self._events(work, silent=on_event is ignore_event)) as events:
            for event in events:
                on_event(event)
            return events.result

    def call(
        self,
        operation: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **ids: Any,
    ) -> Any:
        """Call an operation of the management API, as `PlatformHook.call`."""
        return self.run(prepared(operation, query=query, body=body, **ids))

    def iterate(
        self,
        operation: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        **ids: Any,
    ) -> Iterator[Any]:
        """Yield the items of a list, as `PlatformHook.iterate`."""
        return paging.iterate(paging.listing(operation, query=query, **ids), self.run)

    def events(self, work: Work[T]) -> Events[T]:
        """Run work to its end, one step at a time: what it notifies of, as it is wanted."""
        return self._events(work, silent=False)

    def _events(self, work: Operation[T] | Work[T], *, silent: bool) -> Events[T]:
        def begin() -> RunningWork[T]:
            thread = self._loop_thread()
            steps = Steps(work, self._transport, partial(bool, self._interrupted), silent=silent)
            running = RunningWork(thread, steps)
            self._running.add(running)
            return running

        return Events(begin)

    def interrupt(self) -> None:
        """End all work of this client: its current request and each later one raise
        PlatformInterruptedError. For signal handlers and other threads."""
        self._interrupted.append(True)  # no lock: a signal handler may call this
        for running in list(self._running):
            running.interrupt()

    def close(self) -> None:
        """Close every connection and end the loop's thread."""
        with _starting:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None and not thread.here:
            _inherited.append((thread, self._transport))
        elif thread is not None:
            thread.stop()

    def _loop_thread(self) -> LoopThread:
        """Return this client's loop thread in this process. Raises PlatformClosedError."""
        with _starting:
            if self._closed:
                raise PlatformClosedError("This client is closed: nothing was sent.")
            if self._thread is not None and not self._thread.here:
                _inherited.append((self._thread, self._transport))
                self._thread = None
                self._transport = self._transport.anew()
            if self._thread is None:
                self._thread = LoopThread(self._transport.connections.aclose)
                ending = weakref.finalize(self, self._thread.abandon)
                ending.atexit = False
            return self._thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_starting = threading.RLock()
"""Locked while a client's thread starts or stops. A forked process gets a new lock."""
_inherited: list[tuple[LoopThread, Transport]] = []
"""Connections that the parent process has open: this process neither uses nor closes them."""


def _after_fork() -> None:
    global _starting
    _starting = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# A turn for each of many waits that begin together.


_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = (
    WeakKeyDictionary()
)


async def yield_turn() -> None:
    """Wait for a turn. Each round of the loop gives one turn, in the order of the calls. After its
    turn, the caller should run only for milliseconds until it waits again."""
    loop = asyncio.get_running_loop()
    waiting = _waiting.setdefault(loop, deque())
    mine = loop.create_future()
    waiting.append(mine)
    if len(waiting) == 1:
        loop.call_soon(_give, loop, waiting)
    await mine


def _give(loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
    while waiting:
        first = waiting.popleft()
        if not first.done():
            first.set_result(None)
            break
    if waiting:
        loop.call_soon(_give, loop, waiting)
