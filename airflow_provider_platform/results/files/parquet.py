"""Parquet, by pyarrow: typed columns, in row groups of the same number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_platform.results.columns import Column, Kind, round_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.results.files.atomic import OutputFile
    from airflow_provider_platform.results.files.format_and_options import FileStyle

_TYPES: dict[Kind, Any] = {
    "Int64": pa.int64(),
    "Double": pa.float64(),
    "Boolean": pa.bool_(),
    "Date": pa.date32(),
    "Timestamp": pa.timestamp("us"),
    "String": pa.string(),
}


def arrow_schema(columns: Sequence[Column]) -> Any:
    """The pyarrow schema of columns."""
    return pa.schema([(column.name, arrow_type(column)) for column in columns])


def arrow_type(column: Column) -> Any:
    """The pyarrow type of a column."""
    if column.kind == "Decimal":
        return pa.decimal128(column.precision, column.scale)
    return _TYPES[column.kind]


def arrow_table(columns: Sequence[Column], piece: Sequence[Sequence[str | None]]) -> Any:
    """A piece of a result, columns of texts, as a pyarrow table."""
    arrays = [arrow_array(column, texts) for column, texts in zip(columns, piece, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def arrow_array(column: Column, texts: Sequence[str | None]) -> Any:
    """The texts of a column as a pyarrow array of its type."""
    wanted = arrow_type(column)
    if column.kind == "String":
        return pa.array(texts, wanted)
    if column.regular:
        try:
            return pa.array(texts, pa.string()).cast(wanted)
        except pa.ArrowInvalid:  # zeros behind the point, more than the scale of the column
            pass
    values = column.values(texts)
    if column.kind == "Decimal":
        scale = column.scale
        values = [None if value is None else round_to(value, scale) for value in values]
    return pa.array(values, wanted)


class ParquetWriter:
    """Writes row groups of the same size whatever the pieces, so that the same rows make the same
    file."""

    def __init__(self, file: OutputFile, columns: Sequence[Column], style: FileStyle) -> None:
        self._columns = columns
        self._writer = pq.ParquetWriter(
            file, arrow_schema(columns), compression=style.compression or "snappy"
        )
        self._row_group = style.row_group_size
        self._waiting: list[Any] = []
        self._rows_waiting = 0

    def write(self, piece: Sequence[Sequence[str | None]]) -> None:
        """Write a piece of the rows, columns of texts. Raises ResultWriteError."""
        table = arrow_table(self._columns, piece)
        self._rows_waiting += table.num_rows
        self._waiting.append(table)
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
