"""Hold points: where the server stops until a test lets it go on, so that no test has to sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_platform.sandbox.faults.matching import Match, Subject, Tally

REQUEST_POINTS = frozenset({"before_call", "before_answer"})
RUN_POINTS = frozenset(
    {"after_cutoff", "after_echo", "mid_stream", "before_final", "after_final", "before_state"}
)


@dataclass(frozen=True, kw_only=True)
class Hold(Match):
    """Stop at the point ``name``.

    - ``before_call``: the request has been received, nothing is processed. If the client goes away
      meanwhile the request is forgotten, unless ``process_disconnected``.
    - ``before_answer``: processed, not a byte answered.
    - ``after_cutoff``, ``after_echo``, ``mid_stream`` (after ``after`` records of the run, the user
      echo being the first), ``before_final``, ``after_final``, ``before_state``: the run stands
      still; what it has produced has been handed to all connected clients.
    """

    name: str
    after: int = 4
    process_disconnected: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        known = REQUEST_POINTS | RUN_POINTS
        if self.name not in known:
            raise ValueError(f"no hold point {self.name!r}; known are {', '.join(sorted(known))}")
        if self.name in RUN_POINTS and (self.method or self.path):
            raise ValueError(f"{self.name} applies to a run, so leave out method and path")


class _Place:
    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.tally = Tally(hold)
        self.open = asyncio.Event()
        self.reached: list[Subject] = []


class Holds:
    """The holds in force. ``changed`` is called whenever something arrives at one."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._places: list[_Place] = []
        self._changed = changed

    def set(self, hold: Hold) -> None:
        self._places.append(_Place(hold))

    def place(self, name: str, subject: Subject, *, after: int | None = None) -> _Place | None:
        """The hold that ``subject`` has to stop at, counted; None lets it pass."""
        for place in self._places:
            if place.hold.name != name or place.open.is_set():
                continue
            if after is not None and place.hold.after != after:
                continue
            if place.tally.take(subject):
                return place
        return None

    async def stop(self, place: _Place, subject: Subject) -> None:
        """Stand at ``place`` until it is released."""
        place.reached.append(subject)
        self._changed()
        await place.open.wait()

    def reached(self, name: str) -> list[Subject]:
        """Who has arrived at the unreleased holds of this name."""
        return [
            subject
            for place in self._places
            if place.hold.name == name and not place.open.is_set()
            for subject in place.reached
        ]

    def names(self) -> list[str]:
        return [place.hold.name for place in self._places if not place.open.is_set()]

    def release(self, name: str | None = None) -> int:
        """Let everything at this point (or at all) go on, and remove the hold."""
        released = [p for p in self._places if name in (None, p.hold.name)]
        for place in released:
            place.open.set()
        self._places = [p for p in self._places if not p.open.is_set()]
        return len(released)
