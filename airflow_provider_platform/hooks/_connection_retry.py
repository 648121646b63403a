"""Reading a connection that the task has read before, in a trigger or after a refused credential.

Airflow reports a look-up that failed on its way (the API server restarts, the database is locked)
as a connection that is not defined. Of one that was there a moment ago the former is likelier, so
the look-up is repeated before a wait of hours ends for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tenacity import retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from airflow_provider_platform.client.errors import PlatformError, PlatformTransportError
from airflow_provider_platform.client.formats.service_text import quote_service

if TYPE_CHECKING:
    from tenacity import RetryCallState

ATTEMPTS = 5
FIRST_PAUSE = 0.5
"""Seconds; the pauses double, so that all attempts take about eight."""


def rereading(conn_id: str) -> dict[str, Any]:
    """Arguments for tenacity's `Retrying` and `AsyncRetrying`.

    A connection that can be read and is bad (PlatformConfigError), or that the task must not read
    (PermissionError), is not read again; PlatformTransportError is raised after the last attempt.
    """

    def give_up(state: RetryCallState) -> NoReturn:
        cause = state.outcome.exception() if state.outcome else None
        raise PlatformTransportError(
            f"The Airflow connection {conn_id!r} could be read before and cannot be read now "
            f"({type(cause).__name__}: {quote_service(cause)}). Look whether it still exists and "
            "whether Airflow's API server and database are well.",
            processed=False,
        ) from cause

    return {
        "retry": retry_if_exception(_may_pass),
        "wait": wait_exponential(FIRST_PAUSE) + wait_random(0, FIRST_PAUSE),
        "stop": stop_after_attempt(ATTEMPTS),
        "retry_error_callback": give_up,
    }


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, Exception) and not isinstance(error, PlatformError | PermissionError)
