"""What a try that met an error leaves to the next one: a phase of its record, a run or none."""

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
from airflow_provider_platform.operators._submission.record import (
    FailureDisposition,
    disposition_of,
)

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
def test_what_the_error_alone_decides(
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
def test_a_run_that_is_given_up_is_stopped_where_it_has_a_name(
    error: PlatformError, submitted: bool
) -> None:
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
def test_what_a_retry_can_go_on_from_is_left_to_it(error: PlatformError, submitted: bool) -> None:
    assert disposition_of(error, submitted=submitted, named=True, last_try=False) == LEFT
    assert disposition_of(error, submitted=submitted, named=True, last_try=True) == STOPPED


@pytest.mark.parametrize("error", [ChatRpcError("x"), PlatformAddressError("x")], ids=repr)
@pytest.mark.parametrize("last_try", [False, True])
def test_a_refusal_says_nothing_of_what_was_submitted_before(
    error: PlatformError, last_try: bool
) -> None:
    assert disposition_of(error, submitted=False, named=True, last_try=last_try) == FAILED
    assert disposition_of(error, submitted=True, named=True, last_try=last_try) == STOPPED


def test_a_submission_that_did_not_arrive_is_made_again() -> None:
    error = PlatformTransportError("no connection", processed=False)
    assert disposition_of(error, submitted=False, named=True, last_try=False) == FAILED
    assert disposition_of(error, submitted=True, named=True, last_try=False) == LEFT


def test_an_error_of_the_trigger_is_judged_as_on_the_worker() -> None:
    reported = from_payload(DbtSyncFailedError("x").to_payload())
    assert disposition_of(reported, submitted=True, named=True, last_try=False) == FAILED
