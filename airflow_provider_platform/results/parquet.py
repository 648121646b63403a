"""Parquet, by pyarrow: typed columns, in row groups of the same number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_platform.results.columns import (
    DECIMAL_DIGITS,
    DECIMAL_SCALE,
    Column,
    Kind,
    misfit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.results.atomic_files import OutputFile
    from airflow_provider_platform.results.output import FileStyle

_TYPES: dict[Kind, Any] = {
    "Int64": pa.int64(),
    "Double": pa.float64(),
    "Decimal": pa.decimal128(DECIMAL_DIGITS, DECIMAL_SCALE),
    "Boolean": pa.bool_(),
    "Date": pa.date32(),
    "Timestamp": pa.timestamp("us"),
    "String": pa.string(),
}
_CHARACTERS: dict[Kind, bytes] = {"Int64": b"-0123456789", "Double": b"+-.eE0123456789"}
_DECIMAL = r"^-?[0-9]{1,20}(\.[0-9]{1,18})?$"
_YEAR_ZERO = b"0000-"
"""A year that pyarrow has and Python has not."""


class ParquetWriter:
    """Writes row groups of the same size whatever the pieces, so that the same rows make the same
    file."""

    def __init__(self, file: OutputFile, columns: Sequence[Column], style: FileStyle) -> None:
        self._columns = columns
        self._schema = pa.schema([(column.name, _TYPES[column.kind]) for column in columns])
        self._writer = pq.ParquetWriter(
            file, self._schema, compression=style.compression or "snappy"
        )
        self._row_group = style.row_group_size
        self._waiting: list[Any] = []
        self._rows_waiting = 0
        self._rows = 0

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows. Raises ResultValueError, ResultWriteError."""
        values = zip(*rows, strict=True) if rows else [()] * len(self._columns)
        arrays = [
            _array(column, list(of), self._rows + 1)
            for column, of in zip(self._columns, values, strict=True)
        ]
        self._rows += len(rows)
        self._rows_waiting += len(rows)
        self._waiting.append(pa.Table.from_arrays(arrays, schema=self._schema))
        if self._rows_waiting >= self._row_group:
            self._write_groups(self._rows_waiting - self._rows_waiting % self._row_group)

    def finish(self) -> None:
        """Write what waits, and the metadata."""
        if self._rows_waiting:
            self._write_groups(self._rows_waiting)
        self._writer.close()

    def _write_groups(self, rows: int) -> None:
        waiting = pa.concat_tables(self._waiting)
        # One piece of memory: how the rows came must not show in the file.
        groups = waiting.slice(0, rows).combine_chunks()
        self._writer.write_table(groups, row_group_size=self._row_group)
        self._rows_waiting -= rows
        self._waiting = [waiting.slice(rows).combine_chunks()] if self._rows_waiting else []
        del waiting, groups
        pa.default_memory_pool().release_unused()  # it would keep what the next group needs anew


def _array(column: Column, values: list[Any], first: int) -> Any:
    """The values of a column; `first` is the number of the first row."""
    try:
        return _quick_array(column, values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeEncodeError):
        return _careful_array(column, values, first)


def _quick_array(column: Column, values: list[Any]) -> Any:
    texts = pa.array(values, pa.string())
    if column.kind == "String":
        return texts
    if not _is_read_alike(column.kind, texts):
        raise pa.ArrowInvalid("pyarrow may read it otherwise")
    return texts.cast(_TYPES[column.kind])


def _is_read_alike(kind: Kind, texts: Any) -> bool:
    """Whether what pyarrow accepts of these texts has the value that `Column.read` gives it, as
    far as a look at all of them at once can tell."""
    if kind == "Decimal":  # more digits overflow, and pyarrow does not notice
        return bool(pc.all(pc.match_substring_regex(texts, _DECIMAL), min_count=0).as_py())
    content = texts.buffers()[2]
    data = content.to_pybytes() if content is not None else b""
    if kind in _CHARACTERS:  # pyarrow takes hexadecimal numbers too
        return not data.translate(None, _CHARACTERS[kind])
    if kind == "Timestamp" and data.count(b":") != 2 * (len(texts) - texts.null_count):
        return False  # pyarrow takes days, and times without seconds, too
    return _YEAR_ZERO not in data


def _careful_array(column: Column, values: list[Any], first: int) -> Any:
    typed = []
    for row, value in enumerate(values, start=first):
        try:
            typed.append(column.read(value))
        except ValueError:
            raise misfit(column, value, row) from None
    return pa.array(typed, _TYPES[column.kind])
