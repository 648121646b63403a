"""The rows of a result as a frame of pandas or Polars: what `Spool.table` gives, converted.

All have the columns of the result's Parquet file: the same names, types and nulls. The libraries
are imported when they are used, since not every program that reads rows has them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from airflow_provider_platform.client.errors import PlatformInputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

DtypeBackend = Literal["pyarrow", "numpy_nullable"]
Library = Literal["arrow", "pandas", "polars"]

_NEEDED: dict[Library, tuple[str, ...]] = {
    "arrow": ("pyarrow",),
    "pandas": ("pandas", "pyarrow"),
    "polars": ("polars", "pyarrow"),
}
_EXTRA: dict[Library, str] = {"arrow": "files", "pandas": "pandas", "polars": "polars"}


def check_library(library: Library) -> None:
    """Raise PlatformInputError if something is not installed that `to_arrow`, `to_pandas` or
    `to_polars` needs."""
    missing = [name for name in _NEEDED[library] if find_spec(name) is None]
    if missing:
        raise PlatformInputError(
            f"No row was read: to_{library}() needs {' and '.join(missing)}. Install it: "
            f'pip install "airflow-provider-platform[{_EXTRA[library]}]"'
        )


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
