"""The two clients, which run functions that call the service.

A client makes an `Api` and calls a function with it: `client.run(lambda api: follow(api, ids))`.

`AsyncPlatformClient` runs such a function on the event loop of its caller, a triggerer.
`PlatformClient` is for synchronous code, a worker: the function runs on an event loop in a thread
of the client, and only its events reach the thread of the caller.

    worker's thread                              client's thread (`LoopThread`)
    PlatformClient.run
      Events: take the next event  ──proceed──>  Run: start the function, or let it continue
              on_event(event)      <──queue────    await api.notify(event): waits for `proceed`
              on_event(event)      <──queue────    api.report(event), for the log: goes on
      Events.result                <──queue────    the result or the error
    a signal: interrupt            ──call_soon─>  the current request raises

    triggerer's loop
    AsyncPlatformClient.run: await the function; on_event(event) is called where it notifies

Nothing waits for a client's thread forever. It is a daemon thread, so a process can end while the
thread works. The thread ends by itself if nothing refers to it any more. A forked process has none
of its parent's threads, so it starts a new one.

The thread is not anyio's portal. There, each start of work waits for the loop: a signal handler or
a finalizer could wait forever for a loop that waits for a lock of the main thread, and a handler
that raises meanwhile would lose the work. The portal also cancels a task at each step of its
clean-up again.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TypeVar

from anyio import to_thread

from airflow_provider_platform.client import pages as paging
from airflow_provider_platform.client.api import (
    INTERRUPTED,
    Api,
    ClientState,
    Clock,
    OnEvent,
    Work,
    ignore_event,
    run_here,
    steady_clock,
)
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformInterruptedError,
)
from airflow_provider_platform.client.operation import Operation, prepared

T = TypeVar("T")


# An event loop in its own thread, for synchronous code.


CLOSED = "The client was closed before the run was complete."
STOP_SECONDS = 5.0
EXIT_SECONDS = 2.0
"""How long `stop`, and the end of a process, wait for connections to be closed."""

SIGNAL_SECONDS = 0.5
"""Seconds between two wake-ups of a waiting thread: the longest delay of a signal handler while the
main thread waits here. Python runs signal handlers in the main thread. The kernel may deliver the
signal to another thread (as it does if the process was stopped), which does not wake the main
thread."""

_threads: set[LoopThread] = set()
"""The threads that run. A forked process keeps those of its parent here, because it must neither
use nor close their connections."""


class LoopThread(threading.Thread):
    """Runs work for other threads, from its creation until `stop`. It does not run in a forked
    process.

    `cleanup` is awaited at the end. It must not refer to the object whose deletion stops the loop.
    """

    def __init__(self, cleanup: Callable[[], Awaitable[None]]) -> None:
        super().__init__(name="platform-client", daemon=True)
        self.running: set[Run[Any]] = set()
        self._cleanup = cleanup
        self._loop = asyncio.new_event_loop()
        self._stop_requested = asyncio.Event()
        self._pid = os.getpid()
        try:
            self.start()
        except RuntimeError:  # the process may have no more threads
            self._loop.close()
            raise

    def run(self) -> None:
        """Run the loop, in this thread."""
        _threads.add(self)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            _threads.discard(self)

    async def _serve(self) -> None:
        await self._stop_requested.wait()
        while self.running:  # before connections are closed, so that it can report why it ended
            for run in self.running:
                run.end()
            await asyncio.wait([run.task for run in self.running if run.task])
        await self._loop.shutdown_asyncgens()
        await self._cleanup()

    @property
    def is_running(self) -> bool:
        """Whether the loop runs in this process. (A signal handler that raises in Python 3.11's
        `Thread.is_alive` would make a running thread look dead.)"""
        return self._pid == os.getpid() and not self._loop.is_closed()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call the function on the loop if the loop still runs. This takes no lock and waits for
        nothing, because signal handlers and the garbage collector use it."""
        if self.is_running:
            with suppress(RuntimeError):  # the loop was closed in the meantime
                self._loop.call_soon_threadsafe(function)

    def end_soon(self, run: Run[Any]) -> None:
        """End the work if it has not ended, without waiting."""
        if not run.is_over:
            self.call_soon(run.end)

    def request_stop(self) -> None:
        """`stop` without waiting."""
        self.call_soon(self._stop_requested.set)

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """End the running work, clean up and end the thread. Waits for this at most `seconds`."""
        self.request_stop()
        if threading.current_thread() is not self:
            self.join(seconds)

    def interrupt(self) -> None:
        """Interrupt the running work. The loop must call this."""
        for run in self.running:
            run.interrupt()

    @property
    def why_stopped(self) -> str:
        """Why work of this thread does not go on."""
        if self._pid == os.getpid():
            return CLOSED
        return (
            "The run was started in another process (the parent of this one, before a fork). Start "
            "it again in this process."
        )


