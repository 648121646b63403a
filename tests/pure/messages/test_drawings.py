"""Tables and bars in plain text are aligned for any values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from airflow_provider_platform.messages.message import aligned_table, bar_chart, cells, chart_values

VALUES = (
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=50)
    | st.sampled_from(["日本", "e\u0301"])
)
COLUMNS = st.lists(st.fixed_dictionaries({"name": st.text(max_size=12)}), max_size=5)
SALES = [{"name": "month"}, {"name": "sales"}]


@given(COLUMNS, st.lists(st.lists(VALUES, max_size=6), max_size=12))
def test_a_table_is_aligned_and_within_its_width(columns: Any, rows: Any) -> None:
    drawn = aligned_table(columns, rows, max_width=60)
    assert len(drawn) == (2 + min(10, len(rows)) if columns else 0)
    for line in drawn:
        assert line.isprintable()
    assert all(cell_len(line) <= 60 for line in drawn[1:])


def test_numbers_are_right_aligned_and_wide_characters_take_two_columns() -> None:
    assert aligned_table(SALES, [["日本", 5], ["May", "1200"], ["June", None]]) == [
        "month  sales",
        "────────────",
        "日本       5",
        "May     1200",
        "June",
    ]


def test_columns_that_do_not_fit_are_counted() -> None:
    columns = [{"name": f"column_{at}"} for at in range(20)]
    [heading, *_] = aligned_table(columns, [list(range(20))], max_width=40)
    assert heading.endswith("(and 16 more columns)")


@given(st.text(max_size=80), st.integers(1, 40))
def test_a_text_is_cut_to_its_columns(text: str, most: int) -> None:
    [shown] = cells([text], most)
    assert cell_len(shown) <= most


@given(COLUMNS, st.lists(st.lists(VALUES, max_size=3), max_size=30))
def test_bars_of_anything_are_printable_and_counted(columns: Any, rows: Any) -> None:
    drawn = bar_chart(columns, rows, max_bars=5)
    assert len(drawn) <= 6
    assert all(line.isprintable() for line in drawn)


@given(st.lists(st.tuples(st.text(max_size=50), st.integers(-(10**9), 10**9)), max_size=9))
def test_bars_are_within_their_width(rows: Any) -> None:
    assert all(cell_len(line) <= 60 for line in bar_chart(SALES, rows, max_width=60))


def test_bars_are_as_long_as_their_values() -> None:
    assert bar_chart(SALES, [["Jan", 10], ["Feb", "5"], ["Mar", 0]], max_width=20) == [
        "Jan  ████████████ 10",
        "Feb  ██████        5",
        "Mar                0",
    ]
    assert bar_chart(SALES[::-1], [["5", "Jan"]], max_width=20) == ["Jan  █████████████ 5"]


def test_names_may_be_numbers_before_numbers() -> None:
    columns = [{"name": "year"}, {"name": "sales"}]
    assert chart_values(columns, [[2024, "5"], [2025, "7"]]) == [(2024, 5.0), (2025, 7.0)]


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (SALES, ["Jan", "n/a"]),
        (SALES[1:], [5]),
        ([*SALES, {"name": "region"}], ["Jan", 5, "North"]),
        ([], []),
    ],
)
def test_other_rows_than_names_and_numbers_have_no_bars(columns: Any, row: list[Any]) -> None:
    assert bar_chart(columns, [row]) == []


def test_bars_left_out_are_counted() -> None:
    rows = [[f"m{at}", at] for at in range(30)]
    assert bar_chart(SALES, rows, max_bars=20)[-1] == "… and 10 more"


def test_negative_values_are_drawn_differently() -> None:
    drawn = bar_chart(SALES, [["Jan", 5], ["Feb", -5]])
    assert "░" in drawn[1]
    assert "█" not in drawn[1]


def test_bars_of_dates_have_short_labels() -> None:
    rows = [["2025-01-01T00:00:00.000", 1], ["2025-02-01T00:00:00.000", 2]]
    assert [label for label, _ in chart_values(SALES, rows)] == ["2025-01-01", "2025-02-01"]
