"""Rows to a file, or to nothing but their count and the first of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.defaults import MAX_ROWS
from airflow_provider_platform.client.errors import ResultEmptyError
from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.files.column_names import describe_renaming
from airflow_provider_platform.files.options import PARQUET, Output
from airflow_provider_platform.files.store import is_there
from airflow_provider_platform.files.types import TypedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_provider_platform.client.choices import RowFormat
    from airflow_provider_platform.files.spool import Spool
    from airflow_provider_platform.files.types import Column, ColumnTypes, Types

NOBODY = "00000000"
"""The writer of files that no task writes."""


@dataclass
class SavedRows:
    """What came of a result: its columns by their names in the file (`{"name", "type"}` each, with
    a `note` if it is text although another type was declared or asked for), how many rows, the
    first of them as plain JSON, and the file, or the folder with its `files` (`path`, `rows`,
    `bytes`, `sha256` each). `warnings` has a sentence for each column with a note, `renaming` says
    which columns lost the service's name."""

    columns: list[dict[str, str]]
    row_count: int = 0
    first_rows: list[list[Any]] = field(default_factory=list)
    path: str | None = None
    format: RowFormat | None = None
    bytes: int | None = None
    sha256: str | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    renaming: str | None = None
    warnings: list[str] = field(default_factory=list)


def save_rows(
    columns: Sequence[dict[str, str]],
    pieces: Iterable[list[list[Any]]],
    *,
    path: Any = None,
    output: Output = PARQUET,
    types: Types | ColumnTypes = "service",
    max_rows: int = MAX_ROWS,
    writer: str = NOBODY,
) -> SavedRows:
    """Read a result to its end, and write it to a file, or files, where a path object is given.

    `pieces` are rows as the service sends them; what they raise leaves no file. `max_rows` are kept
    to look at. Files are begun when all rows have come, since the last one may still change the
    type of a column, and since a result without rows may not be wanted: `path` of what is returned
    is None then. `writer` are eight hexadecimal digits for the task run.

    Raises ResultValueError, ResultEmptyError, ResultWriteError.
    """
    if path is None:
        rows = TypedRows(columns, types, keep=max_rows)
        for piece in pieces:
            rows.add(piece)
        return _facts(columns, rows, rows.finish(), max_rows)

    from airflow_provider_platform.files.spool import Spool, objects_frozen

    with objects_frozen(), Spool(columns, types) as spool:
        for piece in pieces:
            spool.add(piece)
        typed = spool.finish()
        saved = _facts(columns, spool, typed, max_rows)
        if not saved.row_count and output.on_empty == "fail":
            raise ResultEmptyError(
                "No file was written: the result has no rows, and output_options has "
                "on_empty='fail'.",
                where=path,
            )
        if saved.row_count or output.on_empty == "write":
            saved.path, saved.format = str(path), output.format
            _write(saved, typed, spool, path, output, writer)
    return saved


def exists(path: Any, output: Output, writer: str) -> bool:
    """Whether a file is at this path; of a folder, whether it has data that this task run has not
    written. Raises ResultWriteError if the storage does not answer."""
    if not output.is_folder:
        return is_there(path)

    from airflow_provider_platform.files.write import is_data_of_others

    return is_data_of_others(path, writer)


def _facts(
    columns: Sequence[dict[str, str]], rows: TypedRows | Spool, typed: list[Column], max_rows: int
) -> SavedRows:
    names = [column.name for column in typed]
    return SavedRows(
        columns=[db_safe(column.described()) for column in typed],
        row_count=rows.row_count,
        first_rows=db_safe(rows.first_rows(typed, max_rows)),
        warnings=db_safe([column.warning for column in typed if column.warning is not None]),
        renaming=describe_renaming([column.get("name") for column in columns], names),
    )


def _write(
    saved: SavedRows, columns: list[Column], spool: Spool, path: Any, output: Output, writer: str
) -> None:
    from airflow_provider_platform.files.write import write_file, write_folder

    batches = spool.batches(columns)
    if output.is_folder:
        saved.files = write_folder(path, columns, batches, output, writer)
        saved.bytes = sum(file["bytes"] for file in saved.files)
    else:
        file = write_file(path, columns, batches, output)
        saved.bytes, saved.sha256 = file.bytes, file.sha256
