"""A program on the loop of another thread, as an iterator over its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Self

from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformInterruptedError,
)
from airflow_provider_platform.client.http.driver import INTERRUPTED
from airflow_provider_platform.client.http.loop_thread import LoopStoppedError, LoopThread
from airflow_provider_platform.client.operations.program import Program

_END = object()


class Events:
    """The events of a program, as an iterator. The program continues when the next event is
    requested.

    `close` ends a program before its end. A program that did not reach its end never looks
    complete: each later request raises again. Raises PlatformError; PlatformClosedError if the
    client or this iterator was closed before the program's end.
    """

    def __init__(self, begin: Callable[[], RunningProgram], program: Program[Any]) -> None:
        self._begin = begin
        self._program = program
        self._running: RunningProgram | None = None
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
        if event is _END:
            self._ended = True
            raise StopIteration
        return event

    def close(self) -> None:
        """End the program if it has not ended, and close its stream."""
        if self._closed:
            return
        self._closed = True
        if self._ended:
            return
        if self._running is None:
            self._program.close()
            return
        try:
            self._running.close()
        except LoopStoppedError:
            return


class RunningProgram:
    """A program that is running on the loop of another thread."""

    def __init__(
        self, thread: LoopThread, steps: AsyncGenerator[Any], interrupted: Callable[[], bool]
    ) -> None:
        self.thread = thread
        self._steps = steps
        self._interrupted = interrupted
        self._under_way: list[asyncio.Task[Any]] = []
        self._one_at_a_time = asyncio.Lock()

    def step(self) -> Any:
        """Return the next event; `_END` at the end."""
        return self.thread.call(self._step, self._begun)

    def close(self) -> None:
        self.thread.call(self._close)

    def interrupt(self) -> None:
        """Cancel the current step, without waiting."""
        self.thread.call_soon(self._cancel)

    def _begun(self, step: asyncio.Task[Any]) -> None:
        self._under_way.append(step)

    async def _step(self) -> Any:
        # A cancelled step keeps the lock until it has cleaned up.
        try:
            async with self._one_at_a_time:
                return await anext(self._steps, _END)
        except asyncio.CancelledError:
            # The cancel of an interrupt can come while the program already cleans up after its
            # error.
            if not self._interrupted():
                raise
            raise PlatformInterruptedError(INTERRUPTED) from None
        finally:
            self._under_way.clear()

    async def _close(self) -> None:
        self._cancel()
        async with self._one_at_a_time:
            await self._steps.aclose()

    def _cancel(self) -> None:
        for step in self._under_way:
            if not step.cancelling():  # a second cancel would end the clean-up
                step.cancel()


def _why_stopped(running: RunningProgram | None) -> str:
    if running is not None and not running.thread.here:
        return (
            "The run was started in another process (the parent of this one, before a fork). Start "
            "it again in this process."
        )
    return "The client was closed before the run was complete."
