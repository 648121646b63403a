"""Columns as pyarrow arrays with exactly the values of the column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytestmark = pytest.mark.one_case_in(3)

pa = pytest.importorskip("pyarrow")

from airflow_provider_platform.results.columns import (  # noqa: E402
    KINDS,
    Column,
    Kind,
    round_to,
)
from airflow_provider_platform.results.files import parquet  # noqa: E402
from airflow_provider_platform.results.row_buffer import RowBuffer  # noqa: E402

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
    "Int64": ["0", "-12", "9199999999999999999"],
    "Double": ["0", "-1.50", "747"],
    "Decimal": ["-12.30", "0", "1" * 20 + "." + "1" * 18],
    "Boolean": ["true", "false"],
    "Date": ["2025-01-31", "1600-02-28"],
    "Timestamp": ["2025-01-31T12:30:00.000", "1600-01-01T00:00:00.123"],
    "String": ["", "a\nb", "ü"],
}


def read(kind: Kind, values: list[Any]) -> tuple[Column, list[str | None]]:
    """A column of these values, and its texts."""
    with RowBuffer([{"name": "a", "type": kind}]) as buffer:
        buffer.add([[value] for value in values])
        [column] = buffer.finish()
        return column, [text for [piece] in buffer.pieces() for text in piece]


def check(kind: Kind, values: list[Any]) -> None:
    """The array has the values of the column, exactly."""
    column, texts = read(kind, values)
    array = parquet.arrow_array(column, texts)
    array.validate(full=True)
    assert array.type == parquet.arrow_type(column)
    expected = [
        _at_scale(value, column.scale) if isinstance(value, Decimal) else value
        for value in column.values(texts)
    ]
    assert repr(array.to_pylist()) == repr(expected)


def _at_scale(value: Decimal, scale: int) -> Decimal:
    """The value as a column with this scale has it, which knows no -0."""
    return round_to(value or abs(value), scale)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_arrow_arrays_have_the_values_of_their_column(kind: Kind, data: st.DataObject) -> None:
    value = st.none() | TEXTS[kind] | st.sampled_from(USUAL[kind])
    check(kind, data.draw(st.lists(value, max_size=4)))


@given(kind=st.sampled_from(KINDS), values=st.lists(st.none() | st.text() | st.integers()))
@example(kind="Int64", values=["0x10"])
@example(kind="Date", values=["0000-01-01"])
@example(kind="Timestamp", values=["0000-01-01T10:20:30"])
@example(kind="Timestamp", values=["2025-01-31T10:20"])
@example(kind="Timestamp", values=["2025-01-31"])
@example(kind="Decimal", values=["9" * 21])
@example(kind="Decimal", values=["0E30", "0E-30", "1.0000000000000000000"])
def test_parquet_stores_any_values_of_any_column_type(kind: Kind, values: list[Any]) -> None:
    check(kind, values)


@pytest.mark.parametrize("values", [["1.500", "2"], ["1.5", "-0.25"], ["1e1"]])
def test_parquet_column_has_the_requested_decimal_size(values: list[str]) -> None:
    with RowBuffer([{"name": "a", "type": "String"}], {"a": "decimal(6, 2)"}) as buffer:
        buffer.add([[value] for value in values])
        [column] = buffer.finish()
        array = parquet.arrow_array(column, values)
    assert array.type == pa.decimal128(6, 2)
    assert array.to_pylist() == [Decimal(value) for value in values]


@pytest.mark.parametrize("kind", KINDS)
def test_usual_columns_are_converted_as_a_whole(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for values in ([], [None], [*USUAL[kind], None], USUAL[kind] * 1000):
        column, texts = read(kind, values)
        assert column.kind == kind
        assert column.regular
        with monkeypatch.context() as patch:
            patch.delattr(Column, "values")
            assert len(parquet.arrow_array(column, texts)) == len(values)
