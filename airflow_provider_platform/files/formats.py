"""The rows of a result in a format: Parquet, CSV or JSON Lines, in one file or in several.

Several files are Hive partitions, files of a bounded number of rows, or both. pyarrow's datasets
sort the rows into files of a temporary folder first, and then one file after the other is written
to its place. A partition is replaced as a whole: the files that this package wrote there before, in
whatever run, are removed when the new ones are in place. Other files are never touched.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.files.spool import arrow_schema
from airflow_provider_platform.files.types import plain_double
from airflow_provider_platform.files.whole_files import files_below, remove, whole_file, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from airflow_provider_platform.files.options import Output
    from airflow_provider_platform.files.types import Column
    from airflow_provider_platform.files.whole_files import OutputFile


ROW_GROUP = 100_000
"""Rows of a Parquet row group."""
MAX_PARTITIONS = 10_000
"""Years of days have fewer. More are a slip: a column with too many values."""

_DATA_FILE = re.compile(r"part-(?P<writer>[0-9a-f]{8})-\d{5,}\.[a-z.]+")
_UNSEEN = r"[\s\p{Z}\p{C}\p{M}\x{115f}\x{1160}\x{2800}\x{3164}\x{ffa0}]"
_FORMULA = rf"^({_UNSEEN}*[=+\-@\x{{ff1d}}\x{{ff0b}}\x{{ff0d}}\x{{ff20}}]|[\t\r\n])"
"""How a text begins that a spreadsheet may run: also after characters that nobody sees, and in wide
characters."""
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
        if len(parts) > MAX_PARTITIONS:
            raise _too_many_partitions()
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
                max_partitions=MAX_PARTITIONS,  # of one batch: `write_folder` counts all
                **options,
            )
        except pa.ArrowInvalid as error:
            if "partitions" not in str(error):
                raise
            raise _too_many_partitions() from error


def _too_many_partitions() -> ResultValueError:
    return ResultValueError(
        f"The result has more than {MAX_PARTITIONS} partitions: a column of partition_by has too "
        "many values. Choose another column."
    )


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
