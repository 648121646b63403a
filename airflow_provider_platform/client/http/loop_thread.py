"""An event loop in a thread of its own, which synchronous code has its work done by.

Nothing ever waits for such a thread without end: it is a daemon, so a process can end while it
works; one that is not referred to any more ends by itself; and a process that was forked has none
of its parent's threads, so it begins anew.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")
Cleanup = Callable[[], Awaitable[None]]
Begun = Callable[[asyncio.Task[Any]], None]

STOP_SECONDS = 5.0
EXIT_SECONDS = 2.0
"""How long `stop`, and the end of a process, wait for connections to be closed."""

SIGNAL_SECONDS = 0.5
"""How long the handler of a signal may have to wait for the main thread, while that waits here."""

_running: weakref.WeakSet[LoopThread] = weakref.WeakSet()


class LoopStoppedError(Exception):
    """The loop has been stopped, or stands in the process that this one was forked from."""


class LoopThread:
    """Runs coroutines for other threads, from its creation until `stop`.

    `cleanup` is awaited at the end. It must not refer to the object whose end stops the loop.
    """

    def __init__(self, cleanup: Cleanup) -> None:
        self._cleanup = cleanup
        self._loop = asyncio.new_event_loop()
        # A signal handler may stop the loop while its own thread stands in `call`.
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
        """Whether the loop is one of this process."""
        return self._pid == os.getpid()

    def call(self, function: Callable[[], Awaitable[T]], begun: Begun | None = None) -> T:
        """Await the function's outcome on the loop; an exception here (a signal handler may raise)
        cancels it there. `begun` hears there of the task. Raises LoopStoppedError."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("the loop's own thread cannot wait for it")

        async def awaited() -> T:
            task = asyncio.current_task()
            if begun is not None and task is not None:
                begun(task)
            return await function()

        if not self.here:
            raise LoopStoppedError
        future: Future[T] | None = None
        try:
            with self._gate:
                if not self._open:
                    raise LoopStoppedError
                future = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
            return _outcome(future)
        except CancelledError:
            raise LoopStoppedError from None
        except BaseException:
            if future is not None:
                future.cancel()
            raise

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call the function on the loop, if that still runs, without waiting for it."""
        if self.here and self._open:
            self._loop.call_soon_threadsafe(function)

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """Cancel what runs, clean up and end the thread; waits for that at most so many seconds."""
        if not self.here:
            return
        with self._gate:
            self._ask_to_end()
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    def abandon(self) -> None:
        """`stop` without waiting and without locks, as the garbage collector needs it."""
        if self.here:
            self._ask_to_end()

    def _ask_to_end(self) -> None:
        if self._open:
            self._open = False
            self._loop.call_soon_threadsafe(self._loop.stop)


def _outcome(future: Future[T]) -> T:
    """What the future ends with. Who waits looks up now and then: Python runs the handler of a
    signal in the main thread, and the kernel may have given the signal to another one (it does so
    when the process was stopped), which does not wake the main thread."""
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
    """What is under way is cancelled before connections are closed, so that it can tell why."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        if not task.cancelling():  # a second one would end the cleaning up
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await cleanup()


@atexit.register
def _stop_all() -> None:
    """The process ends: close connections, but wait for none that does not want to."""
    threads = list(_running)
    for thread in threads:
        thread.abandon()
    until = time.monotonic() + EXIT_SECONDS
    for thread in threads:
        thread.stop(seconds=max(0.0, until - time.monotonic()))
