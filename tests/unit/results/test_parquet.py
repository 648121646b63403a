"""Columns read all at once and value by value: the same values, and the same ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from airflow_provider_platform.client.errors import ResultValueError  # noqa: E402
from airflow_provider_platform.results import parquet  # noqa: E402
from airflow_provider_platform.results.columns import KINDS, Column, Kind  # noqa: E402

FORMS: dict[Kind, str] = {
    "Int64": r"[-+ ]?(0x)?[0-9_]{0,21}",
    "Double": r"[-+ ]?([0-9]{0,20}\.?[0-9]{0,20}([eE][-+]?[0-9]{0,3})?|nan|INF|Infinity)",
    "Decimal": r"[-+]?[0-9]{0,40}(\.[0-9]{0,20})?([eE][-+]?[0-9]{1,3})?",
    "Boolean": r"(?i)true|false|t|f|0|1|yes|10",
    "Date": r"([02][0-9]{3}|[0-9]{1,5})-[0-1]?[0-9]-[0-3]?[0-9](T00:00:00)?",
    "Timestamp": (
        r"(0000|20[0-9]{2})-(01|12)-[0-3][0-9]"
        r"([T ][0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,8})?)?)?)?(Z|[-+]01:?00)?"
    ),
    "String": r".{0,5}",
}
TEXTS = {kind: st.from_regex(form, fullmatch=True) for kind, form in FORMS.items()}
USUAL: dict[Kind, list[str]] = {
    "Int64": ["0", "-12", "9223372036854775807"],
    "Double": ["0", "-1.50", "2.5e-07"],
    "Decimal": ["-12.30", "0", "1" * 20 + "." + "1" * 18],
    "Boolean": ["true", "false"],
    "Date": ["2025-01-31", "1600-02-29"],
    "Timestamp": ["2025-01-31T12:30:00.000", "2025-01-31 12:30:00", "1600-01-01T00:00:00.123456"],
    "String": ["", "a\nb", "ü"],
}


def outcome(read: Any, column: Column, values: list[Any]) -> str:
    """The array, or the error, as a text: not a number is equal to itself so."""
    try:
        array = read(column, values, 5)
    except ResultValueError as error:
        return str(error)
    array.validate(full=True)
    return repr((array.type, array.to_pylist()))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_column_is_read_as_its_values_are(kind: Kind, data: st.DataObject) -> None:
    value = st.none() | TEXTS[kind] | st.sampled_from(USUAL[kind])
    values = data.draw(st.lists(value, max_size=4))
    check(kind, values)


@given(kind=st.sampled_from(KINDS), values=st.lists(st.none() | st.text() | st.integers()))
@example(kind="Int64", values=["0x10"])
@example(kind="Date", values=["0000-01-01"])
@example(kind="Timestamp", values=["0000-01-01T10:20:30"])
@example(kind="Timestamp", values=["2025-01-31T10:20"])
@example(kind="Timestamp", values=["2025-01-31"])
@example(kind="Decimal", values=["9" * 21])
@example(kind="Decimal", values=["0E30", "0E-40", "1.0000000000000000000"])
def test_whatever_the_values_are(kind: Kind, values: list[Any]) -> None:
    check(kind, values)


def check(kind: Kind, values: list[Any]) -> None:
    column = Column("a", kind, kind)
    careful = outcome(parquet._careful_array, column, values)
    assert outcome(parquet._array, column, values) == careful


@pytest.mark.parametrize("kind", KINDS)
def test_usual_columns_are_read_at_once(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(parquet, "_careful_array")
    column = Column("a", kind, kind)
    for values in ([], [None], [*USUAL[kind], None], USUAL[kind] * 1000):
        assert len(parquet._array(column, values, 1)) == len(values)
