"""Processes that take turns, so that every order of their steps can be played, and played again.

Each runs in a thread of its own, and only while it holds the baton: `step` hands it over and waits
until the process pauses at its next pause point (a call, a read, a write ...) or ends. Code of the
package runs in it unchanged, event loops and all.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_HANG = 60.0
"""Seconds after which a process that neither pauses nor ends counts as hanging."""


class Killed(BaseException):
    """kill -9. No code handles it. A killed process does nothing at its next pause point."""


class Process:
    """One process. `at` names its pause point, `killed` says that it got kill -9."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = "start"
        self.wake: float | None = None
        self.killed = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.handling = False
        self._signals: list[Callable[[], None]] = []
        self._turn = threading.Semaphore(0)
        self._parked = threading.Semaphore(0)
        self._body: Callable[[], Any] = lambda: None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started = False
        self._ended = False

    def __repr__(self) -> str:
        return f"{self.name} at {self.at}"

    def begin_with(self, body: Callable[[], Any]) -> None:
        """What the process is to do from its first step on."""
        self._body = body

    @property
    def alive(self) -> bool:
        return not self._ended

    @property
    def is_here(self) -> bool:
        """Whether this is the process that runs the caller."""
        return threading.current_thread() is self._thread

    def step(self) -> None:
        """Run the process until its next pause point, or until its end."""
        assert self.alive
        if self._started:
            self._turn.release()
        else:
            self._started = True
            self._thread.start()
        assert self._parked.acquire(timeout=_HANG), f"{self} hangs"

    def interrupt(self, handler: Callable[[], None]) -> None:
        """A signal: the handler runs in the process, before anything else that it does."""
        self._signals.append(handler)

    def kill(self) -> None:
        """kill -9: the process does nothing any more."""
        self.killed = True
        if not self._started:
            self._ended = True
            return
        while self.alive:
            self.step()

    def pause(self, at: str, *, wake: float | None = None) -> None:
        """Pause the process. It calls this method itself. Raises Killed."""
        if self.killed:
            raise Killed
        before = self.at
        self.at, self.wake = at, wake
        self._parked.release()
        self._turn.acquire()
        if self.killed:
            raise Killed
        while self._signals:
            handler, outer = self._signals.pop(0), self.handling
            self.handling = True
            try:
                handler()
            finally:
                self.handling = outer
        self.at, self.wake = before, None

    def _run(self) -> None:
        try:
            self.result = self._body()
        except BaseException as error:  # noqa: BLE001 - the end of a process, whatever it is
            self.error = error
        self._ended = True
        self._parked.release()
