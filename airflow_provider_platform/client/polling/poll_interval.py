"""How long to wait between two polls: the interval, `exponential_backoff` and jitter.

Waits that begin together must not poll together, so each pause varies at random.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api


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


async def poll_pause(api: Api, seconds: float, left: float) -> None:
    """Pause before the next poll, until at the latest after the `left` seconds."""
    if seconds * (1 + POLL_SPREAD) <= left:
        await api.sleep(seconds, spread=POLL_SPREAD)
    else:
        await api.sleep(max(0.0, min(seconds, left)))


async def first_pause(api: Api, interval: float, left: float) -> None:
    """Pause at random up to the interval, before the first poll of a wait: many waits may
    begin at the same time."""
    await api.sleep(max(0.0, min(interval, left) / 2), spread=1.0)
