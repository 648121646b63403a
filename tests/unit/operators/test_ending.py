"""What a try that met an error leaves to the next one: a phase of its record, a run or none."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatNoAnswerError,
    ChatRpcError,
    DashboardExportFailedError,
    DbtSyncCancelledError,
    DbtSyncFailedError,
    PlatformAddressError,
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    PlatformTransportError,
    PlatformTriggerError,
    from_payload,
)
from airflow_provider_platform.operators._ending import Ending, judge, run_has_ended

LEFT = Ending(None, stop=False)
STOPPED = Ending(None, stop=True)
FAILED = Ending("failed", stop=False)


@pytest.mark.parametrize("last_try", [False, True])
@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (PlatformOutcomeUnknownError("x"), Ending("lost", stop=False)),
        (PlatformDeadlineError("x"), Ending("failed", stop=True)),
        (PlatformProtocolError("x"), Ending("failed", stop=True)),
        (ChatAbortedError("x"), FAILED),
        (ChatNoAnswerError("x"), FAILED),
        (DbtSyncFailedError("x"), FAILED),
        (DbtSyncCancelledError("x"), FAILED),
        (DashboardExportFailedError("x"), FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, PlatformError) else "",
)
def test_what_the_error_alone_decides(
    error: PlatformError, ending: Ending, accepted: bool, last_try: bool
) -> None:
    assert judge(error, accepted=accepted, last_try=last_try) == ending


@pytest.mark.parametrize(
    "error", [PlatformTransportError("x", processed=None), PlatformTriggerError("x")], ids=repr
)
@pytest.mark.parametrize("accepted", [False, True])
def test_what_a_retry_can_go_on_from_is_left_to_it(error: PlatformError, accepted: bool) -> None:
    assert judge(error, accepted=accepted, last_try=False) == LEFT
    assert judge(error, accepted=accepted, last_try=True) == STOPPED


@pytest.mark.parametrize("error", [ChatRpcError("x"), PlatformAddressError("x")], ids=repr)
@pytest.mark.parametrize("last_try", [False, True])
def test_a_refusal_says_nothing_of_a_run_that_was_accepted(
    error: PlatformError, last_try: bool
) -> None:
    assert judge(error, accepted=False, last_try=last_try) == FAILED
    assert judge(error, accepted=True, last_try=last_try) == STOPPED
    assert not run_has_ended(error)


def test_a_submission_that_did_not_arrive_is_made_again() -> None:
    error = PlatformTransportError("no connection", processed=False)
    assert judge(error, accepted=False, last_try=False) == FAILED
    assert judge(error, accepted=True, last_try=False) == LEFT


def test_an_error_of_the_trigger_is_judged_as_on_the_worker() -> None:
    told = from_payload(DbtSyncFailedError("x").to_payload())
    assert judge(told, accepted=True, last_try=False) == FAILED
