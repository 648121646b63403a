"""The retry policy: which calls are repeated, how long the pauses are, and the deadline."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import Retrying

from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformConfigError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import error_for_status, parse_retry_after
from airflow_provider_platform.client.repeats import (
    LONGEST_PAUSE,
    LONGEST_RETRY_AFTER,
    may_repeat,
    pause_after,
    tenacity_policy,
)

NOON = 1_800_000_000.0


def answered(status: int, retry_after: float | None = None) -> PlatformApiError:
    return error_for_status(status)("said no", status=status, retry_after=retry_after)


REPEATED = {408, 429, 500, 501, 502, 503, 504, 599}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 422, 451, *sorted(REPEATED)])
def test_status_decides_whether_a_call_is_repeated(status: int) -> None:
    error = answered(status)
    assert may_repeat(error, repeatable=True) is (status in REPEATED)
    assert may_repeat(error, repeatable=False) is (status == 429)


@pytest.mark.parametrize(
    ("error", "repeatable", "once"),
    [
        (answered(503, retry_after=3), True, True),
        (answered(503, retry_after=0), True, True),
        (answered(500, retry_after=3), True, False),
        (PlatformTransportError("no connection", processed=False), True, True),
        (PlatformTransportError("cut"), True, False),
        (PlatformProtocolError("odd"), False, False),
        (PlatformConfigError("bad"), False, False),
        (PlatformApiError("said no"), False, False),
        (ValueError("a bug"), False, False),
    ],
)
def test_failure_decides_whether_a_call_is_repeated(
    error: Exception, repeatable: bool, once: bool
) -> None:
    """`once`: what must not be processed twice is repeated only when it was not at all."""
    assert may_repeat(error, repeatable=True) is repeatable
    assert may_repeat(error, repeatable=False) is once


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        (formatdate(NOON + 90, usegmt=True), 90.0),
        (formatdate(NOON - 90, usegmt=True), 0.0),
        ("Fri, 15 Jan 2027 09:00:05 +0100", 5.0),
        ("Fri, 15 Jan 2027 08:00:05", 5.0),
        ("soon", None),
        ("", None),
        ("-3", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 500, 366 * 86400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 366 * 86400.0),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
        ("Fri, 15 Jan 2027 08:00:05 +999999999999", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOON) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_is_seconds_or_nothing(value: str) -> None:
    seconds = parse_retry_after(value, NOON)
    assert seconds is None or seconds >= 0


@given(failures=st.integers(0, 10**6))
def test_pauses_grow_with_jitter(failures: int) -> None:
    pause = pause_after(None, failures)
    full = min(LONGEST_PAUSE, 0.5 * 2.0 ** min(max(0, failures - 1), 20))
    assert full / 2 <= pause <= full
    assert 40 <= pause_after(answered(503, retry_after=40), failures) <= 40 + full / 10


def run(
    errors: list[PlatformError],
    *,
    repeatable: bool = True,
    attempts: int = 5,
    until: float | None = None,
) -> tuple[Any, list[float]]:
    """What comes of a call that fails so, and the pauses it made."""
    now, pauses, left = NOON, [], list(errors)

    def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    policy = tenacity_policy(
        repeatable=repeatable,
        max_attempts=attempts,
        deadline=None if until is None else NOON + until,
        clock=lambda: now,
    )
    try:
        return Retrying(sleep=sleep, **policy)(attempt), pauses
    except PlatformError as error:
        return error, pauses


def test_call_is_repeated_until_max_attempts() -> None:
    errors = [answered(502), PlatformTransportError("cut"), answered(408), answered(429)]
    outcome, pauses = run(list(errors))
    assert outcome == "done"
    assert len(pauses) == 4
    last = answered(500)
    assert run([*errors, last])[0] is last
    assert run(list(errors), attempts=1)[0] is errors[0]


def test_call_that_may_have_been_processed_is_sent_once() -> None:
    error = answered(502)
    assert run([error], repeatable=False) == (error, [])
    assert run([answered(429)], repeatable=False)[0] == "done"


def test_retry_after_sets_the_pause() -> None:
    _, pauses = run([answered(429, retry_after=33.0)])
    assert 33 <= pauses[0] <= 34


@given(waits=st.lists(st.floats(0, 50) | st.none(), max_size=8), until=st.floats(-5, 100))
def test_the_deadline_is_never_overrun(waits: list[float | None], until: float) -> None:
    _, pauses = run([answered(429, retry_after=wait) for wait in waits], attempts=9, until=until)
    assert sum(pauses) <= max(0.0, until)


def test_retry_after_of_hours_ends_the_call() -> None:
    error = answered(429, retry_after=LONGEST_RETRY_AFTER + 1)
    assert run([error]) == (error, [])
    assert run([error], until=1000)[0] == "done"
