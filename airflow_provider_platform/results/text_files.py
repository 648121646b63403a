"""CSV and JSON Lines: a line for each row, written as it comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.results.columns import Column, plain, read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.results.atomic_files import OutputFile

_QUOTED = frozenset(',"\r\n')


class CsvWriter:
    """RFC 4180 with `\\n` as line end: a header, then the rows. A missing value is nothing between
    two commas, an empty text is `""`."""

    def __init__(self, file: OutputFile, columns: Sequence[Column]) -> None:
        self._file = file
        self._columns = columns
        self._rows = 0
        self._write([[column.name for column in columns]])

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows. Raises ResultValueError, ResultWriteError."""
        self._write(read_rows(self._columns, rows, self._rows + 1))
        self._rows += len(rows)

    def finish(self) -> None:
        """The end of the rows."""

    def _write(self, rows: list[list[Any]]) -> None:
        lines = [",".join(map(_cell, row)) + "\n" for row in rows]
        self._file.write("".join(lines).encode("utf-8", "replace"))


class JsonLinesWriter:
    """An object for each row, by the names of the columns."""

    def __init__(self, file: OutputFile, columns: Sequence[Column]) -> None:
        self._file = file
        self._columns = columns
        self._names = [column.name for column in columns]
        self._rows = 0

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows. Raises ResultValueError, ResultWriteError."""
        typed = read_rows(self._columns, rows, self._rows + 1)
        self._rows += len(rows)
        self._file.write("".join(map(self._line, typed)).encode("utf-8", "backslashreplace"))

    def finish(self) -> None:
        """The end of the rows."""

    def _line(self, row: list[Any]) -> str:
        values = dict(zip(self._names, map(plain, row), strict=True))
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(plain(value))
    if not text or not _QUOTED.isdisjoint(text) or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text
