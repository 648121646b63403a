"""The rows of a result as an Arrow table, with the columns that their Parquet file has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_platform.results.parquet import arrow_schema, arrow_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.results.columns import Column
    from airflow_provider_platform.results.row_buffer import RowBuffer

CHUNK_ROWS = 100_000
"""Rows of a chunk of the table."""


def read_table(columns: Sequence[Column], buffer: RowBuffer) -> Any:
    """Return all rows of a buffer as a `pyarrow.Table`. `columns` are those that its `finish`
    gave."""
    chunks: list[Any] = []
    small: list[Any] = []
    rows = 0
    for piece in buffer.pieces():
        small.append(arrow_table(columns, piece))
        rows += small[-1].num_rows
        if rows >= CHUNK_ROWS:
            chunks.append(_joined(small))
            rows = 0
    if small:
        chunks.append(_joined(small))
    return pa.concat_tables(chunks) if chunks else arrow_schema(columns).empty_table()


def _joined(tables: list[Any]) -> Any:
    """Small tables in one piece of memory, each column for itself."""
    joined = pa.concat_tables(tables).combine_chunks()
    tables.clear()
    pa.default_memory_pool().release_unused()
    return joined
