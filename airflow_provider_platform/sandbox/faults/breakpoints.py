"""Breakpoints: the sandbox stops at one until a test releases it, so no test has to sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_platform.sandbox.faults.matching import Match, Subject, Tally

REQUEST_BREAKPOINTS = frozenset({"before_call", "before_answer"})
RUN_BREAKPOINTS = frozenset(
    {"after_cutoff", "after_echo", "mid_stream", "before_final", "after_final", "before_state"}
)


@dataclass(frozen=True, kw_only=True)
class Breakpoint(Match):
    """Stop a request or a run at the breakpoint ``name``.

    - ``before_call``: the sandbox has received the request and has not processed it. If the client
      disconnects, the sandbox forgets the request, unless ``process_disconnected`` is set.
    - ``before_answer``: the sandbox has processed the request and has sent no byte of the response.
    - ``after_cutoff``, ``after_echo``, ``mid_stream`` (after ``after`` records of the run; the user
      echo is the first), ``before_final``, ``after_final``, ``before_state``: the run stops. All
      connected clients have received everything that the run has produced.
    """

    name: str
    after: int = 4
    process_disconnected: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        known = REQUEST_BREAKPOINTS | RUN_BREAKPOINTS
        if self.name not in known:
            raise ValueError(f"no breakpoint {self.name!r}; known are {', '.join(sorted(known))}")
        if self.name in RUN_BREAKPOINTS and (self.method or self.path):
            raise ValueError(f"{self.name} applies to a run, so leave out method and path")


class _SetBreakpoint:
    """A breakpoint that is set, what has stopped at it, and whether it is released."""

    def __init__(self, rule: Breakpoint) -> None:
        self.rule = rule
        self.tally = Tally(rule)
        self.released = asyncio.Event()
        self.stopped: list[Subject] = []


class Breakpoints:
    """The breakpoints that are set. ``changed`` is called each time a request or a run stops."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._set: list[_SetBreakpoint] = []
        self._changed = changed

    def set(self, rule: Breakpoint) -> None:
        self._set.append(_SetBreakpoint(rule))

    def match(
        self, name: str, subject: Subject, *, after: int | None = None
    ) -> _SetBreakpoint | None:
        """Return the breakpoint at which ``subject`` must stop, and count the match. Return None if
        it need not stop."""
        for point in self._set:
            if point.rule.name != name or point.released.is_set():
                continue
            if after is not None and point.rule.after != after:
                continue
            if point.tally.take(subject):
                return point
        return None

    async def stop(self, point: _SetBreakpoint, subject: Subject) -> None:
        """Wait at ``point`` until it is released."""
        point.stopped.append(subject)
        self._changed()
        await point.released.wait()

    def stopped(self, name: str) -> list[Subject]:
        """Return the requests and runs that have stopped at the breakpoints of this name."""
        return [
            subject
            for point in self._set
            if point.rule.name == name and not point.released.is_set()
            for subject in point.stopped
        ]

    def names(self) -> list[str]:
        return [point.rule.name for point in self._set if not point.released.is_set()]

    def release(self, name: str | None = None) -> int:
        """Let everything at this breakpoint (None: at each breakpoint) continue, and remove the
        breakpoint. Return how many were set."""
        released = [point for point in self._set if name in (None, point.rule.name)]
        for point in released:
            point.released.set()
        self._set = [point for point in self._set if not point.released.is_set()]
        return len(released)
