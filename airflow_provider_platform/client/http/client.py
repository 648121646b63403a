"""The two clients: `PlatformClient` for synchronous code, `AsyncPlatformClient` for event loops.

Both run operations, and functions that get an `Api`. These run on an event loop, so the synchronous
client has an event loop in its own thread. The caller's thread receives only the events of the
work. The work waits until the caller asks for the next event.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Self, TypeVar

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
)
from airflow_provider_platform.client.http.api import Api, Work, work_of
from airflow_provider_platform.client.http.events import END, Events, RunningWork, Steps
from airflow_provider_platform.client.http.loop_thread import LoopThread
from airflow_provider_platform.client.http.transport import Clock, Transport
from airflow_provider_platform.client.known_secrets import KnownSecrets
from airflow_provider_platform.client.operations import pages as paging
from airflow_provider_platform.client.operations.operation import Operation, prepared

T = TypeVar("T")
OnEvent = Callable[[Any], None]


def _ignore(event: Any) -> None:
    """Ignore the event."""


async def run_sync(function: Callable[..., T], *args: Any) -> T:
    """Call a function that may block, without blocking the loop."""
    return await asyncio.to_thread(function, *args)


async def _in_thread(mask: Callable[[list[str]], None], secrets: list[str]) -> None:
    await run_sync(mask, secrets)


class _ListenerFailed(BaseException):
    """What `on_event` raised. The work must not take it for a failure of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _never() -> bool:
    return False


async def run_here(
    work: Operation[T] | Work[T],
    transport: Transport,
    on_event: OnEvent,
    interrupted: Callable[[], bool] = _never,
) -> T:
    """Run an operation or other work on the running loop; `on_event` hears what it notifies of."""

    async def hear(event: object) -> None:
        try:
            on_event(event)
        except Exception as error:
            raise _ListenerFailed(error) from error

    api = Api(transport, hear, interrupted)
    try:
        return await work_of(work)(api)
    except _ListenerFailed as failed:
        raise failed.error from None
    except PlatformError as error:
        transport.secrets.hide_in(error)
        raise
    finally:
        await api.aclose()


class _Client:
    """The properties of both clients."""

    @property
    def _transport(self) -> Transport:
        raise NotImplementedError

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._transport.config

    @property
    def secrets(self) -> KnownSecrets:
        """All secrets that this client has sent or received."""
        return self._transport.secrets

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Remove this client's secrets from errors that are raised in the block."""
        try:
            yield
        except Exception as error:
            self.secrets.hide_in(error)
            raise

    @property
    def clock(self) -> Clock:
        """The clock that this client uses."""
        return self._transport.clock


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
        self._own_transport = Transport(config, reload=reload, clock=clock, mask=mask)

    @property
    def _transport(self) -> Transport:
        return self._own_transport

    async def run(self, work: Operation[T] | Work[T], on_event: OnEvent = _ignore) -> T:
        """Run an operation or other work to its end; `on_event` hears what it notifies of."""
        return await run_here(work, self._own_transport, on_event)

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
        steps = Steps(work, self._own_transport)
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
        self._own_transport = Transport(
            config,
            reload=partial(run_sync, reload) if reload else None,
            clock=clock,
            mask=partial(_in_thread, mask) if mask else None,
        )
        self._thread: LoopThread | None = None
        self._running: weakref.WeakSet[RunningWork[Any]] = weakref.WeakSet()
        self._interrupted: list[bool] = []  # work that runs must not refer to this client
        self._closed = False

    @property
    def _transport(self) -> Transport:
        return self._own_transport

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def run(self, work: Operation[T] | Work[T], on_event: OnEvent = _ignore) -> T:
        """Run an operation or other work to its end; `on_event` hears what it notifies of, in the
        caller's thread."""
        with closing(self._events(work_of(work), silent=on_event is _ignore)) as events:
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

    def _events(self, work: Work[T], *, silent: bool) -> Events[T]:
        def begin() -> RunningWork[T]:
            thread = self._loop_thread()
            steps = Steps(
                work, self._own_transport, partial(bool, self._interrupted), silent=silent
            )
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
            _inherited.append((thread, self._own_transport))
        elif thread is not None:
            thread.stop()

    def _loop_thread(self) -> LoopThread:
        """Return this client's loop thread in this process. Raises PlatformClosedError."""
        with _starting:
            if self._closed:
                raise PlatformClosedError("This client is closed: nothing was sent.")
            if self._thread is not None and not self._thread.here:
                _inherited.append((self._thread, self._own_transport))
                self._thread = None
                self._own_transport = self._own_transport.anew()
            if self._thread is None:
                self._thread = LoopThread(self._own_transport.connections.aclose)
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