@atexit.register
def _stop_all() -> None:
    """Close connections at the end of the process, without waiting for a connection that does not
    close."""
    threads = list(_threads)
    for thread in threads:
        thread.request_stop()
    until = time.monotonic() + EXIT_SECONDS
    for thread in threads:
        thread.stop(seconds=max(0.0, until - time.monotonic()))


# One run of work.


class Run(Generic[T]):
    """The side of the loop of one run of work, for a caller in another thread.

    `events` has each event, with whether the work waits until the caller has handled it, and at
    last the work's outcome as a Future. It is no future of `run_coroutine_threadsafe`: a signal
    handler that raises where the caller holds its lock would leave it locked, and then the loop
    would wait for it forever. The loop must call the methods.
    """

    def __init__(
        self,
        work: Operation[T] | Work[T],
        state: ClientState,
        interrupted: Callable[[], bool],
        running: set[Run[Any]],
    ) -> None:
        self.task: asyncio.Task[T] | None = None
        self.events: SimpleQueue[tuple[Any, bool]] = SimpleQueue()
        self.is_over = False
        self._api = Api(state, self._offer, self._report, interrupted)
        self._work: Operation[T] | Work[T] | None = work
        self._running = running
        self._is_ending = False
        self._handled: asyncio.Future[None] | None = None
        self._offers = asyncio.Lock()

    def proceed(self) -> None:
        """Start the work; later say that the caller has handled the event."""
        if self._work is not None:
            self.task = asyncio.create_task(run_here(self._work, self._api))
            self.task.add_done_callback(self._finish)
            self._running.add(self)
            self._work = None  # it may refer to the client, whose deletion ends the loop
        elif self._handled is not None and not self._handled.done():
            self._handled.set_result(None)

    def interrupt(self) -> None:
        """End what is under way on the service, so that the work ends."""
        self._api.interrupt()

    def end(self) -> None:
        """Cancel the work. It hands over no further event."""
        self._is_ending = True
        if self._work is not None:  # a signal handler raised before the start
            self._work = None
            self._conclude(None)
        elif self.task is not None and not self.task.cancelling():
            self.task.cancel()  # a second cancel would end the clean-up

    async def _offer(self, event: object) -> None:
        """Hand the event to the caller, and wait until the caller has handled it."""
        if self._is_ending:
            raise asyncio.CancelledError
        async with self._offers:  # work may do several things at the same time
            self._handled = asyncio.get_running_loop().create_future()
            self.events.put((event, True))
            await self._handled

    def _report(self, event: object) -> None:
        """Hand the event to the caller."""
        self.events.put((event, False))

    def _finish(self, task: asyncio.Task[T]) -> None:
        self.task = None  # its error will hold the frames of the caller
        self._running.discard(self)
        outcome: Future[T] = Future()
        if task.cancelled():
            stopped = self._api.interrupted()
            outcome.set_exception(
                PlatformInterruptedError(INTERRUPTED) if stopped else PlatformClosedError(CLOSED)
            )
        elif (error := task.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())
        self._conclude(outcome)

    def _conclude(self, outcome: Future[T] | None) -> None:
        self.is_over = True
        self.events.put((outcome, False))


class Events(Generic[T]):
    """The events of work on the loop of another thread, as an iterator. Where the work notifies, it
    continues when the next event is requested. `result` is the work's result, after the last event.

    `close` ends the work before its end. Work that did not reach its end never looks complete: each
    later request raises again. Raises PlatformError; PlatformClosedError if the client or this
    iterator was closed before the work's end.
    """

    result: T

    def __init__(self, begin: Callable[[], tuple[LoopThread, Run[T]]]) -> None:
        self._begin = begin
        self._begun: tuple[LoopThread, Run[T]] | None = None
        self._work_waits = True
        self._end: Exception | type[StopIteration] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._end is not None:
            raise self._end
        try:
            event = self._next()
            if not isinstance(event, Future):
                return event
            self.result = event.result()
            self._end = StopIteration  # one that was raised would keep this frame, and the result
        except PlatformError as error:
            self._end = error
        except BaseException:
            self._end = PlatformClosedError("The run was interrupted before its end.")
            raise
        raise self._end

    def close(self) -> None:
        """End the work if it has not ended, and close its stream."""
        self._end = self._end or PlatformClosedError(
            "This run was closed before it was complete, so it has no more events."
        )
        if self._begun is not None:
            thread, run = self._begun
            thread.end_soon(run)
            elsewhere = threading.current_thread() is not thread
            while elsewhere and thread.is_running and not run.is_over:
                with suppress(Empty):
                    event, waits = run.events.get(timeout=SIGNAL_SECONDS)
                    if isinstance(event, Future):  # another thread may wait for it
                        run.events.put((event, waits))

    def _next(self) -> Any:
        """Let the work continue if it waits for that, and return its next event, or its outcome as
        a Future."""
        if self._begun is None:
            self._begun = self._begin()
            thread, run = self._begun
            # If nobody refers to this object any more, the work ends.
            weakref.finalize(self, thread.end_soon, run).atexit = False
        thread, run = self._begun
        if threading.current_thread() is thread:
            raise RuntimeError("the loop's own thread cannot wait for it")
        if self._work_waits:
            self._work_waits = False
            thread.call_soon(run.proceed)
        while thread.is_running:
            with suppress(Empty):
                event, self._work_waits = run.events.get(timeout=SIGNAL_SECONDS)
                return event
        raise PlatformClosedError(thread.why_stopped)


