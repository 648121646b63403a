"""Values reach a chart in the form that it needs: numbers, dates, and ids that stay apart."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.charts import ChartError
from airflow_provider_platform.results.charts.fields import Uses
from airflow_provider_platform.results.charts.records import (
    duplicates,
    records_of,
    unique_names,
)
from airflow_provider_platform.results.readable_dates import short_moments


def values(kind: str, given: list[Any], **uses: Any) -> list[Any]:
    found = Uses(**{use: {"v"} for use, wanted in uses.items() if wanted})
    rows = [[value] for value in given]
    return [record["v"] for record in records_of([{"name": "v", "type": kind}], rows, found)]


@pytest.mark.parametrize(
    "kind", ["Int64", "Int32", "Double", "Decimal", "Decimal(10, 2)", "number"]
)
def test_texts_of_a_numeric_column_become_numbers(kind: str) -> None:
    assert values(kind, ["9", "10.5", None, Decimal("2.50"), 3]) == [9, 10.5, None, 2.5, 3]


def test_texts_on_a_scale_of_numbers_become_numbers_whatever_their_column_is_declared() -> None:
    assert values("String", ["9", "10"], numbers=True) == [9, 10]
    assert values("", ["1e3"], numbers=True) == [1000]
    assert values("String", ["9", "10"], computed=True) == [9, 10]
    assert values("String", ["9", "10"], labels=True) == ["9", "10"]


@pytest.mark.parametrize("kind", ["Interval", "Point", "String", '{"Date": false}'])
def test_texts_of_other_types_do_not_become_numbers(kind: str) -> None:
    assert values(kind, ["9"]) == ["9"]


def test_codes_with_leading_zeros_stay_strings_unless_they_are_drawn_as_numbers() -> None:
    assert values("String", ["01", "10"], computed=True, labels=True) == ["01", "10"]
    assert values("String", ["01", "10"], numbers=True) == [1, 10]


@pytest.mark.parametrize(
    "given",
    [
        ["9007199254740993", "9007199254740992"],
        [9007199254740993, 9007199254740992],
        [Decimal(9007199254740993), Decimal(9007199254740992)],
    ],
)
@pytest.mark.parametrize("kind", ["Int64", "String", ""])
def test_ids_beyond_two_to_the_53_stay_distinct(given: list[Any], kind: str) -> None:
    assert values(kind, given, labels=True) == ["9007199254740993", "9007199254740992"]


def test_large_numbers_on_a_scale_of_numbers_are_numbers() -> None:
    assert values("Int64", ["9007199254740993"], numbers=True) == [9007199254740992.0]


def test_column_without_any_number_is_refused_on_a_scale_of_numbers() -> None:
    with pytest.raises(ChartError, match=r"'v' on a numeric scale, but none of its 2 values .*"
                       "the first: 'Spain'"):  # fmt: skip
        values("String", ["Spain", None, "Italy"], numbers=True)


def test_values_that_are_not_numbers_are_counted_in_a_note() -> None:
    notes: list[str] = []
    rows = [["1"], ["n/a"], ["NaN"], ["1e400"], [None]]
    columns = [{"name": "v", "type": "Double"}]
    found = records_of(columns, rows, Uses(numbers={"v"}), notes=notes)
    assert [record["v"] for record in found] == [1, "n/a", None, None, None]
    assert notes[0].startswith(
        "The chart leaves out 1 of 5 values of 'v', because they are not numbers (the first: 'n/a')"
    )
    assert notes[1].startswith(
        "The chart leaves out 2 of 5 values of 'v', because they are infinite or too large"
    )


def test_texts_of_a_boolean_column_become_booleans() -> None:
    assert values("Boolean", ["true", "False", None, True]) == [True, False, None, True]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["2025-01-02T00:00:00.000", None], ["2025-01-02", None]),
        (["2025-01-02", "2025-01-03T00:00:00"], ["2025-01-02", "2025-01-03"]),
        ([date(2025, 1, 2)], ["2025-01-02"]),
        ([datetime(2025, 1, 2, 3, 4)], ["2025-01-02 03:04"]),
        (["2025-01-02T13:30:00.000", "2025-01-03T00:00:00.000"],
         ["2025-01-02 13:30", "2025-01-03 00:00"]),
        (["2025-01-02T13:30:05.000"], ["2025-01-02 13:30:05"]),
        (["2025-01-02T00:00:00.250", "2025-01-02T00:00:01.000"],
         ["2025-01-02 00:00:00.250", "2025-01-02 00:00:01.000"]),
        (["2025-01-02T00:00:00Z"], ["2025-01-02"]),
        (["2025-01-02T00:00:00+02:00"], ["2025-01-02 00:00+02:00"]),
    ],
)  # fmt: skip
def test_dates_that_are_labels_are_short(given: list[Any], shown: list[Any]) -> None:
    assert values("Timestamp", given, labels=True) == shown
    assert values("String", given, labels=True) == shown


def test_strings_that_are_not_dates_are_not_shortened() -> None:
    assert short_moments(["2025-01-02", "soon"]) is None
    assert short_moments(["2025-01-02T00:00:00Z", "2025-01-02T00:00:00+02:00"]) is None
    assert short_moments([None]) is None


@given(st.lists(st.datetimes(), min_size=1))
def test_short_dates_lose_nothing_but_zeros(given: list[datetime]) -> None:
    shown = short_moments([one.isoformat(timespec="milliseconds") for one in given])
    expected = [one.replace(microsecond=one.microsecond // 1000 * 1000) for one in given]
    assert shown is not None
    assert [datetime.fromisoformat(text) for text in shown] == expected


def test_days_and_years_on_a_scale_of_time_are_local() -> None:
    assert values("Date", ["2025-01-02"], times=True) == ["2025-01-02T00:00:00"]
    assert values("String", ["2024"], times=True) == ["2024-01-01T00:00:00"]
    assert values("Int64", ["1735689600000"], times=True) == [1735689600000]


def test_dates_that_an_expression_reads_stay_as_they_are() -> None:
    given = ["2025-01-02T00:00:00.000"]
    assert values("Timestamp", given, labels=True, compared=True) == given


def test_columns_with_the_same_name_are_renamed_and_noted() -> None:
    columns = [{"name": "id"}, {"name": "id"}, {"name": ""}]
    names = unique_names(columns)
    assert names == ["id", "id_2", "column_3"]
    assert records_of(columns, [[1, 2, 3]]) == [{"id": 1, "id_2": 2, "column_3": 3}]
    [note] = duplicates(columns, names, [[1, 2, 3]])
    assert "2 columns named 'id'" in note
    assert "'id_2'" in note
    assert duplicates(columns, names, [[1, 1, 3]]) == []


def test_short_row_has_no_values_for_the_columns_that_it_lacks() -> None:
    assert records_of([{"name": "a"}, {"name": "b"}], [[1]]) == [{"a": 1, "b": None}]
