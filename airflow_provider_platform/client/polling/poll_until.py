"""Waiting until something at the service is as wanted: poll, pause, poll again.

A condition is a program that returns plain JSON once the wait is over, and None until then.
`client.sensor_conditions` has the conditions of sensors, and `poll_interval` the pauses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.operations.program import Clock, Notify, Program
from airflow_provider_platform.client.polling.failure_budget import FailureBudget
from airflow_provider_platform.client.polling.poll_interval import (
    PollInterval,
    first_pause,
    poll_pause,
)


@dataclass(frozen=True)
class NotYet:
    """What a poll saw instead of what is waited for."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class PollFailed:
    """A poll failed, and the wait goes on."""

    error: PlatformError

    def __str__(self) -> str:
        return f"A status check failed and is repeated: {self.error.message}"


def poll_until(
    condition: Callable[[], Program[Any]],
    interval: PollInterval,
    budget: FailureBudget,
    *,
    deadline: float,
    clock: Clock,
    grace: bool = False,
    begins: Literal["at once", "within the interval", "after a pause"] = "after a pause",
    tells_failures: bool = True,
) -> Program[Any]:
    """Poll until the condition holds, at last at the deadline (Unix time); None after that.

    By default the first poll comes after a pause, for those who have just polled; "within the
    interval" is for one of many waits that begin together. Notifies of what the condition tells
    and, with `tells_failures`, of PollFailed. Raises what the condition raises, once that is not
    tolerated.
    """
    if begins == "within the interval":
        yield from first_pause(interval.interval, deadline - clock())
    failure: PlatformError | None = None
    for polls in count(1):
        if polls > 1 or begins == "after a pause":
            pause = budget.pause(interval.pause(polls), failure)
            yield from poll_pause(pause, deadline - clock())
        found, failure = yield from poll_once(
            condition, budget, clock, grace=grace, tells_failures=tells_failures
        )
        if found is not None:
            return found
        if clock() >= deadline:
            return None
    raise AssertionError("polls are counted without end")


def poll_once(
    condition: Callable[[], Program[Any]],
    budget: FailureBudget,
    clock: Clock,
    *,
    grace: bool = False,
    tells_failures: bool = True,
) -> Program[tuple[Any, PlatformError | None]]:
    """One poll: what it gave, and the failure that was tolerated in its place; with `grace`, what
    is unknown to the service is tolerated for a minute."""
    try:
        found = yield from condition()
    except PlatformError as error:
        if not budget.tolerates(error, clock(), grace=grace):
            raise
        if tells_failures:
            yield Notify(PollFailed(error))
        return None, error
    budget.clear()
    return found, None
