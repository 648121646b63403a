"""Rows to a file, or to nothing but their count and the first of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_platform.client.formats.json_text import storable
from airflow_provider_platform.results.atomic_files import whole_file
from airflow_provider_platform.results.collector import no_full_collections
from airflow_provider_platform.results.column_names import describe_renaming
from airflow_provider_platform.results.output import PLAIN, FileStyle, Format
from airflow_provider_platform.results.row_buffer import RowBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_platform.results.atomic_files import OutputFile
    from airflow_provider_platform.results.columns import Column, ColumnTypes, Types


class RowWriter(Protocol):
    """Writes the rows of one result into a file."""

    def write(self, piece: Sequence[Sequence[str | None]]) -> None:
        """Write a piece of the rows, columns of texts. Raises ResultWriteError."""

    def finish(self) -> None:
        """Write what the format ends with."""


@dataclass
class SavedRows:
    """What came of a result: its columns by their names in the file (`{"name", "type"}` each, with
    a `note` if it is text although another type was declared or asked for), how many rows, the
    first of them as plain JSON, and the file. `warnings` has a sentence for each column with a
    note, `renaming` says which columns lost the service's name."""

    columns: list[dict[str, str]]
    row_count: int = 0
    first_rows: list[list[Any]] = field(default_factory=list)
    path: str | None = None
    format: Format | None = None
    bytes: int | None = None
    sha256: str | None = None
    renaming: str | None = None
    warnings: list[str] = field(default_factory=list)


def save_rows(
    columns: Sequence[dict[str, str]],
    pieces: Iterable[list[list[Any]]],
    *,
    path: Any = None,
    format: Format = "parquet",
    style: FileStyle = PLAIN,
    types: Types | ColumnTypes = "service",
    max_rows: int = 100,
) -> SavedRows:
    """Read a result to its end, and write it to a file where a path object is given.

    `pieces` are rows as the service sends them; what they raise leaves no file. `style` says how
    the file is written. `max_rows` are kept to look at. The file is begun when all rows have come,
    since the last one may still change the type of a column. Raises ResultValueError,
    ResultWriteError.
    """
    with no_full_collections(), RowBuffer(columns, types) as buffer:
        for rows in pieces:
            buffer.add(rows)
        typed = buffer.finish()
        saved = SavedRows(
            columns=[storable(column.described()) for column in typed],
            row_count=buffer.row_count,
            first_rows=storable(buffer.first_rows(typed, max_rows)),
            warnings=storable([one.warning for one in typed if one.warning is not None]),
        )
        names = [column.name for column in typed]
        saved.renaming = describe_renaming([one.get("name") for one in columns], names)
        if path is not None:
            with whole_file(path) as file:
                writer = _writer(format)(file, typed, style)
                for piece in buffer.pieces():
                    writer.write(piece)
                writer.finish()
            saved.path, saved.format = str(path), format
            saved.bytes, saved.sha256 = file.bytes, file.sha256
    return saved


def _writer(format: Format) -> Callable[[OutputFile, list[Column], FileStyle], RowWriter]:
    if format == "parquet":
        from airflow_provider_platform.results.parquet import ParquetWriter

        return ParquetWriter
    from airflow_provider_platform.results.text_files import CsvWriter, JsonLinesWriter

    return CsvWriter if format == "csv" else JsonLinesWriter
