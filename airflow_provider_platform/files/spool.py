"""All rows of a result, kept until the types of all columns are known, then typed by pyarrow.

A column's type is decided by all of its values, and the last row may change it. So the rows wait as
texts in an Arrow IPC stream, small results in memory and larger ones in a temporary file without a
name, and are cast when they are read. Memory holds one batch, whatever the size of the result.

pyarrow reads a batch of texts at once. It accepts some texts that `types` refuses, and the reverse.
So it gets only batches whose characters are those of the type's usual form and whose values are in
range; the readers of `types` read any other batch one value at a time.
"""

from __future__ import annotations

import gc
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_platform.client.errors import ResultWriteError
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.files.types import (
    LONG_DECIMAL,
    Column,
    ColumnTypes,
    Kind,
    TypeFinder,
    Types,
    digits_of,
    plain_rows,
    type_finders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BATCH_ROWS = 10_000
"""Rows that are kept and read together."""
MEMORY_BYTES = 32 << 20
"""Bytes of rows that are kept in memory; more of them go to a temporary file."""

_TYPES: dict[Kind, Any] = {
    "Int64": pa.int64(),
    "Double": pa.float64(),
    "Boolean": pa.bool_(),
    "Date": pa.date32(),
    "Timestamp": pa.timestamp("us"),
    "String": pa.string(),
}
_USUAL: dict[Kind, bytes] = {
    "Int64": b"-0123456789",
    "Double": b"+-.0123456789eE",
    "Decimal": b"-.0123456789",
    "Boolean": b"aeflrstu",
    "Date": b"-0123456789",
    "Timestamp": b"-.:0123456789T ",
}
"""The characters of the usual texts of each type."""
_FIRST_DAY = -719_162
"""0001-01-01, the first day that Python knows, in days from 1970."""


class Spool:
    """Rows that come, then the columns with their types, then the rows again as Arrow batches.

    `columns` are `{"name", "type"}` each, as the service declares them. A context manager; the
    rows are thrown away at its end.
    """

    def __init__(
        self, columns: Sequence[Mapping[str, str]], types: Types | ColumnTypes = "service"
    ) -> None:
        self._finders = type_finders(columns, types)
        self._schema = pa.schema([(str(number), pa.string()) for number in range(len(columns))])
        self._file: Any = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115
        self._sink = pa.PythonFile(self._file, "w")
        self._writer = pa.ipc.new_stream(self._sink, self._schema)
        self._waiting: list[Sequence[Any]] = []
        self.row_count = 0

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Keep rows. Raises ResultValueError for a value that does not fit in strict mode,
        ResultWriteError if the temporary file cannot be written."""
        self._waiting.extend(rows)
        while len(self._waiting) >= BATCH_ROWS:
            self._keep(self._waiting[:BATCH_ROWS])
            del self._waiting[:BATCH_ROWS]

    def finish(self) -> list[Column]:
        """The columns, after the last row. Raises as `add`."""
        if self._waiting:
            self._keep(self._waiting)
            self._waiting = []
        with _writing():
            self._writer.close()
        return [finder.column() for finder in self._finders]

    def first_rows(self, columns: Sequence[Column], rows: int) -> list[list[Any]]:
        """The first so many rows as plain JSON."""
        first: list[list[Any]] = []
        for batch in self._batches():
            if len(first) >= rows:
                break
            texts = [column.slice(0, rows - len(first)).to_pylist() for column in batch.columns]
            first += plain_rows(columns, zip(*texts, strict=True))
        return first

    def batches(self, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        """The rows with their types."""
        schema = arrow_schema(columns)
        for batch in self._batches():
            arrays = [
                typed_array(column, texts)
                for column, texts in zip(columns, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def table(self, columns: Sequence[Column]) -> pa.Table:
        """All rows with their types, in one piece of memory for each column."""
        batches = self.batches(columns)
        return pa.Table.from_batches(batches, schema=arrow_schema(columns)).combine_chunks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def _keep(self, rows: Sequence[Sequence[Any]]) -> None:
        arrays = []
        for finder, values in zip(self._finders, zip(*rows, strict=True), strict=True):
            try:
                array = pa.array(values, pa.string())
            except (pa.ArrowException, TypeError, UnicodeError):  # not all of them are texts
                array = pa.array(finder.texts(values), pa.string())
            if not _take_usual(finder, array):
                finder.take(array.to_pylist(), self.row_count + 1)
            arrays.append(array)
        with _writing():
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self.row_count += len(rows)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self._file.seek(0)
        source = pa.PythonFile(self._file, "r")
        yield from pa.ipc.open_stream(source)


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The pyarrow schema of columns."""
    return pa.schema([(column.name, arrow_type(column)) for column in columns])


def arrow_type(column: Column) -> Any:
    """The pyarrow type of a column."""
    if column.kind == "Decimal":
        return pa.decimal128(column.precision, column.scale)
    return _TYPES[column.kind]


def typed_array(column: Column, texts: pa.Array) -> pa.Array:
    """The texts of a column as an array of the column's type."""
    if column.kind == "String":
        return texts
    wanted = arrow_type(column)
    array = _usual_array(column.kind, texts, wanted)
    if array is None:
        array = pa.array([column.value(text) for text in texts.to_pylist()], wanted)
    return array


def _take_usual(finder: TypeFinder, texts: pa.Array) -> bool:
    """Take a batch of a column at once. Return False if that cannot be."""
    kind = finder.kind
    if kind == "String" or texts.null_count == len(texts):
        return True
    scale = 0
    wanted = _TYPES.get(kind)
    if wanted is None:
        dots = pc.find_substring(texts, ".")
        behind = pc.subtract(pc.subtract(pc.binary_length(texts), dots), 1)
        scale = pc.max(pc.if_else(pc.less(dots, 0), 0, behind)).as_py()
        precision, scale = finder.size or (LONG_DECIMAL, scale)
        if scale > LONG_DECIMAL:
            return False
        wanted = pa.decimal128(precision, scale)
    array = _usual_array(kind, texts, wanted)
    if array is None:
        return False
    if kind in ("Int64", "Decimal"):
        ends = pc.min_max(array).as_py().values()
        whole = max(len(str(abs(end))) if kind == "Int64" else digits_of(end)[0] for end in ends)
        return finder.take_digits(whole, scale)
    if kind == "Timestamp":
        try:
            array.cast(pa.timestamp("ms"))
        except pa.ArrowInvalid:
            finder.take_microseconds()
    return True


def _usual_array(kind: Kind, texts: pa.Array, wanted: Any) -> pa.Array | None:
    """The texts as an array, or None if pyarrow could read one of them in another way than
    `types`."""
    data = texts.buffers()[2]
    # A buffer that was read from a stream may end with zeros.
    if data is not None and data.to_pybytes().translate(None, _USUAL[kind] + b"\0"):
        return None
    if kind == "Decimal" and (pc.max(pc.binary_length(texts)).as_py() or 0) > LONG_DECIMAL:
        return None  # more digits than that wrap around
    try:
        array = texts.cast(wanted)
    except pa.ArrowInvalid:
        return None
    if kind == "Double" and pc.any(pc.is_inf(array)).as_py():
        return None
    if kind in ("Date", "Timestamp"):
        first = pc.min(array.cast(pa.date32()).cast(pa.int32())).as_py()
        if first is not None and first < _FIRST_DAY:
            return None
    return array


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = quote_service(error.strerror or str(error))
        raise ResultWriteError(
            f"Rows could not be stored in the temporary folder: {reason}. A large result needs "
            "disk space there until its file is written. Free space, or set TMPDIR to "
            "another folder.",
            where=f"folder {tempfile.gettempdir()}",
        ) from error


@contextmanager
def objects_frozen() -> Iterator[None]:
    """Let the garbage collector pass over all objects that exist now. Every row is an object that
    it counts, so that it would look through all of Airflow some twenty times in a million rows:
    almost half of the time that they take."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
