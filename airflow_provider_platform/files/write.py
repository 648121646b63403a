"""The rows of a result as one file, as several files or as a part of XCom.

A file is Parquet, CSV or JSON Lines. Several files are Hive partitions, files of a bounded number
of rows, or both. pyarrow's datasets sort the rows into files of a temporary folder first, and then
one file after the other is written to its place. A partition is replaced as a whole: the files that
this package wrote there before, in whatever run, are removed when the new ones are in place. Other
files are never touched.

A file's name comes from the task that writes it and the number of the query. It is safe in every
storage and the same for every try, so that a retry overwrites its own file; two tasks never share
one. The titles that an agent writes are not in it.

XCom is a column of Airflow's database, and every task that reads the result loads it as a whole. A
limit of rows does not bound it: a hundred rows can be megabytes. So XCom gets the first rows that
fit into a number of bytes as JSON, and fewer if a file has them all.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from airflow_provider_platform.client.choices import MAX_ROWS
from airflow_provider_platform.client.errors import ResultEmptyError, ResultValueError
from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.files.options import PARQUET, Output
from airflow_provider_platform.files.spool import arrow_schema
from airflow_provider_platform.files.store import files_below, is_there, remove, whole_file, writing
from airflow_provider_platform.files.types import TypedRows, describe_renaming, plain_double

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from airflow_provider_platform.client.choices import RowFormat
    from airflow_provider_platform.files.options import Output
    from airflow_provider_platform.files.spool import Spool
    from airflow_provider_platform.files.store import OutputFile
    from airflow_provider_platform.files.types import Column, ColumnTypes, Types


ROW_GROUP = 100_000
"""Rows of a Parquet row group."""
MAX_PARTITIONS = 1024
"""More partitions than that are a slip: a column with too many values."""

_DATA_FILE = re.compile(r"part-(?P<writer>[0-9a-f]{8})-\d{5,}\.[a-z.]+")
_FORMULA = r"^([\s\p{Z}]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|[\t\r\n])"
"""How a text begins that a spreadsheet may run: after white space, and in wide characters, too."""
_PLAIN_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


def write_file(
    path: Any, columns: Sequence[Column], batches: Iterable[pa.RecordBatch], output: Output
) -> OutputFile:
    """Write rows into one file; returns its size and digest. Raises ResultWriteError."""
    with whole_file(path) as file:
        if output.format == "parquet":
            _write_parquet(file, arrow_schema(columns), batches, output)
        else:
            out: Any = pa.PythonFile(file, "w")
            if output.compression not in (None, "none"):
                out = pa.CompressedOutputStream(out, output.compression)
            if output.format == "csv":
                _write_csv(out, columns, batches, output)
            else:
                _write_json_lines(out, columns, batches)
            out.close()
    return file


def write_folder(
    folder: Any,
    columns: Sequence[Column],
    batches: Iterable[pa.RecordBatch],
    output: Output,
    writer: str,
) -> list[dict[str, Any]]:
    """Write rows into the files of a folder; returns `path`, `rows`, `bytes` and `sha256` of each.

    `writer` are eight hexadecimal digits that stand for the task run. A partitioned result without
    rows has no files. Raises ResultValueError, ResultWriteError.
    """
    by, kept = _partition_columns(columns, output)
    with tempfile.TemporaryDirectory(prefix="airflow-platform-") as temporary:
        _sort_into_files(temporary, columns, batches, output)
        parts: dict[str, list[Path]] = {}
        for part in Path(temporary).rglob("*.arrow"):
            name = part.parent.relative_to(temporary).as_posix().removeprefix(".")
            parts.setdefault(name, []).append(part)
        if not parts and not by:
            parts = {"": []}
        files = []
        for name, found in sorted(parts.items()):
            found.sort(key=lambda part: int(part.stem))
            for number, source in enumerate(found or [None], start=1):
                relative = f"{name}/" if name else ""
                path = folder / f"{relative}part-{writer}-{number:05d}.{output.ending}"
                rows = [0]
                file = write_file(path, kept, _counted(_read(source), rows), output)
                sizes = {"rows": rows[0], "bytes": file.bytes, "sha256": file.sha256}
                files.append({"path": str(path), **sizes})
    _remove_others(folder, {*parts}, {str(file["path"]) for file in files})
    return files


def is_data_of_others(folder: Any, writer: str) -> bool:
    """Whether a folder has files that readers of datasets take for data, other than those of this
    writer. Raises ResultWriteError."""
    for path in files_below(folder):
        match = _DATA_FILE.fullmatch(path.rpartition("/")[2])
        is_read = not any(part[:1] in "_." for part in path.split("/"))
        if is_read and (match is None or match["writer"] != writer):
            return True
    return False


def _partition_columns(
    columns: Sequence[Column], output: Output
) -> tuple[list[Column], list[Column]]:
    """The columns of the folders' names, and those of the files. Raises ResultValueError."""
    names = [column.name for column in columns]
    for name in output.partition_by:
        if name not in names:
            raise ResultValueError(
                f"partition_by contains the column {name!r}, which the result does not have. The "
                f"result's columns are {', '.join(map(repr, names))}.",
                column=name,
            )
    if len(output.partition_by) == len(names):
        raise ResultValueError(
            "partition_by contains all columns of the result, so no column is left for the files."
        )
    by = [columns[names.index(name)] for name in output.partition_by]
    return by, [column for column in columns if column not in by]


