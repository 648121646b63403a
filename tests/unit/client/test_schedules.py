"""Cron expressions and time zones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.schedules import check_cron, check_timezone, cron_times


@pytest.mark.parametrize(
    "expression",
    [
        "0 9 * * *",
        "*/15 8-18 * * 1-5",
        "0,30 9 1,15 JAN-MAR mon,WED",
        "5/10 0 31 12 7",
        "  0   0 1 1 0 ",
    ],
)
def test_cron_expressions_that_pass(expression: str) -> None:
    assert check_cron(expression) == expression


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("", "five fields"),
        ("0 9 * *", "five fields"),
        ("0 9 * * * *", "five fields"),
        ("@daily", "five fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * * 13 *", "month"),
        ("* * * FOO *", "month"),
        ("* * * * 8", "day of week"),
        ("30-10 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("1.5 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("² * * * *", "minute"),
    ],
)
def test_cron_expressions_that_do_not(expression: str, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        check_cron(expression)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0 9 * * 0", "00 09 * * SUN"),
        ("0 9 * * 7", "0 9 * * 0"),
        ("*/30 * * * *", "0,30 * * * *"),
        ("0 0 * 1-12 *", "0 0 * * *"),
    ],
)
def test_expressions_of_the_same_times(one: str, other: str) -> None:
    assert cron_times(one) == cron_times(other)


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(0, 6))
def test_plain_numbers_mean_themselves(minute: int, hour: int, day: int, weekday: int) -> None:
    times = cron_times(f"{minute} {hour} {day} * {weekday}")

    assert times[:3] == (frozenset({minute}), frozenset({hour}), frozenset({day}))
    assert times[4] == frozenset({weekday})


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"])
def test_time_zones_that_pass(name: str) -> None:
    assert check_timezone(name) == name


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "+02:00", "/UTC", "\0"])
def test_time_zones_that_do_not(name: str) -> None:
    with pytest.raises(ValueError, match="IANA"):
        check_timezone(name)
