"""Work that runs one event at a time: on an event loop, and for a synchronous caller."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
    PlatformInterruptedError,
)
from airflow_provider_platform.client.http.api import INTERRUPTED, Api, Work
from airflow_provider_platform.client.http.loop_thread import LoopStoppedError, LoopThread
from airflow_provider_platform.client.http.transport import Transport

T = TypeVar("T")

END = object()


def _never() -> bool:
    return False


class Steps(Generic[T]):
    """One run of work on the running loop. It waits at each event until the next step.

    `result` is the work's result, after its end. With `silent` the work does not stop at events.
    """

    result: T

    def __init__(
        self,
        work: Work[T],
        transport: Transport,
        interrupted: Callable[[], bool] = _never,
        *,
        silent: bool = False,
    ) -> None:
        self._work = work
        self._interrupted = interrupted
        self._api = (
            Api(transport, interrupted=interrupted)
            if silent
            else Api(transport, self._offer, interrupted)
        )
        self._task: asyncio.Task[None] | None = None
        self._event: asyncio.Future[object] | None = None
        self._handled: asyncio.Future[None] | None = None
        self._is_closing = False

    async def step(self) -> Any:
        """Continue the work until its next event, and return the event; `END` at the end. Raises
        what the work raises. A cancelled step ends the work."""
        self._event = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
            # A forked process has a copy of the task and no loop for it.
            self._task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
        elif self._handled is not None and not self._handled.done():
            self._handled.set_result(None)
        try:
            futures: set[asyncio.Future[Any]] = {self._task, self._event}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.aclose()
            if self._interrupted():
                raise PlatformInterruptedError(INTERRUPTED) from None
            raise
        if self._event.done():
            return self._event.result()
        if self._task.cancelled() and self._interrupted():
            raise PlatformInterruptedError(INTERRUPTED)
        self._task.result()
        return END

    @property
    def ended(self) -> bool:
        """Whether the work has returned or failed."""
        return self._task is not None and self._task.done()

    def cancel(self) -> None:
        """Cancel what the work is waiting for at the service, if anything."""
        waits_for_caller = self._handled is not None and not self._handled.done()
        if self._task is not None and not waits_for_caller:
            self._cancel_once(self._task)

    def end_soon(self) -> None:
        """End the work, without waiting."""
        self._is_closing = True
        if self._task is not None:
            self._cancel_once(self._task)

    async def aclose(self) -> None:
        """End the work, and wait until it has cleaned up."""
        self._is_closing = True
        if self._task is not None:
            self._cancel_once(self._task)
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()  # it has been retrieved

    @staticmethod
    def _cancel_once(task: asyncio.Task[None]) -> None:
        if not task.cancelling():  # a second cancel would end the clean-up
            task.cancel()

    async def _run(self) -> None:
        try:
            self.result = await self._work(self._api)
        except PlatformError as error:
            self._api.secrets.hide_in(error)
            raise
        finally:
            await self._api.aclose()
            del self._work  # it may hold the client, whose end it would delay until a collection

    async def _offer(self, event: object) -> None:
        """Hand the event to the caller, and wait until the caller has handled it."""
        if self._is_closing or self._event is None:
            raise asyncio.CancelledError
        self._handled = asyncio.get_running_loop().create_future()
        self._event.set_result(event)
        await self._handled


class Events(Generic[T]):
    """The events of work on the loop of another thread, as an iterator. The work continues when the
    next event is requested.

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
        try:
            return self.thread.call(self.steps.step)
        finally:
            if self.steps.ended:  # its error holds the frames of the caller, and they this object
                self._ending.detach()

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
