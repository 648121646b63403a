"""When a request is sent again, and what a request that failed may have done.

One policy decides for all callers when a management call is repeated, and after which pause. GET,
PUT and DELETE are repeated after connection errors, time-outs, 408, 429 and 5xx. A request that
must not be processed twice is repeated only if it cannot have been processed: no connection was
made, 429, or 503 with `Retry-After`. `Api.call` repeats the request and counts the attempts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from tenacity import RetryCallState, retry_if_exception, stop_after_attempt

from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    PlatformTransientConflictError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import RETRY_MAY_SUCCEED

TRANSIENT_STATUSES = frozenset({408, 429})
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_RETRY_AFTER = 600.0
"""Seconds of the longest `Retry-After` that is respected if there is no deadline."""


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


def what_came_instead(cause: PlatformError) -> str:
    """Return the reason of a write that the service did not confirm, without the general advice to
    retry: its caller says what a retry does."""
    return cause.reason.removesuffix(f" {RETRY_MAY_SUCCEED}")


def outcome_unknown(
    unknown: PlatformOutcomeUnknownError, cause: PlatformError
) -> PlatformOutcomeUnknownError:
    """Return the error of a write with an unknown outcome, beginning with what came instead of the
    confirmation: an error of the service, a time-out or a broken connection. `unknown` is the error
    of whoever looked for the outcome and cannot know what came."""
    return PlatformOutcomeUnknownError(
        f"{what_came_instead(cause)} {unknown.reason}", where=unknown.where or cause.where
    )


def has_deleted_before(method: str, error: PlatformError, earlier: Iterable[PlatformError]) -> bool:
    """Return whether a DELETE that found nothing has succeeded: an earlier attempt may have deleted
    the object, although its answer was lost."""
    found_nothing = method == "DELETE" and isinstance(error, PlatformNotFoundError)
    return found_nothing and any(map(may_have_been_processed, earlier))


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
