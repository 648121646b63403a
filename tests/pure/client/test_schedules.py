"""Cron expressions: which are sent, and which mean the same times."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.resources.schedules import check_cron, cron_times, same_times

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
        "0 9 * * fri-mon",
        "@daily",
        " @Hourly ",
        "0 0 9 * * *",
        "0 9 ? * 1",
        "0 9 * * FRI#2",
    ],
)
def test_cron_expressions_are_accepted(expression: str) -> None:
    assert check_cron(expression) == expression
    assert cron_times(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "0 9 1,LW * *",
        "0 9 L-3 * *",
        "0 9 15w * *",
        "0 9 * * 1,5l",
        "0 9 * * L",
        "0 9 * * FRIL",
        "0 9 * * 1,FRI#2",
        "0 0 9 L * MONL",
    ],
)
def test_forms_that_only_some_services_know_are_left_to_the_service(expression: str) -> None:
    assert check_cron(expression) == expression


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "must have five fields"),
        ("0 9 * *", "must have five fields"),
        ("0 0 9 * * * *", "must have five fields"),
        ("@fortnightly", "is not a cron expression"),
        ("60 0 9 * * *", "out of range"),
        ("60 * * * *", "out of range"),
        ("* 24 * * *", "out of range"),
        ("* * 0 * *", "out of range"),
        ("* * * 13 *", "out of range"),
        ("* * * FOO *", "is not a cron expression"),
        ("* * * * 8", "out of range"),
        ("*/0 * * * *", "is not a cron expression"),
        ("1.5 * * * *", "is not a cron expression"),
        ("1,,2 * * * *", "is not a cron expression"),
        ("² * * * *", "is not a cron expression"),
        ("* * * * ſun", "is not a cron expression"),
        ("99 9 L-3 * *", "out of range"),
        ("L 9 * * *", "is not a cron expression"),
        ("0 9 * FRIL *", "is not a cron expression"),
        ("R 9 * * *", "random"),
        ("0 H(1-5) * * *", "random"),
    ],
)
def test_what_is_no_cron_expression_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
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
        ("0 9 * NOV-FEB *", "0 9 * 11,12,1,2 *"),
        ("@weekly", "0 0 * * SUN"),
        ("@ANNUALLY", "0 0 1 JAN *"),
        ("0 0 9 * * 1", "0 9 * * 1"),
        ("0 9 ? * mon#1", "0 9 * * 1#1"),
    ],
)
def test_equivalent_cron_expressions_have_the_same_times(one: str, other: str) -> None:
    assert cron_times(one) == cron_times(other)
    assert same_times(one, other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0 9 LW * *", "0 9 lw * *", True),
        ("0 9 * JAN FRIL", "0  9 * 1 5L", True),
        ("0 9 LW * *", "0 9 L-3 * *", False),
        ("0 9 LW * *", "0 9 1 * *", False),
    ],
)
def test_forms_that_croniter_does_not_know_are_compared_by_their_spelling(
    one: str, other: str, same: bool
) -> None:
    assert same_times(one, other) is same
    assert same_times(other, one) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [("0 9 * * 1", "0 9 * * 2"), ("0 9 * * 1#1", "0 9 * * 1#2"), ("5 0 9 * * 1", "0 9 * * 1")],
)
def test_different_cron_expressions_have_different_times(one: str, other: str) -> None:
    assert cron_times(one) != cron_times(other)


@given(st.sampled_from(MONTHS), st.sampled_from(MONTHS), st.integers(0, 6), st.integers(0, 6))
def test_names_and_numbers_mean_the_same_times(
    first_month: str, last_month: str, first_day: int, last_day: int
) -> None:
    start, end = MONTHS.index(first_month) + 1, MONTHS.index(last_month) + 1
    named = f"0 9 * {first_month}-{last_month} {DAYS[first_day]}-{DAYS[last_day]}"
    assert cron_times(named) == cron_times(f"0 9 * {start}-{end} {first_day}-{last_day}")


DAY_PARTS = ["LW", "15W", "32W", "L-3", "FRI#2", "5#6", "5L", "MON", "MON-SUN", "FRI-MON"]
OTHER_PARTS = ["*/2", "1-5", "31", "59", "60", "NOV-FEB", "JAN", "1,2", "1,", "\u00b2"]
PARTS = st.sampled_from([*"*?L017", *DAY_PARTS, *OTHER_PARTS])


@given(st.lists(PARTS, max_size=7).map(" ".join) | st.sampled_from(["@daily", "@x"]) | st.text())
def test_any_text_is_a_cron_expression_or_a_value_error(expression: str) -> None:
    with suppress(ValueError):
        assert check_cron(expression) == expression
