"""Waits until a condition on the service is true: poll, pause, poll again.

A condition is an async function that returns plain JSON once the wait is over, and None until then.
`resources.sensor_conditions` has the conditions of sensors. Waits that begin together must not poll
together, so each pause varies at random.

A wait tolerates an outage of two minutes: five transient failures in a row, with pauses that grow
from `FAILURE_PAUSE`, however short the poll interval is. For a minute it also tolerates
that the service does not know or serve something that was just started. The count is plain data, so
that it can move with the wait from one process to the next.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.choices import POLL_INTERVAL
from airflow_provider_platform.client.errors import (
    BranchNotServedError,
    PlatformApiError,
    PlatformDeadlineError,
    PlatformError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.repeats import is_transient, pause_after

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


TOLERATED_FAILURES = 5
FAILURE_PAUSE = POLL_INTERVAL
"""The seconds after a first failure, unless the poll interval is longer. They double with each
further failure: five failures take at least 2 minutes."""
NOT_FOUND_GRACE = 60.0
"""Seconds for which the service may not know something after its start, or a branch may have no
build."""
LONGEST_PAUSE = 60.0


@dataclass
class FailureBudget:
    """The failures of one wait so far: `failures` in a row, `missing_since` in Unix time, and
    whether any poll was answered."""

    failures: int = 0
    missing_since: float | None = None
    answered: bool = False

    def tolerates(self, error: PlatformError, now: float, *, grace: bool = False) -> bool:
        """Count a failed poll, and return whether the wait continues. With `grace`, a 404 is
        tolerated for a minute. A branch that the service does not serve is always tolerated for a
        minute."""
        not_served = isinstance(error, BranchNotServedError)
        if not_served:
            self.failures = 0
        if not_served or (grace and isinstance(error, PlatformNotFoundError)):
            self.answered = True
            self.missing_since = now if self.missing_since is None else self.missing_since
            return now - self.missing_since < NOT_FOUND_GRACE
        if not is_transient(error):
            return False
        self.failures += 1
        return self.failures <= TOLERATED_FAILURES

    def clear(self) -> None:
        """Forget the failures after a successful poll."""
        self.failures, self.missing_since, self.answered = 0, None, True

    def pause(self, interval: float, error: PlatformError | None) -> float:
        """Return the seconds until the next poll: the interval, and longer while polls fail."""
        if self.failures == 0 or error is None:
            return interval
        first = max(FAILURE_PAUSE, interval)
        grown = max(interval, min(LONGEST_PAUSE, first * 2.0 ** (self.failures - 1)))
        return max(grown, pause_after(error, 1))


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


async def poll_pause(api: Api, seconds: float, left: float, *, failed: bool = False) -> None:
    """Pause before the next poll, until at the latest after the `left` seconds. After a failed poll
    the pause is only longer at random, never shorter: else the failures that a wait tolerates could
    be over before two minutes, and a `Retry-After` would be cut."""
    shortest = seconds if failed else seconds * (1 - POLL_SPREAD)
    longest = seconds * (1 + POLL_SPREAD)
    if longest <= left:
        await api.sleep(shortest, longest)
    else:
        await api.sleep(max(0.0, min(seconds, left)))


async def first_pause(api: Api, interval: float, left: float) -> None:
    """Pause at random up to the interval, before the first poll of a wait: many waits may
    begin at the same time."""
    await api.sleep(0.0, max(0.0, min(interval, left)))


@dataclass(frozen=True)
class Wait:
    """How one wait polls, until the `deadline` (Unix time).

    The first poll comes `at once`, `within the interval`, because many such waits may begin
    together, or `after a pause`, because the caller has just polled. With `grace`, a 404 is
    tolerated for a minute. `notify_failures`: the wait notifies of PollFailed.
    `last_failure_counts`: if the last poll failed, the wait ends with an error.
    """

    deadline: float
    interval: PollInterval
    begins: Literal["at once", "within the interval", "after a pause"] = "at once"
    grace: bool = False
    notify_failures: bool = False
    last_failure_counts: bool = True


@dataclass(frozen=True)
class NotYet:
    """Reports what a poll found if the condition is not true yet."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class PollFailed:
    """Reports that a poll failed and the wait continues."""

    error: PlatformError

    def __str__(self) -> str:
        return f"A status check failed and is repeated: {self.error.message}"


async def poll_until(
    api: Api,
    condition: Callable[[Api], Awaitable[Any]],
    wait: Wait,
    budget: FailureBudget | None = None,
) -> Any:
    """Poll until the condition is true, for the last time at the deadline. Return its value, or
    None after the deadline. `budget` has the failures before this wait.

    Notifies of the condition's events. Raises the condition's errors if they are not tolerated, and
    PlatformDeadlineError if no poll was answered until the deadline.
    """
    budget = budget or FailureBudget()
    if wait.begins == "within the interval":
        await first_pause(api, wait.interval.interval, wait.deadline - api.clock())
    failure: PlatformError | None = None
    for polls in count(1):
        if polls > 1 or wait.begins == "after a pause":
            pause = budget.pause(wait.interval.pause(polls), failure)
            await poll_pause(api, pause, wait.deadline - api.clock(), failed=budget.failures > 0)
        outcome, failure = await poll_once(
            api, condition, budget, grace=wait.grace, notify_failures=wait.notify_failures
        )
        if outcome is not None:
            return outcome
        if api.clock() >= wait.deadline:
            if failure is not None and (wait.last_failure_counts or not budget.answered):
                raise deadline_after(failure)
            return None
    raise AssertionError("polls are counted without end")


def deadline_after(failure: PlatformError) -> PlatformDeadlineError:
    """Return the error of a wait whose last request failed when its deadline came."""
    asked = failure.retry_after if isinstance(failure, PlatformApiError) else None
    pause = "" if asked is None else f" It asks to wait {asked:.0f} seconds (Retry-After)."
    error = PlatformDeadlineError(
        "The deadline has passed, and the service did not say how far the work is. Its last "
        f"answer: {failure.reason.removesuffix('.')}.{pause}",
        where=failure.where,
    )
    error.__cause__ = failure
    return error


async def poll_once(
    api: Api,
    condition: Callable[[Api], Awaitable[Any]],
    budget: FailureBudget,
    *,
    grace: bool = False,
    notify_failures: bool = True,
) -> tuple[Any, PlatformError | None]:
    """Poll once. Return the value, and the failure if one was tolerated instead. With `grace`, a
    404 is tolerated for a minute."""
    try:
        outcome = await condition(api)
    except PlatformError as error:
        if not budget.tolerates(error, api.clock(), grace=grace):
            raise
        if notify_failures:
            api.report(PollFailed(error))
        return None, error
    budget.clear()
    return outcome, None
