"""Rows of a result, kept until the types of all columns are known.

A column's type is decided by all of its values, and the last row may change it. So a result is read
to its end first: its rows are kept as texts, column by column, small results in memory and larger
ones in a temporary file without a name. Files are written afterwards, in one go, with types that do
not change any more. Memory holds the piece that has just come, whatever the size of the result.
"""

from __future__ import annotations

import gc
import marshal
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_platform.client.errors import ResultWriteError
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.results.columns import (
    MISSING,
    SEPARATOR,
    Column,
    ColumnTypes,
    TypeFinder,
    Types,
    type_finders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PIECE_ROWS = 2000
"""Rows that are kept and written together."""
MEMORY_BYTES = 32 << 20
"""Bytes of rows that are kept in memory; more of them go to a temporary file."""

NEVER = 2**31 - 1
"""So many collections of younger objects Python's garbage collector lets pass before a full one."""

Texts = list[str | None]

_lock = threading.Lock()
_users = 0
_before = gc.get_threshold()


@dataclass(frozen=True)
class _Stored:
    """Where the texts of one column of one piece are. `joined`: they have separators between them,
    and `missing` says whether some are None; else they are marshalled."""

    start: int
    length: int
    joined: bool
    missing: bool


class RowBuffer:
    """Rows that come, then the columns with their types, then the rows again.

    `columns` are `{"name", "type"}` each, as the service declares them. `add` takes rows as the
    service sends them, `finish` gives the columns, `pieces` gives the rows as columns of texts,
    which `Column` converts. A context manager; the rows are thrown away at its end.
    """

    def __init__(
        self, columns: Sequence[Mapping[str, str]], types: Types | ColumnTypes = "service"
    ) -> None:
        self._finders = type_finders(columns, types)
        self._file: Any = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115
        self._end = 0
        self._pieces: list[tuple[int, list[_Stored]]] = []
        self._waiting: list[Sequence[Any]] = []
        self.row_count = 0

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Keep rows. Raises ResultValueError for a misfit in strict mode, ResultWriteError if the
        temporary file cannot be written."""
        self._waiting.extend(rows)
        if len(self._waiting) >= PIECE_ROWS:
            kept = len(self._waiting) - len(self._waiting) % PIECE_ROWS
            for start in range(0, kept, PIECE_ROWS):
                self._keep(self._waiting[start : start + PIECE_ROWS])
            del self._waiting[:kept]

    def finish(self) -> list[Column]:
        """The columns, after the last row. Raises as `add`."""
        if self._waiting:
            self._keep(self._waiting)
            self._waiting = []
        for at, finder in enumerate(self._finders):
            while finder.unchecked:
                self._check_again(at, finder)
        return [finder.column() for finder in self._finders]

    def pieces(self) -> Iterator[list[Texts]]:
        """The rows, some thousand at a time, each piece as a list of columns."""
        for _, stored in self._pieces:
            yield [self._load(piece) for piece in stored]

    def first_rows(self, columns: Sequence[Column], rows: int) -> list[list[Any]]:
        """The first so many rows as plain JSON."""
        first: list[list[Any]] = []
        pieces = self.pieces()
        while (wanted := rows - len(first)) > 0 and (piece := next(pieces, None)) is not None:
            plain = [
                column.plain(texts[:wanted]) for column, texts in zip(columns, piece, strict=True)
            ]
            first += map(list, zip(*plain, strict=True))
        return first

    def close(self) -> None:
        """Throw the rows away."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _keep(self, rows: Sequence[Sequence[Any]]) -> None:
        columns = list(zip(*rows, strict=True))
        stored = [
            self._keep_column(finder, values)
            for finder, values in zip(self._finders, columns, strict=True)
        ]
        self._pieces.append((len(rows), stored))
        self.row_count += len(rows)

    def _keep_column(self, finder: TypeFinder, values: Sequence[Any]) -> _Stored:
        texts, joined, missing = values, None, False
        try:
            joined = SEPARATOR.join(values)
        except TypeError:  # something is missing, or not a text
            if not self._pieces:
                finder.guess(values)
            texts = finder.texts(values)
            missing = None in texts
            joined = SEPARATOR.join([MISSING if text is None else text for text in texts])
        if not _is_separable(joined, texts):
            joined = None
        finder.check(texts, joined, piece=len(self._pieces), first=self.row_count + 1)
        if joined is not None:
            data = joined.encode("utf-8", "replace")
        else:
            data = marshal.dumps([text and _storable(text) for text in texts])
        return self._write(data, joined=joined is not None, missing=missing)

    def _check_again(self, at: int, finder: TypeFinder) -> None:
        """Check the pieces that came before the type was tried."""
        pieces, finder.unchecked, first = finder.unchecked, 0, 1
        for number, (rows, stored) in enumerate(self._pieces[:pieces]):
            kind_before = finder.kind
            finder.check(self._load(stored[at]), None, piece=number, first=first)
            if finder.kind != kind_before:
                # A further type has to see everything, also what comes after these pieces.
                finder.unchecked = 0 if finder.kind == "String" else len(self._pieces)
                return
            first += rows

    def _write(self, data: bytes, *, joined: bool, missing: bool) -> _Stored:
        try:
            self._file.seek(self._end)
            self._file.write(data)
        except OSError as error:
            reason = quote_service(error.strerror or str(error))
            raise ResultWriteError(
                f"Rows could not be stored in the temporary folder: {reason}. A large result needs "
                "disk space there until its file is written. Free space, or set TMPDIR to "
                "another folder.",
                where=f"folder {tempfile.gettempdir()}",
            ) from error
        stored = _Stored(self._end, len(data), joined, missing)
        self._end += len(data)
        return stored

    def _load(self, stored: _Stored) -> Texts:
        self._file.seek(stored.start)
        data = self._file.read(stored.length)
        if not stored.joined:
            loaded: Texts = marshal.loads(data)  # noqa: S302 - our own, from a file without a name
            return loaded
        texts: Any = data.decode().split(SEPARATOR)
        return [None if text == MISSING else text for text in texts] if stored.missing else texts


def _is_separable(joined: str, texts: Sequence[str | None]) -> bool:
    """Whether the texts have no separator of their own in them."""
    if joined.count(SEPARATOR) != len(texts) - 1:
        return False
    marks = joined.count(MISSING)
    return not marks or marks == texts.count(None)


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Let the garbage collector look at new objects only. Every row is an object that it counts,
    so that it would look through all of Airflow some twenty times in a million rows: almost half of
    the time that they take. Blocks of several threads may overlap: the last one restores it."""
    global _users, _before
    with _lock:
        if not _users:
            _before = gc.get_threshold()
            gc.set_threshold(*_before[:2], NEVER)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                gc.set_threshold(*_before)
