"""How a try ends that met an error: what its record says then, and whether its run is stopped.

The next try relies on the record, and what no try will follow must not go on running.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_platform.client.errors import (
    BuildFailedError,
    ChatAbortedError,
    ChatEndUnknownError,
    ChatError,
    ChatNoAnswerError,
    ChatRpcError,
    DashboardExportFailedError,
    DbtSyncCancelledError,
    DbtSyncFailedError,
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
)

if TYPE_CHECKING:
    from airflow_provider_platform.operators._submission.retry import Phase


@dataclass(frozen=True)
class FailureDisposition:
    """`phase` is None where the record stays as it is, for a retry to go on from."""

    phase: Phase | None
    stop: bool


def disposition_of(
    error: PlatformError, *, submitted: bool, named: bool, last_try: bool
) -> FailureDisposition:
    """Return how a try ends that met this error.

    `submitted`: the submission is known to have gone out before the request that failed. `named`:
    the run can be looked up or stopped. `last_try`: no later try will find the run.
    """
    if isinstance(error, PlatformOutcomeUnknownError):
        return FailureDisposition("lost", stop=False)
    if isinstance(error, PlatformDeadlineError | PlatformProtocolError):
        return (
            FailureDisposition("failed", stop=True)
            if named
            else FailureDisposition(None, stop=False)
        )
    if _run_has_ended(error) or (not submitted and _was_not_taken(error)):
        return FailureDisposition("failed", stop=False)
    return FailureDisposition(None, stop=last_try or not error.retryable)


def run_is_dead(error: PlatformError) -> bool:
    """Whether an error says of a run that was taken up that nothing will come of it: it was
    stopped, or ended without an answer, or does not go on while nobody tells its end. (A later
    look at a run that was stopped can show each of these.)"""
    return isinstance(
        error, ChatAbortedError | ChatNoAnswerError | ChatEndUnknownError | DbtSyncCancelledError
    )


def _run_has_ended(error: PlatformError) -> bool:
    """Whether an error is the service's word that the run is over. A refused credential (JSON-RPC)
    says nothing of the run."""
    ends = (
        BuildFailedError
        | DbtSyncFailedError
        | DbtSyncCancelledError
        | DashboardExportFailedError
        | ChatError
    )
    return isinstance(error, ends) and not isinstance(error, ChatRpcError)


def _was_not_taken(error: PlatformError) -> bool:
    """Whether an error says that a submission was refused or did not reach the service."""
    from airflow_provider_platform.client.http.retry import cannot_have_been_processed

    return not error.retryable or cannot_have_been_processed(error)
