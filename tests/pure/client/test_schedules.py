"""Cron expressions: which are sent, and which are spelled alike."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.resources.schedules import check_cron, same_times


@pytest.mark.parametrize(
    "expression",
    ["0 9 * * *", "  0   0 1 1 0 ", "0,30 9 1,15 JAN-MAR mon,WED", "@daily", "0 0 9 * * *",
     "0 9 L-3 * *", "0 9 * * FRI#2", "60 24 * * *"],
)  # fmt: skip
def test_the_service_decides_which_cron_expression_it_knows(expression: str) -> None:
    assert check_cron(expression) == expression


@pytest.mark.parametrize("expression", ["", "0 9 * *", "0 0 9 * * * *", "daily"])
def test_another_number_of_fields_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="must have five fields"):
        check_cron(expression)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0 9 * * 0", "00 09 * * SUN", True),
        ("0 9 * JAN FRIL", "0  9 * 1 5l", True),
        ("10 0 * * *", "10 00 * * *", True),
        ("0 9 * * 1", "0 9 * * 2", False),
        ("0 9 LW * *", "0 9 L-3 * *", False),
        ("0 9 * * 1#1", "0 9 * * 1#2", False),
        ("5 0 9 * * 1", "0 9 * * 1", False),
    ],
)
def test_cron_expressions_are_compared_by_their_spelling(one: str, other: str, same: bool) -> None:
    assert same_times(one, other) is same
    assert same_times(other, one) is same


@given(st.text())
def test_any_text_is_a_cron_expression_or_a_value_error(expression: str) -> None:
    with suppress(ValueError):
        assert check_cron(expression) == expression
