"""Waits until a condition at the service is true: poll, pause, poll again.

A condition is an async function that returns plain JSON once the wait is over, and None until then.
`client.sensor_conditions` has the conditions of sensors, and `poll_interval` the pauses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.defaults import POLL_INTERVAL
from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformDeadlineError,
    PlatformError,
)
from airflow_provider_platform.client.polling.failure_budget import FailureBudget
from airflow_provider_platform.client.polling.poll_interval import (
    PollInterval,
    first_pause,
    poll_pause,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock


@dataclass(frozen=True)
class PollLimits:
    """How often a wait for a run polls (seconds), and until when (Unix time).

    With `stagger_first_poll` the first poll comes within the first interval instead of at once, so
    that many waits that begin together do not poll together.
    """

    deadline: float
    poll_interval: float = POLL_INTERVAL
    stagger_first_poll: bool = False


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
    interval: PollInterval,
    budget: FailureBudget,
    *,
    deadline: float,
    clock: Clock,
    grace: bool = False,
    begins: Literal["at once", "within the interval", "after a pause"] = "after a pause",
    notify_failures: bool = True,
) -> Any:
    """Poll until the condition is true, for the last time at the deadline (Unix time). Return its
    value, or None after the deadline.

    By default the first poll comes after a pause, because the caller has just polled. "within the
    interval" is for one of many waits that begin together. Notifies of the condition's events and,
    with `notify_failures`, of PollFailed. Raises the condition's errors if they are not tolerated.
    """
    if begins == "within the interval":
        await first_pause(api, interval.interval, deadline - clock())
    failure: PlatformError | None = None
    for polls in count(1):
        if polls > 1 or begins == "after a pause":
            pause = budget.pause(interval.pause(polls), failure)
            await poll_pause(api, pause, deadline - clock())
        outcome, failure = await poll_once(
            api, condition, budget, clock, grace=grace, notify_failures=notify_failures
        )
        if outcome is not None:
            return outcome
        if clock() >= deadline:
            return None
    raise AssertionError("polls are counted without end")


async def poll_until_over(
    api: Api,
    read_once: Callable[[Api], Awaitable[Any]],
    limits: PollLimits,
    clock: Clock,
    *,
    grace: bool = False,
    notify_failures: bool = False,
) -> Any:
    """`poll_until` within the limits, for a run: its outcome, or None if it is not over at the
    deadline. Raises PlatformDeadlineError if the last poll before the deadline failed."""
    failure: PlatformError | None = None

    async def read_and_note(api: Api) -> Any:
        nonlocal failure
        try:
            outcome = await read_once(api)
        except PlatformError as error:
            failure = error
            raise
        failure = None
        return outcome

    outcome = await poll_until(
        api,
        read_and_note,
        PollInterval(limits.poll_interval),
        FailureBudget(),
        deadline=limits.deadline,
        clock=clock,
        grace=grace,
        begins="within the interval" if limits.stagger_first_poll else "at once",
        notify_failures=notify_failures,
    )
    if outcome is None and failure is not None:
        raise deadline_after(failure)
    return outcome


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
    clock: Clock,
    *,
    grace: bool = False,
    notify_failures: bool = True,
) -> tuple[Any, PlatformError | None]:
    """Poll once. Return the value, and the failure if one was tolerated instead. With `grace`, a
    404 is tolerated for a minute."""
    try:
        outcome = await condition(api)
    except PlatformError as error:
        if not budget.tolerates(error, clock(), grace=grace):
            raise
        if notify_failures:
            await api.notify(PollFailed(error))
        return None, error
    budget.clear()
    return outcome, None
