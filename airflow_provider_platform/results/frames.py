"""The rows of a result as an Arrow table, and the table as a frame of pandas or Polars.

All have the columns of the result's Parquet file: the same names, types and nulls. The libraries
are imported when they are used, since not every program that reads rows has them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from airflow_provider_platform.client.errors import PlatformInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from airflow_provider_platform.results.columns import Column
    from airflow_provider_platform.results.row_buffer import RowBuffer

DtypeBackend = Literal["pyarrow", "numpy_nullable"]
Library = Literal["arrow", "pandas", "polars"]

_NEEDED: dict[Library, tuple[str, ...]] = {
    "arrow": ("pyarrow",),
    "pandas": ("pandas", "pyarrow"),
    "polars": ("polars", "pyarrow"),
}
_EXTRA: dict[Library, str] = {"arrow": "parquet", "pandas": "pandas", "polars": "polars"}
CHUNK_ROWS = 100_000
"""Rows of a chunk of the table."""


def check_library(library: Library) -> None:
    """Raise PlatformInputError if something is not installed that `to_arrow`, `to_pandas` or
    `to_polars` needs."""
    missing = [name for name in _NEEDED[library] if find_spec(name) is None]
    if missing:
        raise PlatformInputError(
            f"No row was read: to_{library}() needs {' and '.join(missing)}. Install it: "
            f'pip install "airflow-provider-platform[{_EXTRA[library]}]"'
        )


def read_table(columns: Sequence[Column], buffer: RowBuffer) -> pa.Table:
    """Return all rows of a buffer as a `pyarrow.Table`. `columns` are those that its `finish`
    gave."""
    import pyarrow as pa

    from airflow_provider_platform.results.files.parquet import arrow_schema, arrow_table

    chunks: list[pa.Table] = []
    small: list[pa.Table] = []
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


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Small tables in one piece of memory, each column for itself."""
    import pyarrow as pa

    joined = pa.concat_tables(tables).combine_chunks()
    tables.clear()
    pa.default_memory_pool().release_unused()
    return joined


def to_pandas(table: pa.Table, dtype_backend: DtypeBackend) -> pd.DataFrame:
    """The table as a pandas frame in which a null is no NaN and an integer no float."""
    import pandas as pd
    import pyarrow as pa

    if dtype_backend == "pyarrow":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    nullable = {
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype("pyarrow"),
    }
    return table.to_pandas(types_mapper=nullable.get)


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The table as a Polars frame."""
    import polars as pl

    return pl.DataFrame(table)