# The clients.


async def run_sync(function: Callable[..., T], *args: Any) -> T:
    """Call a function that may block, without blocking the loop. Neither the end of the work nor
    the end of the process waits for the function."""
    return await to_thread.run_sync(function, *args, abandon_on_cancel=True)


class _Client:
    """What both clients have."""

    def __init__(self, state: ClientState) -> None:
        self._state = state
        self.clock = state.clock
        """The clock that this client uses."""
        self.secrets = state.secrets
        """All secrets that this client has sent or received."""

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._state.config

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Remove this client's secrets from errors that are raised in the block."""
        try:
            yield
        except Exception as error:
            self.secrets.hide_in(error)
            raise


class _ListenerFailed(BaseException):
    """What `on_event` raised. The work must not take it for a failure of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


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
        super().__init__(ClientState(config, reload, clock or steady_clock(), mask))

    async def run(self, work: Operation[T] | Work[T], on_event: OnEvent = ignore_event) -> T:
        """Run an operation or other work to its end; `on_event` hears what it notifies of."""

        def report(event: object) -> None:
            try:
                on_event(event)
            except Exception as error:
                raise _ListenerFailed(error) from error

        async def hear(event: object) -> None:
            report(event)

        try:
            return await run_here(work, Api(self._state, hear, report))
        except _ListenerFailed as failed:
            raise failed.error from None

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

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._state.connections.closed

    async def aclose(self) -> None:
        """Close every connection."""
        await self._state.connections.aclose()

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
            ClientState(
                config,
                partial(run_sync, reload) if reload else None,
                clock or steady_clock(),
                partial(run_sync, mask) if mask else None,
            )
        )
        self._thread: LoopThread | None = None
        self._interrupted: list[bool] = []  # work that runs must not refer to this client
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def run(self, work: Operation[T] | Work[T], on_event: OnEvent = ignore_event) -> T:
        """Run an operation or other work to its end; `on_event` hears what it notifies of, in the
        caller's thread."""
        with closing(self.events(work)) as events:
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

    def events(self, work: Operation[T] | Work[T]) -> Events[T]:
        """Run work to its end, one step at a time: what it notifies of, as it is wanted."""

        def begin() -> tuple[LoopThread, Run[T]]:
            thread = self._loop_thread()
            interrupted = partial(bool, self._interrupted)
            return thread, Run(work, self._state, interrupted, thread.running)

        return Events(begin)

    def interrupt(self) -> None:
        """End all work of this client: its current request and each later one raise
        PlatformInterruptedError. For signal handlers and other threads."""
        self._interrupted.append(True)  # no lock: a signal handler may call this
        if (thread := self._thread) is not None:
            thread.call_soon(thread.interrupt)

    def close(self) -> None:
        """Close every connection and end the loop's thread."""
        with _starting:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def _loop_thread(self) -> LoopThread:
        """Return this client's loop thread in this process. Raises PlatformClosedError."""
        with _starting:
            if self._closed:
                raise PlatformClosedError("This client is closed: nothing was sent.")
            if self._thread is not None and not self._thread.is_running:
                # It is the thread of the parent process.
                self._thread = None
                self._state = self._state.anew()
            if self._thread is None:
                self._thread = LoopThread(self._state.connections.aclose)
                weakref.finalize(self, self._thread.request_stop).atexit = False
            return self._thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_starting = threading.RLock()
"""Locked while a client's thread starts or stops. A forked process gets a new lock."""


def _after_fork() -> None:
    global _starting
    _starting = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
