"""Values reach a chart in the form that it needs: numbers, dates, and ids that stay apart."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.charts.specification import records_of
from airflow_provider_platform.client.readable_dates import short_moments

NUMBER = {"type": "quantitative"}
LABEL = {"type": "nominal"}
TIME = {"type": "temporal"}


def values(
    kind: str,
    cells: list[Any],
    channel: dict[str, Any],
    notes: list[str] | None = None,
    **more: Any,
) -> list[Any]:
    spec = {"mark": "bar", "encoding": {"x": {"field": "v", **channel}}, **more}
    rows = [[cell] for cell in cells]
    records = records_of(spec, [{"name": "v", "type": kind}], rows, [] if notes is None else notes)
    return [record["v"] for record in records]


@pytest.mark.parametrize("channel", [NUMBER, LABEL, {"aggregate": "sum"}, {"bin": True}])
@pytest.mark.parametrize(
    "kind", ["Int64", "Int32", "Double", "Decimal", "Decimal(10, 2)", "number"]
)
def test_strings_of_a_numeric_column_become_numbers(kind: str, channel: dict[str, Any]) -> None:
    cells = ["9", "10.5", None, Decimal("2.50"), 3]
    assert values(kind, cells, channel) == [9, 10.5, None, 2.5, 3]


def test_strings_on_a_scale_of_numbers_become_numbers_whatever_type_their_column_has() -> None:
    assert values("String", ["9", "10"], NUMBER) == [9, 10]
    assert values("", ["1e3"], {"aggregate": "mean"}) == [1000]
    assert values("String", ["01", "10"], LABEL) == ["01", "10"]
    assert values("String", ["b", "a"], {"aggregate": "count"}) == ["b", "a"]


@pytest.mark.parametrize("kind", ["Interval", "Point", "String", '{"Date": false}'])
def test_labels_of_other_types_stay_strings(kind: str) -> None:
    assert values(kind, ["9"], LABEL) == ["9"]


@pytest.mark.parametrize(
    "cells",
    [
        ["9007199254740993", "9007199254740992"],
        [9007199254740993, 9007199254740992],
        [Decimal(9007199254740993), Decimal(9007199254740992)],
    ],
)
@pytest.mark.parametrize("kind", ["Int64", "String", ""])
def test_ids_beyond_two_to_the_53_stay_distinct(cells: list[Any], kind: str) -> None:
    assert values(kind, cells, LABEL) == ["9007199254740993", "9007199254740992"]


def test_values_that_are_not_numbers_are_counted_in_a_note() -> None:
    notes: list[str] = []
    cells = ["1", "n/a", "1e400", float("nan"), None]
    assert values("Double", cells, NUMBER, notes) == [1, None, None, None, None]
    assert notes == [
        "The chart leaves out 2 of 5 values of 'v', because they are not numbers."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["2025-01-02T00:00:00.000", None], ["2025-01-02", None]),
        (["2025-01-02", "2025-01-03T00:00:00"], ["2025-01-02", "2025-01-03"]),
        ([date(2025, 1, 2)], ["2025-01-02"]),
        ([datetime(2025, 1, 2, 3, 4, tzinfo=UTC)], ["2025-01-02 03:04"]),
        (["2025-01-02T13:30:00.000", "2025-01-03T00:00:00.000"],
         ["2025-01-02 13:30", "2025-01-03 00:00"]),
        (["2025-01-02T13:30:05.000"], ["2025-01-02 13:30:05"]),
        (["2025-01-02T00:00:00.250", "2025-01-02T00:00:01.000"],
         ["2025-01-02 00:00:00.250", "2025-01-02 00:00:01.000"]),
        (["2025-01-02T00:00:00Z"], ["2025-01-02"]),
        (["2025-01-02T00:00:00+02:00"], ["2025-01-02 00:00+02:00"]),
    ],
)  # fmt: skip
def test_dates_that_are_labels_are_short(cells: list[Any], shown: list[Any]) -> None:
    assert values("Timestamp", cells, LABEL) == shown
    assert values("String", cells, {}) == shown


def test_strings_that_are_not_dates_are_not_shortened() -> None:
    assert short_moments(["2025-01-02", "soon"]) is None
    assert short_moments(["2025-01-02T00:00:00Z", "2025-01-02T00:00:00+02:00"]) is None
    assert short_moments([None]) is None


@given(st.lists(st.datetimes(), min_size=1))
def test_short_dates_lose_nothing_but_zeros(moments: list[datetime]) -> None:
    shown = short_moments([one.isoformat(timespec="milliseconds") for one in moments])
    expected = [one.replace(microsecond=one.microsecond // 1000 * 1000) for one in moments]
    assert shown is not None
    assert [datetime.fromisoformat(text) for text in shown] == expected


@pytest.mark.parametrize(
    "more",
    [
        {"transform": [{"filter": "datum.v > '2025'"}]},
        {"transform": [{"filter": {"field": "v", "equal": "2025-01-02T00:00:00.000"}}]},
        {"params": [{"expr": 'datum["v"]'}]},
    ],
)
def test_dates_that_are_compared_stay_as_the_service_sends_them(more: dict[str, Any]) -> None:
    cells = ["2025-01-02T00:00:00.000"]
    assert values("Timestamp", cells, LABEL, **more) == cells


@pytest.mark.parametrize("channel", [TIME, {"timeUnit": "year", "type": "ordinal"}])
def test_days_and_years_on_a_scale_of_time_are_local(channel: dict[str, Any]) -> None:
    assert values("Date", ["2025-01-02"], channel) == ["2025-01-02T00:00:00"]
    assert values("String", ["2024"], channel) == ["2024-01-01T00:00:00"]
    assert values("Int64", [2024, None], channel) == ["2024-01-01T00:00:00", None]
    assert values("Int64", ["1735689600000"], channel) == ["1735689600000"]


def test_first_of_two_columns_with_one_name_is_drawn() -> None:
    spec = {"mark": "bar", "encoding": {"x": {"field": "id"}, "y": {"field": "column_3"}}}
    columns = [{"name": "id"}, {"name": "id"}, {"name": ""}]
    assert records_of(spec, columns, [[1, 2, 3]], []) == [{"id": 1, "column_3": 3}]


def test_short_row_has_no_values_for_the_columns_that_it_lacks() -> None:
    spec = {"mark": "bar", "encoding": {"x": {"field": "a"}, "y": {"field": "b"}}}
    assert records_of(spec, [{"name": "a"}, {"name": "b"}], [[1]], []) == [{"a": 1, "b": None}]


def test_columns_that_the_specification_does_not_name_are_left_out() -> None:
    spec = {"mark": "bar", "encoding": {"x": {"field": "country"}}}
    columns = [{"name": "country"}, {"name": "salary"}]
    assert records_of(spec, columns, [["Spain", 1]], []) == [{"country": "Spain"}]


def test_column_with_a_dot_is_found_by_both_of_its_names() -> None:
    spec = {"mark": "bar", "encoding": {"x": {"field": "orders.count"}}}
    columns = [{"name": "orders.count", "type": "Int64"}]
    assert records_of(spec, columns, [["3"]], []) == [{"orders.count": 3, "orders": {"count": 3}}]
    both = [*columns, {"name": "orders"}]
    assert records_of(spec, both, [["3", "x"]], []) == [{"orders.count": 3, "orders": "x"}]
    escaped = {"mark": "bar", "encoding": {"x": {"field": r"orders\.count", **NUMBER}}}
    assert records_of(escaped, [{"name": "orders.count"}], [["3"]], [])[0]["orders.count"] == 3


def test_values_become_plain_json() -> None:
    moment = datetime(2025, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    cells = [moment, True, {"a": [Decimal("1.5")]}, None, object]
    assert values("String", cells, {"type": "nominal"})[1:4] == [True, {"a": ["1.5"]}, None]
    assert values("Timestamp", [moment], TIME) == [moment.isoformat()]
