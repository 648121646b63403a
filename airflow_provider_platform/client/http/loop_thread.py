"""An event loop in its own thread, which does the work of synchronous code.

Nothing waits for such a thread forever. It is a daemon thread, so a process can end while the
thread works. The thread ends by itself if nothing refers to it any more. A forked process has none
of its parent's threads, so it starts a new one.
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
from typing import TypeVar

T = TypeVar("T")
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

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run the function on the loop and return its outcome. If the caller's thread gets an
        exception (a signal handler may raise), the function is cancelled. Raises
        LoopStoppedError."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("the loop's own thread cannot wait for it")

        async def awaited() -> T:
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
