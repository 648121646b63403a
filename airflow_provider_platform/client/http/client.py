"""The client's two doors: `PlatformClient` for synchronous code, `AsyncPlatformClient` for loops.

Both run operations and programs. The one driver of programs runs on an event loop; the synchronous
client keeps such a loop in a thread of its own. Only what a program notifies of crosses to the
caller's thread, and the program stands still until the caller wants more.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from functools import partial
from typing import Any, Self, TypeVar

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
)
from airflow_provider_platform.client.http.driver import drive, keeping
from airflow_provider_platform.client.http.events import Events, RunningProgram
from airflow_provider_platform.client.http.loop_thread import LoopThread
from airflow_provider_platform.client.http.transport import Transport
from airflow_provider_platform.client.known_secrets import KnownSecrets
from airflow_provider_platform.client.operations import paging
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.paging import Page
from airflow_provider_platform.client.operations.program import Clock, Program

T = TypeVar("T")
OnEvent = Callable[[Any], None]


def _ignore(event: Any) -> None:
    """The listener of those who do not listen."""


async def run_sync(function: Callable[..., T], *args: Any) -> T:
    """Call a function that may wait, without holding up the loop."""
    return await asyncio.to_thread(function, *args)


async def _in_thread(mask: Callable[[list[str]], None], secrets: list[str]) -> None:
    await run_sync(mask, secrets)


class _Client:
    """What both clients tell of themselves."""

    @property
    def _transport(self) -> Transport:
        raise NotImplementedError

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._transport.config

    @property
    def secrets(self) -> KnownSecrets:
        """Every secret that this client has sent or received."""
        return self._transport.secrets

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Errors that are raised inside hold none of this client's secrets."""
        try:
            yield
        except Exception as error:
            self.secrets.hide_in(error)
            raise

    @property
    def clock(self) -> Clock:
        """Unix time as this client sees it."""
        return self._transport.clock


class AsyncPlatformClient(_Client):
    """The client of an event loop; `async with`, or `aclose` when done.

    `reload` reads the configuration again, `mask` hears of every secret that is sent or received
    for the first time, the configuration's excepted. What is used after the end raises
    PlatformClosedError.
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

    async def run(self, work: Operation[T] | Program[T], on_event: OnEvent = _ignore) -> T:
        """Run an operation or a program to its end; `on_event` hears what it notifies of."""
        results: list[T] = []
        async with aclosing(self.events(keeping(work, results))) as events:
            async for event in events:
                on_event(event)
        return results[0]

    def iterate(self, operation: Operation[Page[T]]) -> AsyncIterator[T]:
        """The items of a list, page by page: a page is asked for when its first item is wanted.

        Raises PlatformInputError at once for what is not a list operation; then PlatformError, and
        PlatformProtocolError for a list that cannot be read to its end.
        """
        return paging.aiterate(operation, self.run)

    def events(self, program: Program[Any]) -> AsyncGenerator[Any]:
        """Run a program to its end, one step at a time: what it notifies of, as it is wanted."""
        return drive(program, self._own_transport)

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
    """The client of synchronous code; `with`, or `close` when done.

    `reload` and `mask` are those of `AsyncPlatformClient`, called in a thread of their own. Its
    event loop runs in a thread that starts with the first use, and ends with the client. A signal
    handler may raise through `run`: what was under way is cancelled. It may also call `interrupt`.
    Threads may share a client. In a process that was forked it opens connections of its own; what
    the parent has begun cannot be gone on with there. What is used after `close` raises
    PlatformClosedError.
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
        self._running: weakref.WeakSet[RunningProgram] = weakref.WeakSet()
        self._interrupted = False
        self._closed = False

    @property
    def _transport(self) -> Transport:
        return self._own_transport

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def run(self, work: Operation[T] | Program[T], on_event: OnEvent = _ignore) -> T:
        """Run an operation or a program to its end; `on_event` hears what it notifies of."""
        results: list[T] = []
        with closing(self.events(keeping(work, results))) as events:
            for event in events:
                on_event(event)
        return results[0]

    def iterate(self, operation: Operation[Page[T]]) -> Iterator[T]:
        """The items of a list, page by page: a page is asked for when its first item is wanted.

        Raises PlatformInputError at once for what is not a list operation; then PlatformError, and
        PlatformProtocolError for a list that cannot be read to its end.
        """
        return paging.iterate(operation, self.run)

    def events(self, program: Program[Any]) -> Events:
        """Run a program to its end, one step at a time: what it notifies of, as it is wanted."""

        def begin() -> RunningProgram:
            thread = self._loop_thread()
            steps = drive(program, self._own_transport, self._is_interrupted)
            running = RunningProgram(thread, steps, self._is_interrupted)
            self._running.add(running)
            return running

        return Events(begin, program)

    def interrupt(self) -> None:
        """Have every program of this client end: what it does now, and whatever it wants to do
        next, raises PlatformInterruptedError. For signal handlers and other threads."""
        self._interrupted = True
        for running in list(self._running):
            running.interrupt()

    def _is_interrupted(self) -> bool:
        return self._interrupted

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
        """The thread that works for this client in this process. Raises PlatformClosedError."""
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
"""Held while a client's thread starts or stops; a forked process begins with a lock of its own."""
_inherited: list[tuple[LoopThread, Transport]] = []
"""What a parent process has open: it is neither used nor closed here."""


def _after_fork() -> None:
    global _starting
    _starting = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
