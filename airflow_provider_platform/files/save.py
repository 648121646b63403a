"""What a task keeps of a result: its rows in a file or only counted, and the first of them.

`save_rows` reads a result to its end, `type_rows` the queries of an answer of which no file is
written. A result without files needs no pyarrow: only `formats` and `spool` import it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.choices import MAX_ROWS
from airflow_provider_platform.client.errors import ResultEmptyError
from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.files.options import PARQUET, Output
from airflow_provider_platform.files.types import TypedRows, describe_renaming, file_names
from airflow_provider_platform.files.whole_files import is_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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

    from airflow_provider_platform.files.formats import is_data_of_others

    return is_data_of_others(path, writer)


def _facts(
    columns: Sequence[dict[str, str]], rows: TypedRows | Spool, typed: list[Column], max_rows: int
) -> SavedRows:
    described = [column.described() for column in typed]
    warnings = [column.warning for column in typed if column.warning is not None]
    names = [column.name for column in typed]
    renaming = describe_renaming([column.get("name") for column in columns], names)
    shown = db_safe([described, rows.first_rows(typed, max_rows), warnings])
    return SavedRows(shown[0], rows.row_count, shown[1], warnings=shown[2], renaming=renaming)


def _write(
    saved: SavedRows, columns: list[Column], spool: Spool, path: Any, output: Output, writer: str
) -> None:
    from airflow_provider_platform.files.formats import write_file, write_folder

    batches = spool.batches(columns)
    if output.is_folder:
        saved.files = write_folder(path, columns, batches, output, writer)
        saved.bytes = sum(file["bytes"] for file in saved.files)
    else:
        file = write_file(path, columns, batches, output)
        saved.bytes, saved.sha256 = file.bytes, file.sha256


# The rows of an answer


def type_rows(
    result: dict[str, Any], types: ColumnTypes, warn: Callable[[str], None]
) -> dict[str, Any]:
    """A chat's result whose rows have values of the types of their columns, as plain JSON. A column
    that is text although it should not be has a `note`. Raises ResultValueError for a misfit in
    strict mode."""
    queries = []
    for number, query in enumerate(rectangular(result)["queries"], start=1):
        if query["error"] is not None or not query["columns"]:
            queries.append(query)
            continue
        columns, rows = query["columns"], query["rows"]
        saved = save_rows(columns, [rows], types=types.only(columns), max_rows=len(rows))
        for warning in saved.warnings:
            warn(f"Query {number}: {warning}")
        typed = named_as(columns, saved)
        queries.append({**query, "columns": typed, "rows": saved.first_rows})
    warn_of_unknown_names([query["columns"] for query in queries], types, warn)
    return {**result, "queries": queries}


def warn_of_unknown_names(
    queries: list[list[dict[str, str]]], types: ColumnTypes, warn: Callable[[str], None]
) -> None:
    for name in types.named:
        if not any(name in file_names([one["name"] for one in columns]) for columns in queries):
            warn(f"types contains the column {name!r}, which no query of the answer has.")


def rectangular(result: dict[str, Any]) -> dict[str, Any]:
    """The result with rows as long as its columns: a missing value is None, and a value that no
    column has gets one without a name."""
    queries = []
    for query in result["queries"]:
        columns, rows = query["columns"], query["rows"]
        if columns and {*map(len, rows)} - {len(columns)}:
            width = max(len(columns), *map(len, rows))
            more = [{"name": "", "type": ""}] * (width - len(columns))
            rows = [[*row, *[None] * (width - len(row))] for row in rows]
            queries.append({**query, "columns": [*columns, *more], "rows": rows})
        else:
            queries.append(query)
    return {**result, "queries": queries}


def named_as(columns: list[dict[str, str]], saved: SavedRows) -> list[dict[str, str]]:
    """The columns by the service's names, with the types that their values have."""
    return [
        {**typed, "name": column["name"]}
        for column, typed in zip(columns, saved.columns, strict=True)
    ]
