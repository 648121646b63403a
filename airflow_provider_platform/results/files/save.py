"""Rows to a file, or to nothing but their count and the first of them; and what is at its path
already."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_platform.client.defaults import MAX_ROWS
from airflow_provider_platform.client.errors import ResultEmptyError
from airflow_provider_platform.client.formats.json_text import db_safe
from airflow_provider_platform.results.column_names import describe_renaming
from airflow_provider_platform.results.files.atomic import whole_file, writing
from airflow_provider_platform.results.files.dataset import (
    DatasetFile,
    data_files,
    write_dataset,
    writer_of,
)
from airflow_provider_platform.results.files.format_and_options import (
    PARQUET,
    Output,
    RowWriter,
)
from airflow_provider_platform.results.files.manifest import (
    file_manifest,
    folder_manifest,
    is_there,
    read_manifest,
    take_manifest_away,
    write_manifest,
)
from airflow_provider_platform.results.row_buffer import RowBuffer, no_full_collections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_provider_platform.client.choices import RowFormat
    from airflow_provider_platform.results.columns import Column, ColumnTypes, Types
    from airflow_provider_platform.results.files.atomic import OutputFile

Describe: TypeAlias = "Callable[[dict[str, Any]], dict[str, Any]]"
"""Makes the content of a manifest of the facts of the files."""

NOBODY = "00000000"
"""The writer of files that no task writes."""


@dataclass
class SavedRows:
    """What came of a result: its columns by their names in the file (`{"name", "type"}` each, with
    a `note` if it is text although another type was declared or asked for), how many rows, the
    first of them as plain JSON, and the file, or the folder with its `files` (`path`, `rows`,
    `bytes`, `sha256` and `partition` each). `manifest` is the path of a manifest that was written.
    `warnings` has a sentence for each column with a note, `renaming` says which columns lost the
    service's name."""

    columns: list[dict[str, str]]
    row_count: int = 0
    first_rows: list[list[Any]] = field(default_factory=list)
    path: str | None = None
    format: RowFormat | None = None
    bytes: int | None = None
    sha256: str | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    manifest: str | None = None
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
    describe: Describe = dict,
) -> SavedRows:
    """Read a result to its end, and write it to a file, or files, where a path object is given.

    `pieces` are rows as the service sends them; what they raise leaves no file. `output` says how
    they are written. `max_rows` are kept to look at. Files are begun when all rows have come, since
    the last one may still change the type of a column, and since a result without rows may not be
    wanted: `path` of what is returned is None then. `writer` are eight hexadecimal digits for the
    task run; `describe` makes a manifest of the facts of the files.

    Raises ResultValueError, ResultEmptyError, ResultWriteError.
    """
    with no_full_collections(), RowBuffer(columns, types) as buffer:
        for rows in pieces:
            buffer.add(rows)
        typed = buffer.finish()
        saved = SavedRows(
            columns=[db_safe(column.described()) for column in typed],
            row_count=buffer.row_count,
            first_rows=db_safe(buffer.first_rows(typed, max_rows)),
            warnings=db_safe([item.warning for item in typed if item.warning is not None]),
        )
        names = [column.name for column in typed]
        saved.renaming = describe_renaming([item.get("name") for item in columns], names)
        if path is None:
            return saved
        if not saved.row_count and output.on_empty == "fail":
            raise ResultEmptyError(
                "No file was written: the result has no rows, and output_options has "
                "on_empty='fail'.",
                where=path,
            )
        if not saved.row_count and output.on_empty == "skip":
            return saved
        saved.path, saved.format = str(path), output.format
        if output.layout is None:
            _write_file(saved, typed, buffer, path, output, describe)
        else:
            _write_folder(saved, typed, buffer, path, output, writer, describe)
    return saved


def find_existing(
    path: Any, output: Output, written_by: Mapping[str, Any], writer: str
) -> dict[str, Any] | None:
    """Return what the manifest says of the files of others at this path, {} without one, and None
    if the place is free. Raises ResultWriteError if the storage does not answer.

    A task that must not overwrite asks before it runs its query. Files of an earlier try of the
    same task run do not count: a worker may be lost after its file is whole, and the retry would
    find that file.
    """
    if output.layout is None:
        if not is_there(path):
            return None
        manifest = read_manifest(file_manifest(path)) or {}
        return None if manifest.get("written_by") == dict(written_by) else manifest
    with writing(path):
        writers = {writer_of(name) for name in data_files(path)}
    others = writers - {writer}
    if not others:
        return None
    manifests = [read_manifest(folder_manifest(path, one)) for one in others if one is not None]
    return {"truncated": any(one and one.get("truncated") for one in manifests)}


def _write_file(
    saved: SavedRows,
    columns: list[Column],
    buffer: RowBuffer,
    path: Any,
    output: Output,
    describe: Describe,
) -> None:
    manifest = file_manifest(path)
    with whole_file(path) as file:
        rows = _new_writer(output)(file, columns)
        for piece in buffer.pieces():
            rows.write(piece)
        rows.finish()
        take_manifest_away(manifest)  # of another result
    saved.bytes, saved.sha256 = file.bytes, file.sha256
    wanted = output.manifest
    if wanted is None:  # an empty file of JSON Lines says nothing of its columns
        wanted = output.format == "jsonl" and not saved.row_count
    if wanted:
        only = DatasetFile(path.name, saved.row_count, file.bytes, file.sha256)
        _write_manifest(saved, [only], manifest, output, describe)


def _write_folder(
    saved: SavedRows,
    columns: list[Column],
    buffer: RowBuffer,
    folder: Any,
    output: Output,
    writer: str,
    describe: Describe,
) -> None:
    assert output.layout is not None  # noqa: S101 - for the type checker
    files = write_dataset(
        folder,
        columns,
        buffer.pieces(),
        layout=output.layout,
        ending=output.ending,
        writer=writer,
        new_writer=_new_writer(output),
    )
    saved.bytes = sum(file.bytes for file in files)
    saved.files = [{**asdict(file), "path": str(folder / file.path)} for file in files]
    _write_manifest(saved, files, folder_manifest(folder, writer), output, describe)


def _write_manifest(
    saved: SavedRows,
    files: list[DatasetFile],
    manifest: Any,
    output: Output,
    describe: Describe,
) -> None:
    facts = {
        "path": saved.path,
        "format": saved.format,
        "compression": output.compression,
        "partition_by": list(output.layout.partition_by) if output.layout else [],
        "columns": saved.columns,
        "row_count": saved.row_count,
        "bytes": saved.bytes,
        "files": [asdict(file) for file in files],
    }
    write_manifest(manifest, describe(facts))
    saved.manifest = str(manifest)


def _new_writer(output: Output) -> Callable[[OutputFile, list[Column]], RowWriter]:
    if output.format == "parquet":
        from airflow_provider_platform.results.files.parquet import ParquetWriter

        return partial(ParquetWriter, style=output.style)
    from airflow_provider_platform.results.files.text_files import CsvWriter, JsonLinesWriter

    writer = CsvWriter if output.format == "csv" else JsonLinesWriter
    return partial(writer, style=output.style)
