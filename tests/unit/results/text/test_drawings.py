"""Tables and bars in plain text are aligned for any values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.text.bars import bar_chart, chart_values
from airflow_provider_platform.results.text.table import aligned_table, shorten, width

VALUES = (
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=50)
    | st.sampled_from(["日本", "e\u0301"])
)
COLUMNS = st.lists(st.fixed_dictionaries({"name": st.text(max_size=12)}), max_size=5)
SALES = [{"name": "month"}, {"name": "sales"}]


def chart(**encoding: Any) -> dict[str, Any]:
    return {"mark": "bar", "encoding": encoding}


@given(COLUMNS, st.lists(st.lists(VALUES, max_size=6), max_size=12))
def test_a_table_is_aligned_and_within_its_width(columns: Any, rows: Any) -> None:
    drawn = aligned_table(columns, rows, max_width=60)
    assert len(drawn) == (2 + min(10, len(rows)) if columns else 0)
    for line in drawn:
        assert line.isprintable()
    assert all(width(line) <= 60 for line in drawn[1:])


def test_numbers_are_right_aligned_and_wide_characters_take_two_columns() -> None:
    assert aligned_table(SALES, [["日本", 5], ["May", "1200"], ["June", None]]) == [
        "month  sales",
        "─────  ─────",
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
    assert width(shorten(text, most)) <= max(most, 1)


@given(
    st.dictionaries(st.sampled_from(["mark", "encoding", "layer", "spec"]), VALUES | st.just([{}])),
    COLUMNS,
    st.lists(st.lists(VALUES, max_size=6), max_size=30),
)
def test_bars_of_anything_are_printable_and_within_their_width(
    spec: Any, columns: Any, rows: Any
) -> None:
    for line in bar_chart(spec, columns, rows, max_bars=5, max_width=60):
        assert line.isprintable()
    assert len(bar_chart(spec, columns, rows, max_bars=5)) <= 6


def test_bars_are_as_long_as_their_values() -> None:
    spec = chart(x={"field": "month"}, y={"field": "sales", "type": "quantitative"})
    assert bar_chart(spec, SALES, [["Jan", 10], ["Feb", "5"], ["Mar", 0]], max_width=20) == [
        "Jan  ████████████ 10",
        "Feb  ██████        5",
        "Mar                0",
    ]


def test_bars_of_one_label_are_aggregated_as_in_the_chart() -> None:
    rows = [["Jan", 1], ["Jan", 3], ["Feb", 2]]
    for aggregate, expected in (("sum", "4"), ("mean", "2"), ("max", "3"), ("min", "1")):
        spec = chart(x={"field": "month"}, y={"field": "sales", "aggregate": aggregate})
        drawn = bar_chart(spec, SALES, rows)
        assert len(drawn) == 2
        assert drawn[0].endswith(expected)


def test_charts_inside_charts_and_dotted_names_are_found() -> None:
    columns = [{"name": "orders.sales"}, {"name": "rank"}, {"name": "orders.month"}]
    inner = chart(
        y={"field": "orders\\.month"}, x={"field": "orders\\.sales", "type": "quantitative"}
    )
    [drawn] = bar_chart({"layer": [{"mark": "rule"}, inner]}, columns, [[7, 1, "May"]])
    assert drawn.startswith("May")
    assert drawn.endswith("7")


def test_a_chart_without_numbers_has_no_bars() -> None:
    assert bar_chart(chart(x={"field": "month"}), SALES, [["Jan", "n/a"]]) == []
    assert bar_chart({}, [], []) == []


def test_bars_left_out_are_counted() -> None:
    rows = [[f"m{at}", at] for at in range(30)]
    assert bar_chart({}, SALES, rows, max_bars=20)[-1] == "… and 10 more"


def test_negative_values_are_drawn_differently() -> None:
    drawn = bar_chart({}, SALES, [["Jan", 5], ["Feb", -5]])
    assert "░" in drawn[1]
    assert "█" not in drawn[1]


def test_bars_count_rows_if_the_chart_counts_them() -> None:
    spec = chart(x={"field": "month"}, y={"aggregate": "count"})
    rows = [["Jan", 500], ["Jan", 7], ["Feb", 9]]
    assert chart_values(spec, SALES, rows) == [("Jan", 2), ("Feb", 1)]


@pytest.mark.parametrize(
    "spec",
    [
        chart(x={"field": "Month"}, y={"field": "sales", "type": "quantitative"}),
        chart(x={"field": "month"}, y={"field": "revenue", "type": "quantitative"}),
        chart(x={"field": "month"}, y={"field": "sales", "aggregate": "stdev"}),
        chart(x={"field": "month", "timeUnit": "year"}, y={"field": "sales"}),
        {**chart(x={"field": "month"}, y={"field": "sales"}),
         "transform": [{"calculate": "-datum.sales", "as": "sales"}]},
        {"layer": [{**chart(x={"field": "month"}, y={"field": "sales"}),
                    "data": {"values": [{"month": 1}]}}]},
    ],
)  # fmt: skip
def test_chart_that_the_rows_alone_do_not_show_has_no_bars(spec: Any) -> None:
    assert bar_chart(spec, SALES, [["Jan", 10], ["Feb", 5]]) == []


def test_bars_of_dates_have_short_labels() -> None:
    spec = chart(x={"field": "month"}, y={"field": "sales"})
    rows = [["2025-01-01T00:00:00.000", 1], ["2025-02-01T00:00:00.000", 2]]
    assert [label for label, _ in chart_values(spec, SALES, rows)] == ["2025-01-01", "2025-02-01"]


@pytest.mark.parametrize("field", ["orders.count", r"orders\.count", "['orders.count']"])
def test_bars_find_columns_with_dots(field: str) -> None:
    spec = chart(x={"field": "month"}, y={"field": field})
    columns = [{"name": "month"}, {"name": "orders.count"}]
    assert chart_values(spec, columns, [["Jan", "3"]]) == [("Jan", 3.0)]
