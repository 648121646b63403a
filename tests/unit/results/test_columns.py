"""Values by the types of their columns, and where one does not fit."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.results.columns import (
    KINDS,
    Column,
    kind_of,
    plain,
    read_columns,
    read_rows,
)

FITTING: list[tuple[str, Any, Any, Any]] = [
    ("Int64", "12", 12, 12),
    ("Int64", "-9223372036854775808", -(2**63), -(2**63)),
    ("Int64", 3, 3, 3),
    ("Int64", 3.0, 3, 3),
    ("Double", "12", 12.0, 12.0),
    ("Double", "-1.5e-3", -0.0015, -0.0015),
    ("Decimal", "0.00", Decimal("0.00"), "0.00"),
    ("Decimal", "0E30", Decimal(0), "0"),
    ("Double", "Infinity", float("inf"), "Infinity"),
    ("Double", "-inf", float("-inf"), "-Infinity"),
    ("Decimal", "12.30", Decimal("12.30"), "12.30"),
    ("Decimal", "1e3", Decimal("1e3"), "1000"),
    ("Decimal", 1.5, Decimal("1.5"), "1.5"),
    ("Boolean", "true", True, True),
    ("Boolean", "F", False, False),
    ("Boolean", 1, True, True),
    ("Date", "2025-01-31", date(2025, 1, 31), "2025-01-31"),
    ("Date", "2025-01-31T00:00:00.000", date(2025, 1, 31), "2025-01-31"),
    ("Timestamp", "2025-01-31T12:30:00.000", datetime(2025, 1, 31, 12, 30), "2025-01-31T12:30:00"),
    ("Timestamp", "2025-01-31 12:30:00", datetime(2025, 1, 31, 12, 30), "2025-01-31T12:30:00"),
    (
        "Timestamp",
        "2025-01-31T12:30:00.123456000",
        datetime(2025, 1, 31, 12, 30, 0, 123456),
        "2025-01-31T12:30:00.123456",
    ),
    ("Timestamp", "2025-01-31", datetime(2025, 1, 31), "2025-01-31T00:00:00"),
    ("Timestamp", "2025-01-31T12:30:00Z", datetime(2025, 1, 31, 12, 30), "2025-01-31T12:30:00"),
    ("Timestamp", "2025-01-02 01:00:00+02:00", datetime(2025, 1, 1, 23), "2025-01-01T23:00:00"),
    ("String", "", "", ""),
    ("String", 1.5, "1.5", "1.5"),
    ("Interval", "1 day", "1 day", "1 day"),
]  # fmt: skip
UNFITTING = [
    ("Int64", "12.5"),
    ("Int64", "9223372036854775808"),
    ("Int64", "1_000"),
    ("Int64", "0x10"),
    ("Int64", " 1"),
    ("Int64", ""),
    ("Int64", "٣"),
    ("Int64", True),
    ("Int64", 1e300),
    ("Double", "1,5"),
    ("Double", "twelve"),
    ("Double", True),
    ("Double", 10**400),
    ("Decimal", "NaN"),
    ("Decimal", "1" * 21),
    ("Decimal", "0." + "1" * 19),
    ("Decimal", "1e99999999999"),
    ("Boolean", "yes"),
    ("Boolean", 2),
    ("Date", "31.01.2025"),
    ("Date", "2025-02-30"),
    ("Date", "2025-01-31T12:00:00"),
    ("Date", 20250131),
    ("Timestamp", "2025-01-31T25:00:00"),
    ("Timestamp", "2025-01-31T12:30:00.1234567"),
    ("Timestamp", "0001-01-01T00:00:00+10:00"),
    ("Timestamp", "now"),
]


@pytest.mark.parametrize(("kind", "value", "typed", "json"), FITTING)
def test_a_value_that_fits(kind: str, value: Any, typed: Any, json: Any) -> None:
    [column] = read_columns([{"name": "a", "type": kind}])
    found = column.read(value)
    assert (found, found.__class__) == (typed, typed.__class__)
    assert plain(found) == json


@pytest.mark.parametrize(("kind", "value"), UNFITTING)
def test_a_value_that_does_not_fit_is_named_with_its_column_and_row(kind: str, value: Any) -> None:
    columns = read_columns([{"name": "a", "type": "String"}, {"name": "b", "type": kind}])
    with pytest.raises(ResultValueError, match=r"Row 12, column 'b': ") as caught:
        read_rows(columns, [["x", None], ["y", value]], first=11)
    assert (caught.value.column, caught.value.row) == ("b", 12)
    assert kind in str(caught.value)


def test_as_texts_every_value_fits() -> None:
    columns = read_columns([{"name": "a", "type": "Int64"}, {"name": "b", "type": "Date"}], "text")
    rows = [["twelve", "0000"], [None, "2025-01-01"]]
    assert read_rows(columns, rows) == rows


@pytest.mark.parametrize("kind", KINDS)
@given(value=st.text() | st.none() | st.booleans() | st.floats() | st.integers())
def test_a_value_is_read_or_refused(kind: Any, value: Any) -> None:
    columns = [Column("a", kind, kind)]
    try:
        [[typed]] = read_rows(columns, [[value]])
    except ResultValueError:
        return
    assert (typed is None) == (value is None)
    again = plain(typed)
    if kind != "String":
        assert columns[0].read(again) == typed or typed != typed


def test_types_with_parameters_and_in_other_cases() -> None:
    assert [kind_of(one) for one in ("DECIMAL(10, 2)", "int64", "Unheard", "")] == [
        *("Decimal", "Int64", "String", "String")
    ]
