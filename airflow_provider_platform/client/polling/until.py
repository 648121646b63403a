"""Waiting until something at the service is as wanted: look, pause, look again.

A look is a program that gives plain JSON once the wait is over, and None until then. What a look
is at is told in `looks`; here stands how often and how long to look.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.operations.program import Clock, Notify, Program
from airflow_provider_platform.client.polling.failure_budget import FailureBudget, poll_pause


@dataclass(frozen=True)
class NotYet:
    """What a look saw instead of what is waited for."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class PollFailed:
    """A look failed, and the wait goes on."""

    error: PlatformError

    def __str__(self) -> str:
        return f"A look failed and is repeated: {self.error.message}"


@dataclass(frozen=True)
class PollInterval:
    """Seconds between looks; with `exponential_backoff` they grow, up to `max_wait`."""

    interval: float
    exponential_backoff: bool = False
    max_wait: float | None = None

    def pause(self, looks: int) -> float:
        """Seconds to wait after so many looks."""
        if not self.exponential_backoff:
            return self.interval
        grown = max(1.0, self.interval * 2.0 ** min(looks - 2, 32))
        jittered = grown * random.uniform(1.0, 2.0)  # noqa: S311 - spreads load, guards nothing
        return jittered if self.max_wait is None else min(jittered, self.max_wait)


def poll_until(
    look: Callable[[], Program[Any]],
    pace: PollInterval,
    tolerance: FailureBudget,
    *,
    deadline: float,
    clock: Clock,
    grace: bool = False,
) -> Program[Any]:
    """Look until there is something, at last at the deadline (Unix time); None after that.

    The first look comes after a pause: whoever begins to wait has just looked. Notifies of
    LookFailed and of what the looks tell. Raises what a look raises, once it is not borne any more.
    """
    looks = 1
    failure: PlatformError | None = None
    while True:
        pause = tolerance.pause(pace.pause(looks), failure)
        yield from poll_pause(pause, deadline - clock())
        found, failure = yield from poll_once(look, tolerance, clock, grace=grace)
        looks += 1
        if found is not None:
            return found
        if clock() >= deadline:
            return None


def poll_once(
    look: Callable[[], Program[Any]], tolerance: FailureBudget, clock: Clock, *, grace: bool = False
) -> Program[tuple[Any, PlatformError | None]]:
    """One look: what it gave, and the failure that was borne in its place; with `grace`, what is
    unknown to the service is borne for a minute."""
    try:
        found = yield from look()
    except PlatformError as error:
        if not tolerance.tolerates(error, clock(), grace=grace):
            raise
        yield Notify(PollFailed(error))
        return None, error
    tolerance.clear()
    return found, None
