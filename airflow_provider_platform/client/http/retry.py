"""Decides when a management call is repeated, and how long to wait: one policy for all callers.

GET, PUT and DELETE are repeated after connection errors, time-outs, 408, 429 and 5xx. A request
that must not be processed twice is repeated only if it cannot have been processed: no connection
was made, 429, or 503 with `Retry-After`. `transport` repeats the request and counts the attempts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tenacity import RetryCallState, retry_if_exception, stop_after_attempt

from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransientConflictError,
    PlatformTransportError,
)

TRANSIENT_STATUSES = frozenset({408, 429})
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_RETRY_AFTER = 600.0
"""Seconds of the longest `Retry-After` that is respected if there is no deadline."""
_A_YEAR = 366 * 24 * 3600.0


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds to wait according to a `Retry-After` header (seconds or an HTTP date);
    None if it is missing or cannot be parsed. `now` is Unix time."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _A_YEAR)
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    seconds = (date - datetime.fromtimestamp(now, UTC)).total_seconds()
    return min(max(0.0, seconds), _A_YEAR)


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, PlatformTransportError | PlatformTransientConflictError):
        return True
    status = error.status if isinstance(error, PlatformApiError) else None
    return status is not None and (status >= 500 or status in TRANSIENT_STATUSES)


def cannot_have_been_processed(error: BaseException) -> bool:
    """Return whether the service certainly did not process the request that ended with this
    error."""
    if isinstance(error, PlatformTransportError):
        return error.processed is False
    if isinstance(error, PlatformTransientConflictError):
        return True
    if isinstance(error, PlatformApiError):
        return error.status == 429 or (error.status == 503 and error.retry_after is not None)
    return False


def may_have_been_processed(error: BaseException) -> bool:
    """Return whether the service may have processed the request, although it returned no usable
    answer."""
    if isinstance(error, PlatformProtocolError):
        return True
    return is_transient(error) and not cannot_have_been_processed(error)


def may_repeat(error: BaseException, *, repeatable: bool) -> bool:
    """Return whether the request that ended with this error may be sent again now."""
    return cannot_have_been_processed(error) or (repeatable and is_transient(error))


def pause_after(error: BaseException | None, failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: the service's `Retry-After`, or a
    pause that doubles each time, with jitter."""
    asked = error.retry_after if isinstance(error, PlatformApiError) else None
    grown = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** max(0, min(failures, 16) - 1))
    jittered = grown * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
    return jittered if asked is None else asked + jittered * 0.1


def tenacity_policy(
    *, repeatable: bool, max_attempts: int, deadline: float | None, clock: Callable[[], float]
) -> dict[str, Any]:
    """Return the arguments with which tenacity's `Retrying` or `AsyncRetrying` follows this
    policy."""

    enough = stop_after_attempt(max_attempts)

    def wait(state: RetryCallState) -> float:
        return pause_after(_error_of(state), state.attempt_number)

    def too_late(state: RetryCallState) -> bool:
        if deadline is None:
            return state.upcoming_sleep > LONGEST_RETRY_AFTER
        return clock() + state.upcoming_sleep >= deadline

    return {
        "retry": retry_if_exception(lambda error: may_repeat(error, repeatable=repeatable)),
        "wait": wait,
        "stop": lambda state: enough(state) or too_late(state),
        "reraise": True,
    }


def _error_of(state: RetryCallState) -> PlatformError | None:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, PlatformError) else None
