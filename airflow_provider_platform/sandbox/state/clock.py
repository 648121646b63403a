"""The sandbox's clock: real time, which tests can move forward instead of waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """The clock for lifetimes and timestamps of resources. The journal uses real time."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        """Unix time in seconds."""
        return time.time() + self._ahead

    def later(self, seconds: float) -> float:
        """Return the time in so many seconds. For 0, that time has already come, even if the clock
        is set back."""
        return self.now() + seconds if seconds else 0.0

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def stamp(self, at: float | None = None) -> str:
        """Return a time (default: now) as the management API writes it."""
        return iso(self.now() if at is None else at)


def iso(at: float) -> str:
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
