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
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from functools import partial
from typing import Any, Self, TypeVar

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformInterruptedError,
)
from airflow_provider_platform.client.http.loop_thread import LoopStoppedError, LoopThread
from airflow_provider_platform.client.http.session import Session
from airflow_provider_platform.client.http.transport import Transport
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Clock, Effect, Notify, Program, call
from airflow_provider_platform.client.redaction import KnownSecrets

T = TypeVar("T")
OnEvent = Callable[[Any], None]


def _ignore(event: Any) -> None:
    """The listener of those who do not listen."""


def _guarded(program: Program[T], secrets: KnownSecrets) -> Program[T]:
    """The program; the errors that it meets and raises hold no secret."""
    try:
        effect = next(program)
        while True:
            try:
                outcome = yield effect
            except PlatformError as error:
                secrets.hide_in(error)
                effect = program.throw(error)
            else:
                effect = program.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    except PlatformError as error:
        secrets.hide_in(error)
        raise
    finally:
        program.close()


def _keeping(work: Operation[T] | Program[T], results: list[T]) -> Program[None]:
    """The program of some work; its result is put into the list."""
    result = yield from (call(work) if isinstance(work, Operation) else work)
    results.append(result)


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
        async with aclosing(self.events(_keeping(work, results))) as events:
            async for event in events:
                on_event(event)
        return results[0]

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


def _never() -> bool:
    return False


async def drive(
    program: Program[Any], transport: Transport, interrupted: Callable[[], bool] = _never
) -> AsyncGenerator[Any]:
    """Carry a program out; what it notifies of. What is interrupted, by a cancel too, raises
    PlatformInterruptedError inside the program."""
    program = _guarded(program, transport.secrets)
    session = Session(transport)
    try:
        effect = next(program)
        while True:
            try:
                outcome = None
                if isinstance(effect, Notify):
                    yield effect.event
                else:
                    outcome = await _perform(session, effect, interrupted)
            except PlatformError as error:
                effect = program.throw(error)
            else:
                effect = program.send(outcome)
    except StopIteration:
        return
    finally:
        program.close()
        await session.aclose()


async def _perform(session: Session, effect: Effect, interrupted: Callable[[], bool]) -> Any:
    """The outcome of an effect, unless it is interrupted before that is there."""
    if interrupted():
        raise PlatformInterruptedError(_INTERRUPTED)
    try:
        return await session.perform(effect)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not interrupted():
            raise
        task.uncancel()
        raise PlatformInterruptedError(_INTERRUPTED) from None


_INTERRUPTED = "The task was ended from outside: it goes no further."


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
        self._courses: weakref.WeakSet[_Course] = weakref.WeakSet()
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
        with closing(self.events(_keeping(work, results))) as events:
            for event in events:
                on_event(event)
        return results[0]

    def events(self, program: Program[Any]) -> Events:
        """Run a program to its end, one step at a time: what it notifies of, as it is wanted."""

        def begin() -> _Course:
            thread = self._loop_thread()
            steps = drive(program, self._own_transport, self._is_interrupted)
            course = _Course(thread, steps, self._is_interrupted)
            self._courses.add(course)
            return course

        return Events(begin, program)

    def interrupt(self) -> None:
        """Have every program of this client end: what it does now, and whatever it wants to do
        next, raises PlatformInterruptedError. For signal handlers and other threads."""
        self._interrupted = True
        for course in list(self._courses):
            course.interrupt()

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


class Events:
    """What a program notifies of, as an iterator: the program goes on when more is wanted.

    `close` ends a program half way. What has not come to its end never looks as if it had: asked
    again, it raises again. Raises PlatformError; PlatformClosedError where the client, or this, was
    closed before the program's end.
    """

    def __init__(self, begin: Callable[[], _Course], program: Program[Any]) -> None:
        self._begin = begin
        self._program = program
        self._course: _Course | None = None
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
            raise PlatformClosedError("This was closed before its end.")
        try:
            self._course = self._course or self._begin()
            event = self._course.step()
        except LoopStoppedError:
            self._failure = PlatformClosedError(_why_stopped(self._course))
            raise self._failure from None
        except PlatformError as error:
            self._failure = error
            raise
        except BaseException:
            self._failure = PlatformClosedError("This was interrupted before its end.")
            raise
        if event is _END:
            self._ended = True
            raise StopIteration
        return event

    def close(self) -> None:
        """End the program, if it has not ended, and close what it has open."""
        if self._closed:
            return
        self._closed = True
        if self._ended:
            return
        if self._course is None:
            self._program.close()
            return
        try:
            self._course.close()
        except LoopStoppedError:
            return


class _Course:
    """A program under way on the loop of another thread."""

    def __init__(
        self, thread: LoopThread, steps: AsyncGenerator[Any], interrupted: Callable[[], bool]
    ) -> None:
        self.thread = thread
        self._steps = steps
        self._interrupted = interrupted
        self._under_way: list[asyncio.Task[Any]] = []
        self._one_at_a_time = asyncio.Lock()

    def step(self) -> Any:
        """The next event, `_END` at the end."""
        return self.thread.call(self._step, self._begun)

    def close(self) -> None:
        self.thread.call(self._close)

    def interrupt(self) -> None:
        """Cancel the step that is under way; returns at once."""
        self.thread.call_soon(self._cancel)

    def _begun(self, step: asyncio.Task[Any]) -> None:
        self._under_way.append(step)

    async def _step(self) -> Any:
        # One that is cancelled keeps the lock until it has cleaned up.
        try:
            async with self._one_at_a_time:
                return await anext(self._steps, _END)
        except asyncio.CancelledError:
            # The cancel of an interrupt can come while its error is cleaned up after already.
            if not self._interrupted():
                raise
            raise PlatformInterruptedError(_INTERRUPTED) from None
        finally:
            self._under_way.clear()

    async def _close(self) -> None:
        self._cancel()
        async with self._one_at_a_time:
            await self._steps.aclose()

    def _cancel(self) -> None:
        for step in self._under_way:
            if not step.cancelling():  # a second one would end the cleaning up
                step.cancel()


_END = object()
_starting = threading.RLock()
"""Held while a client's thread starts or stops; a forked process begins with a lock of its own."""
_inherited: list[tuple[LoopThread, Transport]] = []
"""What a parent process has open: it is neither used nor closed here."""


def _why_stopped(course: _Course | None) -> str:
    if course is not None and not course.thread.here:
        return "This was begun in the process that this one was forked from: begin it anew here."
    return "The client was closed before this was complete."


def _after_fork() -> None:
    global _starting
    _starting = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
