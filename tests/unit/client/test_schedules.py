"""Cron expressions and time zones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.notifications import check_cron, cron_doubt, cron_times

DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


@pytest.mark.parametrize(
    "expression",
    [
        "0 9 * * *",
        "*/15 8-18 * * 1-5",
        "0,30 9 1,15 JAN-MAR mon,WED",
        "5/10 0 31 12 7",
        "  0   0 1 1 0 ",
        "0 9 * * MON-SUN",
        "0 9 * * fri-mon",
        "0 9 * NOV-FEB 6-2/2",
    ],
)
def test_five_field_cron_expressions_are_accepted(expression: str) -> None:
    assert check_cron(expression) == expression
    assert cron_doubt(expression) is None


@pytest.mark.parametrize(
    ("expression", "doubt"),
    [
        ("@daily", "@daily"),
        (" @Hourly ", "@Hourly"),
        ("0 0 9 * * *", "six fields"),
        ("*/10 0 9 * * MON-FRI", "six fields"),
        ("0 9 L * *", "L in the day of month"),
        ("0 9 1,LW * *", "LW in the day of month"),
        ("0 9 L-3 * *", "L-3 in the day of month"),
        ("0 9 15w * *", "15W in the day of month"),
        ("0 9 ? * 1", "? in the day of month"),
        ("0 9 * * FRI#2", "FRI#2 in the day of week"),
        ("0 9 * * 1,5l", "5L in the day of week"),
        ("0 9 * * L", "L in the day of week"),
    ],
)
def test_unusual_cron_expressions_are_accepted_with_a_warning(expression: str, doubt: str) -> None:
    assert check_cron(expression) == expression
    warning = cron_doubt(expression)
    assert warning is not None
    assert doubt in warning


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("", "five fields"),
        ("0 9 * *", "five fields"),
        ("0 0 9 * * * *", "five fields"),
        ("@fortnightly", "five fields"),
        ("60 0 9 * * *", "second"),
        ("0 9 * * FRI#6", "day of week"),
        ("0 9 * * 8L", "day of week"),
        ("0 9 32W * *", "day of month"),
        ("L 9 * * *", "minute"),
        ("0 9 FRI#2 * *", "day of month"),
        ("0 22-2 * * *", "hour"),
        ("0 9 28-2 * *", "day of month"),
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
        ("*/٣ * * * *", "minute"),
        ("* * * * ſun", "day of week"),
    ],
)
def test_invalid_cron_expressions_name_the_field(expression: str, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        check_cron(expression)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0 9 * * 0", "00 09 * * SUN"),
        ("0 9 * * 7", "0 9 * * 0"),
        ("*/30 * * * *", "0,30 * * * *"),
        ("0 0 * 1-12 *", "0 0 * * *"),
        ("0 9 * * MON-SUN", "0 9 * * *"),
        ("0 9 * * FRI-MON", "0 9 * * 0,1,5,6"),
        ("0 9 * * SUN-SUN", "0 9 * * 7"),
        ("0 9 * NOV-FEB *", "0 9 * 11,12,1,2 *"),
        ("@weekly", "0 0 * * SUN"),
        ("@ANNUALLY", "0 0 1 JAN *"),
        ("0 0 9 * * 1", "0 9 * * 1"),
        ("0 9 ? * mon#1", "0 9 * * 1#1"),
        ("0 9 * * SUNL", "0 9 * * 7L"),
    ],
)
def test_equivalent_cron_expressions_have_the_same_times(one: str, other: str) -> None:
    assert cron_times(one) == cron_times(other)


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(0, 6))
def test_cron_field_with_plain_numbers_means_those_numbers(
    minute: int, hour: int, day: int, weekday: int
) -> None:
    times = cron_times(f"{minute} {hour} {day} * {weekday}")

    assert times[:3] == (frozenset({minute}), frozenset({hour}), frozenset({day}))
    assert times[4] == frozenset({weekday})


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 7), st.booleans())
def test_range_of_days_may_cross_the_end_of_the_week(
    first: int, last: int, step: int, named: bool
) -> None:
    days = [(first + count) % 7 for count in range((last - first) % 7 + 1)]
    start, end = (DAYS[first], DAYS[last]) if named else (first, last)

    assert cron_times(f"0 9 * * {start}-{end}/{step}")[4] == frozenset(days[::step])


@given(st.sampled_from(MONTHS), st.sampled_from(MONTHS), st.booleans())
def test_range_of_months_may_cross_the_end_of_the_year(first: str, last: str, lower: bool) -> None:
    text = f"{first}-{last}"
    start, end = MONTHS.index(first), MONTHS.index(last)
    months = {(start + count) % 12 + 1 for count in range((end - start) % 12 + 1)}

    assert cron_times(f"0 9 * {text.lower() if lower else text} *")[3] == months


DAY_PARTS = ["LW", "15W", "32W", "L-3", "FRI#2", "5#6", "5L", "MON", "MON-SUN", "FRI-MON"]
OTHER_PARTS = ["*/2", "1-5", "31", "59", "60", "NOV-FEB", "JAN", "1,2", "1,", "\u00b2"]
PARTS = st.sampled_from([*"*?L017", *DAY_PARTS, *OTHER_PARTS])


@given(st.lists(PARTS, max_size=7).map(" ".join) | st.sampled_from(["@daily", "@x"]) | st.text())
def test_any_text_gives_a_schedule_or_is_refused(expression: str) -> None:
    """What passes has its times, whatever its case; a plain expression has numbers only."""
    try:
        times = cron_times(expression)
    except ValueError:
        return
    assert cron_times(expression.upper()) == times
    assert all(times)
    if cron_doubt(expression) is None:
        assert len(times) == 5
        assert all(isinstance(number, int) for field in times for number in field)
