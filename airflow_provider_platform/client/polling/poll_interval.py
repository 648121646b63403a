"""How long to wait between two polls: the interval, `exponential_backoff` and jitter.

Waits that begin together must not poll together, so each pause varies at random.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from airflow_provider_platform.client.operations.program import Program, Sleep

POLL_SPREAD = 0.5
"""The fraction by which a pause between polls is randomly shorter or longer, so that polls which
began together spread over an interval."""


@dataclass(frozen=True)
class PollInterval:
    """The seconds between polls. With `exponential_backoff` they grow up to `max_wait`."""

    interval: float
    exponential_backoff: bool = False
    max_wait: float | None = None

    def pause(self, polls: int) -> float:
        """Return the seconds to wait after so many polls."""
        if not self.exponential_backoff:
            return self.interval
        grown = max(1.0, self.interval * 2.0 ** min(polls - 2, 32))
        jittered = grown * random.uniform(1.0, 2.0)  # noqa: S311 - spreads load, guards nothing
        return jittered if self.max_wait is None else min(jittered, self.max_wait)


def poll_pause(seconds: float, left: float) -> Program[None]:
    """Return the pause before the next poll, which ends at the latest after the `left` seconds."""
    if seconds * (1 + POLL_SPREAD) <= left:
        yield Sleep(seconds, spread=POLL_SPREAD)
    else:
        yield Sleep(max(0.0, min(seconds, left)))


def first_pause(interval: float, left: float) -> Program[None]:
    """Return a random pause up to the interval, before the first poll of a wait: many waits may
    begin at the same time."""
    yield Sleep(max(0.0, min(interval, left) / 2), spread=1.0)