def _sort_into_files(
    folder: str, columns: Sequence[Column], batches: Iterable[pa.RecordBatch], output: Output
) -> None:
    """Write the rows of each file into an Arrow file of a local folder."""
    by = output.partition_by
    as_text = [column for column in columns if column.name in by]
    schema = pa.schema(
        (field.name, pa.string() if field.name in by else field.type)
        for field in arrow_schema(columns)
    )

    def with_names() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = {name: batch.column(name) for name in schema.names}
            for column in as_text:
                arrays[column.name] = _as_text(column, arrays[column.name])
            yield pa.RecordBatch.from_arrays([*arrays.values()], schema=schema)

    options: dict[str, Any] = {"partitioning_flavor": "hive", "partitioning": [*by]} if by else {}
    if output.max_rows_per_file is not None:
        most = output.max_rows_per_file
        options |= {"max_rows_per_file": most, "max_rows_per_group": min(most, ROW_GROUP)}
    if int(pa.__version__.partition(".")[0]) >= 21:  # older ones may mix the rows of a file
        options["preserve_order"] = True
    with writing(f"the temporary folder {folder}"):
        try:
            pa.dataset.write_dataset(
                pa.RecordBatchReader.from_batches(schema, with_names()),
                folder,
                format="ipc",
                basename_template="{i}.arrow",
                use_threads=False,
                max_partitions=MAX_PARTITIONS,
                **options,
            )
        except pa.ArrowInvalid as error:
            if "partitions" not in str(error):
                raise
            raise ResultValueError(
                f"The result has more than {MAX_PARTITIONS} partitions: a column of partition_by "
                "has too many values. Choose another column."
            ) from error


def _read(source: Path | None) -> Iterator[pa.RecordBatch]:
    if source is not None:
        with pa.OSFile(str(source)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def _counted(batches: Iterable[pa.RecordBatch], rows: list[int]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows[0] += batch.num_rows
        yield batch


def _remove_others(folder: Any, partitions: set[str], written: set[str]) -> None:
    for path in files_below(folder):
        place, _, name = path.rpartition("/")
        if place in partitions and _DATA_FILE.fullmatch(name) and str(folder / path) not in written:
            remove(folder / path)


def _write_parquet(
    file: OutputFile, schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Output
) -> None:
    compression = output.compression or "snappy"
    with pa.parquet.ParquetWriter(file, schema, compression=compression) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(len(one) for one in waiting) >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(waiting), row_group_size=ROW_GROUP)
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting), row_group_size=ROW_GROUP)


def _write_csv(
    out: Any, columns: Sequence[Column], batches: Iterable[pa.RecordBatch], output: Output
) -> None:
    """A header, then the rows. A missing value is nothing between two delimiters, an empty text is
    `""`. In a file of one column both are `""`: many programs skip an empty line."""
    if output.encoding == "utf-8-sig":
        out.write(b"\xef\xbb\xbf")
    names = pa.array([column.name for column in columns])
    names = _without_formulas(names).to_pylist() if output.csv_safe else names.to_pylist()
    schema = pa.schema(
        [(name, _csv_type(column)) for name, column in zip(names, columns, strict=True)]
    )
    if len(columns) == 1:
        schema = pa.schema([(names[0], pa.string())])
    options = pa.csv.WriteOptions(delimiter=output.delimiter)
    with pa.csv.CSVWriter(out, schema, write_options=options) as writer:
        for batch in batches:
            arrays = []
            for column, array in zip(columns, batch.columns, strict=True):
                cells = array.cast(_csv_type(column))
                if output.csv_safe and column.kind == "String":
                    cells = _without_formulas(cells)
                arrays.append(cells.cast(pa.string()).fill_null("") if len(columns) == 1 else cells)
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _csv_type(column: Column) -> Any:
    [field] = arrow_schema([column])
    if column.kind == "Timestamp":
        return pa.timestamp("ms" if column.fraction == 3 else "us")
    return field.type


