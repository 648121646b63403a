"""Rows to a file, or to nothing but their count and the first of them."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_platform.client.formats.json_text import storable
from airflow_provider_platform.results.atomic_files import whole_file
from airflow_provider_platform.results.column_names import describe_renaming
from airflow_provider_platform.results.columns import (
    Column,
    Types,
    plain,
    read_columns,
    read_rows,
)
from airflow_provider_platform.results.output import PLAIN, FileStyle, Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_platform.results.atomic_files import OutputFile

NEVER = 2**31 - 1
"""So many collections of younger objects the collector lets pass before a full one."""


class RowWriter(Protocol):
    """Writes the rows of one result into a file."""

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows as the service sends them. Raises ResultValueError, ResultWriteError."""

    def finish(self) -> None:
        """Write what the format ends with."""


@dataclass
class SavedRows:
    """What came of a result: its columns by their names in the file, how many rows, the first of
    them as plain JSON, and the file. `renaming` says which columns lost the service's name."""

    columns: list[dict[str, str]]
    row_count: int = 0
    first_rows: list[list[Any]] = field(default_factory=list)
    path: str | None = None
    format: Format | None = None
    bytes: int | None = None
    sha256: str | None = None
    renaming: str | None = None


def save_rows(
    columns: Sequence[dict[str, str]],
    pieces: Iterable[list[list[Any]]],
    *,
    path: Any = None,
    format: Format = "parquet",
    style: FileStyle = PLAIN,
    types: Types = "service",
    max_rows: int = 100,
) -> SavedRows:
    """Read a result to its end, and write it to a file where a path object is given.

    `pieces` are rows as the service sends them; what they raise leaves no file. `style` says how
    the file is written. `max_rows` are kept
    to look at. Raises ResultValueError, ResultWriteError.
    """
    typed = read_columns(columns, types)
    names = [column.name for column in typed]
    saved = SavedRows([{"name": one.name, "type": storable(one.type)} for one in typed])
    saved.renaming = describe_renaming([one.get("name") for one in columns], names)
    if path is None:
        with _no_full_collections():
            _read(typed, pieces, saved, max_rows, _Checker(typed))
        return saved
    with whole_file(path) as file, _no_full_collections():
        writer = _writer(format)(file, typed, style)
        _read(typed, pieces, saved, max_rows, writer)
        writer.finish()
    saved.path, saved.format = str(path), format
    saved.bytes, saved.sha256 = file.bytes, file.sha256
    return saved


def _read(
    columns: list[Column],
    pieces: Iterable[list[list[Any]]],
    saved: SavedRows,
    max_rows: int,
    writer: RowWriter,
) -> None:
    for rows in pieces:
        wanted = rows[: max(0, max_rows - len(saved.first_rows))]
        for row in read_rows(columns, wanted, saved.row_count + 1):
            saved.first_rows.append(storable([plain(value) for value in row]))
        writer.write(rows)
        saved.row_count += len(rows)


@contextmanager
def _no_full_collections() -> Iterator[None]:
    """The garbage collector looks at new objects only. Every row is an object that it counts, so
    that it would look through all of Airflow some twenty times in a million rows: almost half of
    the time that they take."""
    young, middle, full = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, full)


class _Checker:
    """Writes nothing, and finds the same values wrong."""

    def __init__(self, columns: list[Column]) -> None:
        self._columns = columns
        self._rows = 0

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        read_rows(self._columns, rows, self._rows + 1)
        self._rows += len(rows)

    def finish(self) -> None:
        return


def _writer(format: Format) -> Callable[[OutputFile, list[Column], FileStyle], RowWriter]:
    if format == "parquet":
        from airflow_provider_platform.results.parquet import ParquetWriter

        return ParquetWriter
    from airflow_provider_platform.results.text_files import CsvWriter, JsonLinesWriter

    return CsvWriter if format == "csv" else JsonLinesWriter
