"""What a failed try leaves to the next one: a phase of its record, a running run, or neither."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatEndUnknownError,
    ChatNoAnswerError,
    ChatRpcError,
    DashboardExportFailedError,
    DbtSyncCancelledError,
    DbtSyncFailedError,
    PlatformAddressError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInterruptedError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    PlatformTransportError,
    PlatformTriggerError,
    from_payload,
)
from airflow_provider_platform.operators._run_record import FailureDisposition, disposition_of

LEFT = FailureDisposition(None, stop=False)
STOPPED = FailureDisposition(None, stop=True)
FAILED = FailureDisposition("failed", stop=False)


@pytest.mark.parametrize("last_try", [False, True])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("submitted", [False, True])
@pytest.mark.parametrize(
    ("error", "disposition"),
    [
        (PlatformOutcomeUnknownError("x"), FailureDisposition("lost", stop=False)),
        (ChatAbortedError("x"), FAILED),
        (ChatNoAnswerError("x"), FAILED),
        (ChatEndUnknownError("x"), FAILED),
        (DbtSyncFailedError("x"), FAILED),
        (DbtSyncCancelledError("x"), FAILED),
        (DashboardExportFailedError("x"), FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, PlatformError) else "",
)
def test_disposition_of_some_errors_depends_on_nothing_else(
    error: PlatformError,
    disposition: FailureDisposition,
    submitted: bool,
    named: bool,
    last_try: bool,
) -> None:
    assert disposition_of(error, submitted=submitted, named=named, last_try=last_try) == disposition


@pytest.mark.parametrize(
    "error", [PlatformDeadlineError("x"), PlatformProtocolError("x")], ids=repr
)
@pytest.mark.parametrize("submitted", [False, True])
def test_abandoned_run_is_stopped_if_its_id_is_known(error: PlatformError, submitted: bool) -> None:
    """Without one it may still be running, and the next try has to know its message id."""
    stopped = FailureDisposition("failed", stop=True)
    assert disposition_of(error, submitted=submitted, named=True, last_try=False) == stopped
    assert disposition_of(error, submitted=submitted, named=False, last_try=False) == LEFT


@pytest.mark.parametrize(
    "error",
    [
        PlatformTransportError("x", processed=None),
        PlatformTriggerError("x"),
        PlatformInterruptedError("x"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("submitted", [False, True])
def test_run_that_a_retry_can_continue_is_not_stopped(
    error: PlatformError, submitted: bool
) -> None:
    assert disposition_of(error, submitted=submitted, named=True, last_try=False) == LEFT
    assert disposition_of(error, submitted=submitted, named=True, last_try=True) == STOPPED


@pytest.mark.parametrize("error", [ChatRpcError("x"), PlatformAddressError("x")], ids=repr)
@pytest.mark.parametrize("last_try", [False, True])
def test_refused_request_stops_an_earlier_submission(error: PlatformError, last_try: bool) -> None:
    assert disposition_of(error, submitted=False, named=True, last_try=last_try) == FAILED
    assert disposition_of(error, submitted=True, named=True, last_try=last_try) == STOPPED


def test_a_submission_that_did_not_arrive_is_made_again() -> None:
    error = PlatformTransportError("no connection", processed=False)
    assert disposition_of(error, submitted=False, named=True, last_try=False) == FAILED
    assert disposition_of(error, submitted=True, named=True, last_try=False) == LEFT


def test_error_of_the_trigger_has_the_disposition_of_the_worker() -> None:
    reported = from_payload(DbtSyncFailedError("x").to_payload())
    assert disposition_of(reported, submitted=True, named=True, last_try=False) == FAILED
