"""The data API's response to SQL, read while it arrives: a line with the columns, lines with rows,
perhaps one with an error.

A deployment that does not stream sends the whole result as one line, `{"data": [[...], ...]}`. Such
a line is kept until it is complete (at most `MAX_LINE_BYTES`) and then decoded row by row: neither
all its rows as Python values are in memory at once, nor does an event loop wait for all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from airflow_provider_platform.client.errors import (
    DataQueryError,
    DataQueryTimeoutError,
    PlatformAddressError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.json_text import (
    read_unchecked_json,
    replace_surrogates,
)
from airflow_provider_platform.client.ndjson import LineReader, parse_line
from airflow_provider_platform.client.service_text import quote_service
from airflow_provider_platform.client.service_types import type_name
from airflow_provider_platform.client.timeout_errors import TIME_OUT_ADVICE, says_time_out

CONTINUE_WAIT = "continue wait"
CHUNK_ROWS = 1000
"""Rows that are enough for a chunk. Many more are slower: what was read leaves the processor's
cache before it is used."""
MAX_LINE_BYTES = 128 * 1024 * 1024
LONG_LINE_BYTES = 1024 * 1024
"""A longer line is decoded row by row."""
BEGUN_BYTES = 64 * 1024
"""A line that is longer holds rows: errors are shorter."""

_LISTS, _PLAIN = {list}, {str, bool, type(None)}
_DECODER = json.JSONDecoder()
_BEFORE_ROWS = re.compile(r'\s*\{\s*"data"\s*:\s*\[\s*')
_BETWEEN_ROWS = re.compile(r"\s*,\s*")


@dataclass(frozen=True)
class SqlColumns:
    """The columns of the result: `{"name", "type"}` each."""

    columns: list[dict[str, str]]


@dataclass(frozen=True)
class SqlChunk:
    """Some rows of the result, in order. A chunk without rows says that rows arrive."""

    rows: list[list[Any]]


@dataclass(frozen=True)
class SqlOpenEnd:
    """The rows end where the connection was closed, and the protocol does not say that all of them
    have come: some may be missing."""


class SqlResponse:
    """The lines of one response, each of them checked; `where` ends the message of errors."""

    def __init__(self, where: str = "", max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._where = where
        self._max = max_line_bytes
        self._lines = LineReader(max_line_bytes, max_containers=max_line_bytes)
        self._long_line = False
        self.columns: list[dict[str, str]] | None = None
        self.still_runs = False

    @property
    def begun(self) -> bool:
        """Whether the result has begun to arrive."""
        return self.columns is not None or self._long_line

    def feed(self, data: bytes) -> Iterator[SqlColumns | SqlChunk]:
        """What a piece of the response brings, each read when it is asked for. Raises
        DataQueryError for an error line (DataQueryTimeoutError if it names a time limit),
        PlatformProtocolError for a line that is none of these or too long."""
        try:
            lines = self._lines.feed(data)
        except PlatformProtocolError:
            raise PlatformProtocolError(
                f"The data API sent a line of more than {self._max // 2**20} MB, which is not "
                "read. Read the result in pages with page_by and page_rows, or select fewer "
                "columns.",
                where=self._where,
            ) from None
        yield from _together(event for line in lines for event in self._take(*line))
        if self._lines.pending_bytes > BEGUN_BYTES and not self._long_line:
            self._long_line = True
            yield SqlChunk([])

    def finish(self) -> Iterator[SqlColumns | SqlChunk]:
        """What the last line brings, at the end of the response. Raises PlatformTransportError
        where it was cut."""
        try:
            if line := self._lines.rest():
                yield from self._take(line, self._lines.lines_seen + 1)
        except PlatformProtocolError as error:
            raise PlatformTransportError(
                "The data API's response was cut off. Run the query again.", where=self._where
            ) from error
        if self.columns is None and not self.still_runs:
            raise PlatformTransportError(
                "The data API's response ended before the first row. Run the query again.",
                where=self._where,
            )

    def _take(self, line: bytes, number: int) -> Iterator[SqlColumns | SqlChunk]:
        if self.columns is None and line.startswith(b"<"):
            raise PlatformAddressError(
                "The data API's address returned a web page instead of rows. Check Data API "
                "address (data_api_url) in the connection, or the deployment's address in the "
                "platform.",
                where=self._where,
            )
        for value in _values(line, number):
            document = value if isinstance(value, dict) else {}
            if document.get("error"):
                self._take_error(document["error"])
                continue
            rows = document.get("data")
            if isinstance(document.get("schema"), list):
                yield self._take_columns(document["schema"], number)
                if not rows:
                    continue
            yield self._chunk(rows, number)

    def _take_columns(self, schema: list[Any], number: int) -> SqlColumns:
        columns = [_column(column) for column in schema]
        if self.columns is not None and columns != self.columns:
            raise self._broken(number, "has different columns than the previous rows")
        self.columns = columns
        return SqlColumns(columns)

    def _chunk(self, rows: Any, number: int) -> SqlChunk:
        if not isinstance(rows, list) or self.columns is None:
            raise self._broken(number, "contains neither columns nor rows nor an error")
        width = len(self.columns)
        if not ({*map(type, rows)} <= _LISTS and {*map(len, rows)} <= {width}):
            raise self._broken(number, f"has a row that does not have exactly {width} values")
        return SqlChunk(rows)

    def _take_error(self, error: Any) -> None:
        said = quote_service(error)
        if CONTINUE_WAIT in said.lower() and self.columns is None:
            self.still_runs = True
            return
        if says_time_out(error):
            raise DataQueryTimeoutError(
                f"The query timed out: {said.removesuffix('.')}. {TIME_OUT_ADVICE}",
                where=self._where,
            )
        raise DataQueryError(f"The query failed: {said.removesuffix('.')}.", where=self._where)

    def _broken(self, number: int, problem: str) -> PlatformProtocolError:
        return PlatformProtocolError(
            f"Line {number} of the data API's response {problem}.", where=self._where
        )


def _values(line: bytes, number: int) -> Iterator[Any]:
    """The JSON value of a line. A long line of rows gives several values, as if its rows had come
    in several lines. Raises PlatformProtocolError."""
    try:
        text = line.decode() if len(line) > LONG_LINE_BYTES else ""
    except UnicodeDecodeError:
        text = ""
    start = _BEFORE_ROWS.match(text)
    if start is None:
        yield _read(line, number)
        return
    rows: list[Any] = []
    begin = at = start.end()
    while True:
        try:
            row, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        after = _BETWEEN_ROWS.match(text, end)
        if after is None:
            break
        rows.append(row)
        at = after.end()
        if len(rows) == CHUNK_ROWS:
            part = text[begin:end]
            plain = "\\u" not in part and _are_plain(rows)
            yield {"data": rows} if plain else _read(f'{{"data":[{part}]}}'.encode(), number)
            rows, begin = [], at
    # The last rows, and what follows them; if a row is wrong, this says where.
    yield _read(f'{{"data":[{text[begin:]}'.encode(), number)


def _read(line: bytes, number: int) -> Any:
    """The JSON value of a line. Nearly every line holds nothing but rows of texts, booleans and
    nulls; its numbers, depth and surrogates need no look."""
    try:
        value = read_unchecked_json(line)
    except ValueError:
        value = None
    if isinstance(value, dict) and [*value] == ["data"] and _are_plain(value["data"]):
        return value
    return replace_surrogates(parse_line(line, number))


def _are_plain(rows: Any) -> bool:
    return (
        isinstance(rows, list)
        and {*map(type, rows)} <= _LISTS
        and {*map(type, chain.from_iterable(rows))} <= _PLAIN
    )


def _together(events: Iterable[SqlColumns | SqlChunk]) -> Iterator[SqlColumns | SqlChunk]:
    """The same with short chunks put together: a service that streams may send a line for each row,
    and every event has to reach the caller's thread. What came before an error goes before it."""
    rows: list[list[Any]] | None = None
    try:
        for event in events:
            if isinstance(event, SqlColumns):
                yield event
                continue
            if rows is None:
                rows = event.rows
            else:
                rows.extend(event.rows)
            if len(rows) >= CHUNK_ROWS:
                yield SqlChunk(rows)
                rows = None
    except PlatformError:
        if rows is not None:
            yield SqlChunk(rows)
        raise
    if rows is not None:
        yield SqlChunk(rows)


def _column(column: Any) -> dict[str, str]:
    known = column if isinstance(column, dict) else {}
    return {"name": str(known.get("name") or ""), "type": type_name(known.get("column_type"))}
