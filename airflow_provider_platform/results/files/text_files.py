"""CSV and JSON Lines: a line for each row, written as it comes, compressed where that is asked."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_platform.results.columns import Column, Kind
    from airflow_provider_platform.results.files.atomic import OutputFile
    from airflow_provider_platform.results.files.format_and_options import FileStyle

_GZIP_LEVEL = 6
"""As gzip itself: level 9, Python's default, takes three times as long for one percent."""
_LINE_ENDS = {"lf": "\n", "crlf": "\r\n"}
_NEVER_IN_VALUES = frozenset(",;\t|")
"""Delimiters that are in no text of a number, a boolean or a time."""
_NUMBERS: tuple[Kind, ...] = ("Int64", "Double", "Decimal")
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How a text begins that a spreadsheet may run: after white space, and in wide characters, too."""
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class ByteStream(Protocol):
    """Takes bytes; `close` writes what they end with."""

    def write(self, data: bytes, /) -> Any:
        """Write bytes."""

    def close(self) -> None:
        """Write what is held back. What the bytes go to stays open."""


class CsvWriter:
    """RFC 4180: a header, then the rows. A missing value is nothing between two delimiters, an
    empty text is `""`. In a file of one column both are `""`."""

    def __init__(self, file: OutputFile, columns: Sequence[Column], style: FileStyle) -> None:
        self._file = _compressed(file, style)
        self._columns = columns
        self._delimiter = style.delimiter
        self._end = _LINE_ENDS[style.line_end]
        self._cells = [_cells_writer(column.kind, style) for column in columns]
        if style.encoding == "utf-8-sig":
            self._file.write(b"\xef\xbb\xbf")
        if style.header:
            cells = _cells_writer("String", style)
            self._write([cells([column.name]) for column in columns])

    def write(self, piece: Sequence[Sequence[str | None]]) -> None:
        """Write a piece of the rows, columns of texts. Raises ResultWriteError."""
        columns = zip(self._columns, self._cells, piece, strict=True)
        self._write([cells(column.texts(texts)) for column, cells, texts in columns])

    def finish(self) -> None:
        """The end of the rows."""
        self._file.close()

    def _write(self, columns: Sequence[Iterable[str]]) -> None:
        rows = map(self._delimiter.join, zip(*columns, strict=True))
        # Many programs skip an empty line, which a row of one missing value would be.
        lines = [row or '""' for row in rows]
        lines.append("")
        self._file.write(self._end.join(lines).encode("utf-8", "replace"))


class JsonLinesWriter:
    """An object for each row, by the names of the columns."""

    def __init__(self, file: OutputFile, columns: Sequence[Column], style: FileStyle) -> None:
        self._file = _compressed(file, style)
        self._columns = columns
        names = [json.dumps(column.name, ensure_ascii=False) for column in columns]
        cells = ",".join(name.replace("%", "%%") + ":%s" for name in names)
        self._line = "{" + cells + "}\n"

    def write(self, piece: Sequence[Sequence[str | None]]) -> None:
        """Write a piece of the rows, columns of texts. Raises ResultWriteError."""
        columns = zip(self._columns, piece, strict=True)
        rows = zip(*(column.json_texts(texts) for column, texts in columns), strict=True)
        lines = [self._line % row for row in rows]
        self._file.write("".join(lines).encode("utf-8", "backslashreplace"))

    def finish(self) -> None:
        """The end of the rows."""
        self._file.close()


def _compressed(file: OutputFile, style: FileStyle) -> ByteStream:
    """The file, or what compresses into it; the same bytes make the same file, whenever."""
    if style.compression == "gzip":
        options: Any = {"mode": "wb", "compresslevel": _GZIP_LEVEL, "fileobj": file, "mtime": 0}
        return gzip.GzipFile("", **options)
    if style.compression == "zstd":
        import pyarrow as pa

        stream: ByteStream = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")
        return stream
    return file


def _cells_writer(
    column_kind: Kind, style: FileStyle
) -> Callable[[Sequence[str | None]], Iterable[str]]:
    """What makes cells of the texts of values of this kind. In nearly every column no text needs
    quotes, and that is quicker to see for all texts together than for each."""
    delimiter = style.delimiter
    is_safe = not style.csv_safe or column_kind != "String"
    always = style.quoting == "all" or (
        style.quoting == "nonnumeric" and column_kind not in _NUMBERS
    )
    never = column_kind != "String" and delimiter in _NEVER_IN_VALUES

    def cell(text: str | None) -> str:
        if text is None:
            return ""
        if not is_safe:
            text = _without_formula(text)
        if always or not text or _has_special(text, delimiter) or text != text.strip():
            return '"' + text.replace('"', '""') + '"'
        return text

    def cells(texts: Sequence[str | None]) -> Iterable[str]:
        if always or not is_safe:
            return map(cell, texts)
        present = [text for text in texts if text is not None]
        if not (never or _are_plain(present, delimiter)):
            return map(cell, texts)
        return present if len(present) == len(texts) else [text or "" for text in texts]

    return cells


def _are_plain(texts: list[str], delimiter: str) -> bool:
    """Whether none of the texts needs quotes."""
    return (
        all(texts)
        and not _has_special("".join(texts), delimiter)
        and [*map(str.strip, texts)] == texts
    )


def _has_special(text: str, delimiter: str) -> bool:
    return delimiter in text or '"' in text or "\n" in text or "\r" in text


def _without_formula(text: str) -> str:
    """The text, after an apostrophe where a spreadsheet would take it for a formula."""
    if _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text):
        return "'" + text
    return text
