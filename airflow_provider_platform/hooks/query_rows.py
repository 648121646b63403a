"""The rows of a query as `PlatformHook.run_sql` returns them: as lists, and as tables in memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, get_args

from airflow_provider_platform.client.choices import OnTruncated
from airflow_provider_platform.client.errors import PlatformInputError, ResultTruncatedError
from airflow_provider_platform.client.redaction import log_line
from airflow_provider_platform.files import frames
from airflow_provider_platform.files.types import ColumnTypes, describe_renaming
from airflow_provider_platform.resources.sql.response import SqlRows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from airflow_provider_platform.files.spool import Spool
    from airflow_provider_platform.files.types import Types


log = logging.getLogger(__name__)


class QueryRows(SqlRows):
    """`SqlRows` that can be read into a table.

    `to_arrow`, `to_pandas` and `to_polars` read all rows and close the result. Use one of them
    instead of the iterator. The columns have the same names and types as in a Parquet file.

    `types` is the argument of `PlatformQueryOperator`. `on_truncated` says what happens if rows may
    be missing: `"warn"` logs a warning, `"fail"` raises ResultTruncatedError.

    The methods raise PlatformInputError for a bad argument, for a library that is not installed
    (the error has the line that installs it), and if rows were already read. They raise
    ResultValueError for a value that does not fit its column's type, and PlatformError.
    """

    def to_arrow(self, *, types: Types = "service", on_truncated: OnTruncated = "warn") -> pa.Table:
        """Return the rows as an Arrow table. Needs the extra `files`."""
        return self._read_table("arrow", types, on_truncated)

    def to_pandas(
        self,
        *,
        types: Types = "service",
        on_truncated: OnTruncated = "warn",
        dtype_backend: frames.DtypeBackend = "pyarrow",
    ) -> pd.DataFrame:
        """Return the rows as a pandas frame. Needs the extra `pandas`.

        With `dtype_backend="pyarrow"` the columns have Arrow's types (`int64[pyarrow]`,
        `date32[day][pyarrow]`), so that a null stays a null and an integer an integer.
        `"numpy_nullable"` gives pandas' own nullable types (`Int64`, `Float64`, `boolean`,
        `string`), with decimals and dates as Python objects; NaN is missing there too.
        """
        _check_backend(dtype_backend)
        return frames.to_pandas(self._read_table("pandas", types, on_truncated), dtype_backend)

    def to_polars(
        self, *, types: Types = "service", on_truncated: OnTruncated = "warn"
    ) -> pl.DataFrame:
        """Return the rows as a Polars frame. Needs the extra `polars`."""
        return frames.to_polars(self._read_table("polars", types, on_truncated))

    def _read_table(
        self, library: frames.Library, types: Types, on_truncated: OnTruncated
    ) -> pa.Table:
        wanted = _check(library, types, on_truncated, self.rows_read)
        from airflow_provider_platform.files.spool import Spool, objects_frozen

        with self, Spool(self.columns, wanted) as spool, objects_frozen():
            for rows in self.pieces():
                spool.add(rows)
            _check_truncated(self.why_truncated, on_truncated)
            return _table(self.columns, spool)


def _check(
    library: frames.Library, types: Types, on_truncated: OnTruncated, rows_read: int
) -> ColumnTypes:
    """Return the checked `types`. Raises PlatformInputError before a row is read."""
    try:
        wanted = ColumnTypes.parse(types)
    except ValueError as error:
        raise PlatformInputError(f"No row was read: types {error}.", field="types") from None
    _check_choice("on_truncated", on_truncated, get_args(OnTruncated))
    frames.check_library(library)
    if rows_read:
        raise PlatformInputError(
            f"to_{library}() needs the whole result, but {rows_read} of its rows were already "
            "read. Run the query again. To get data frames of several libraries, call to_arrow() "
            "once and convert its table."
        )
    return wanted


def _table(named: list[dict[str, str]], spool: Spool) -> pa.Table:
    """Return the rows as a table. `named` are the columns as the service names them."""
    columns = spool.finish()
    renaming = describe_renaming(
        [column["name"] for column in named], [column.name for column in columns]
    )
    for warning in (renaming, *(column.warning for column in columns)):
        if warning is not None:
            log.warning("%s", log_line(warning))
    return spool.table(columns)


def _check_backend(dtype_backend: Any) -> None:
    _check_choice("dtype_backend", dtype_backend, get_args(frames.DtypeBackend))


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise PlatformInputError(
            f"No row was read: {name} must be one of {', '.join(choices)}, got {value!r}.",
            field=name,
        )


def _check_truncated(why: str | None, on_truncated: OnTruncated) -> None:
    """Log why rows may be missing, or raise it."""
    if why is None:
        return
    if on_truncated == "fail":
        raise ResultTruncatedError(why)
    log.warning("%s", log_line(why))