def _without_formulas(texts: pa.Array) -> pa.Array:
    """The texts, after an apostrophe where a spreadsheet would take one for a formula."""
    is_formula = pc.and_not(
        pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _PLAIN_NUMBER)
    )
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)


def _write_json_lines(
    out: Any, columns: Sequence[Column], batches: Iterable[pa.RecordBatch]
) -> None:
    """An object for each row, by the names of the columns; values as in XCom."""
    names = [column.name for column in columns]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for batch in batches:
        values = [
            _plain(column, array) for column, array in zip(columns, batch.columns, strict=True)
        ]
        lines = [encode(dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]
        out.write("".join(f"{line}\n" for line in lines).encode())


def _plain(column: Column, array: pa.Array) -> list[Any]:
    """The values of a column as `Column.plain` gives them."""
    if column.kind in ("Date", "Decimal", "Timestamp"):
        array = _as_text(column, array)
    values: list[Any] = array.to_pylist()
    return list(map(plain_double, values)) if column.kind == "Double" else values


def _as_text(column: Column, array: pa.Array) -> pa.Array:
    """The values of a column as texts."""
    if column.kind == "Decimal":
        texts = [None if value is None else format(value, "f") for value in array.to_pylist()]
        return pa.array(texts, pa.string())
    if column.kind == "Timestamp":
        return pc.replace_substring(array.cast(_csv_type(column)).cast(pa.string()), " ", "T")
    return array.cast(pa.string())


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

    batches = spool.batches(columns)
    if output.is_folder:
        saved.files = write_folder(path, columns, batches, output, writer)
        saved.bytes = sum(file["bytes"] for file in saved.files)
    else:
        file = write_file(path, columns, batches, output)
        saved.bytes, saved.sha256 = file.bytes, file.sha256


_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+")
MAX_NAME = 80
"""Characters of a name that are kept before its digest."""


def task_folder(
    dag_id: str, run_id: str, task_id: str, map_index: int = -1, loop_pass: str | None = None
) -> str:
    """The folder of a task in a run, as `dag/run/task`, with one more for a pass of a loop, and one
    more for a mapped task."""
    parts = [safe(dag_id), safe(run_id), safe(task_id)]
    if loop_pass is not None:
        parts.append(safe(loop_pass))
    if map_index >= 0:
        parts.append(str(map_index))
    return "/".join(parts)


def writer_id(
    dag_id: str, run_id: str, task_id: str, map_index: int = -1, loop_pass: str | None = None
) -> str:
    """Eight hexadecimal digits for a task of a run, the same for every try."""
    name = "\0".join((dag_id, run_id, task_id, str(map_index), loop_pass or ""))
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def query_name(number: int, ending: str) -> str:
    """The file of a query, counted from 1."""
    return f"query-{number}.{ending}"


def safe(name: str) -> str:
    """A name without anything that a storage takes for more than a letter. What had to be changed
    ends with a digest of what it was, so that different names stay different."""
    kept = _UNSAFE.sub("-", name).strip(".-")[:MAX_NAME]
    if kept and kept == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kept}-{digest}" if kept else digest


XCOM_BYTES = 256 * 1024
"""Bytes that the rows of a result take in XCom at most, if nothing else is said."""
XCOM_BYTES_WITH_FILE = 16 * 1024
"""The same where a file has the rows too."""


def xcom_bytes(wanted: int | None, *, in_file: bool) -> int:
    """The bytes that rows may take: what the author wants, else the default."""
    if wanted is not None:
        return wanted
    return XCOM_BYTES_WITH_FILE if in_file else XCOM_BYTES


def rows_that_fit(rows: list[list[Any]], most: int) -> list[list[Any]]:
    """The first of these rows that take at most `most` bytes together, as the JSON that is
    stored."""
    left = most
    for number, row in enumerate(rows):
        left -= _size(row)
        if left < 0:
            return rows[:number]
    return rows


def fit_queries(queries: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """The queries of a chat's result with rows that take at most `most` bytes together. What small
    queries leave is for larger ones."""
    sizes = [sum(map(_size, query["rows"])) for query in queries]
    fitting, left = [*queries], most
    by_size = sorted(range(len(queries)), key=sizes.__getitem__)
    for done, at in enumerate(by_size):
        share = left // (len(queries) - done)
        query = queries[at]
        rows = query["rows"] if sizes[at] <= share else rows_that_fit(query["rows"], share)
        if len(rows) < len(query["rows"]):
            fitting[at] = {**query, "rows": rows}
        left -= min(sizes[at], share)
    return fitting


def _size(row: list[Any]) -> int:
    return len(json.dumps(row)) + len(", ")
