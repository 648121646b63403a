"""The data API's response to SQL, parsed while it arrives, and its rows as an iterator.

The response is a line with the columns, lines with rows, and perhaps a line with an error
(`SqlResponse`). A deployment that does not stream sends the whole result as one line:
`{"data": [[...], ...]}`. Such a line is kept until it is complete (at most `MAX_DATA_LINE_BYTES`)
and then decoded row by row. So its rows are never all in memory as Python values, and an event loop
never waits for all of them.

`SqlRows` reads the response while its caller iterates.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_platform.client.errors import (
    DataQueryError,
    DataQueryTimeoutError,
    PlatformAddressError,
    PlatformClosedError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import TIME_OUT_ADVICE, says_time_out
from airflow_provider_platform.client.json_text import (
    LineReader,
    parse_line,
    read_unchecked_json,
    replace_surrogates,
)
from airflow_provider_platform.client.models import type_name
from airflow_provider_platform.client.redaction import quote_service

if TYPE_CHECKING:
    from airflow_provider_platform.client.platform_client import Events


CONTINUE_WAIT = "continue wait"
CHUNK_ROWS = 1000
"""Rows that are enough for a chunk. Many more are slower: what was read leaves the processor's
cache before it is used."""
MAX_DATA_LINE_BYTES = 128 * 1024 * 1024
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
    """The columns of the result: `{"name", "type"}` each. `used_pre_aggregations` has the names of
    the pre-aggregations that the service says it read."""

    columns: list[dict[str, str]]
    used_pre_aggregations: tuple[str, ...] = ()


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

    def __init__(self, where: str = "", max_line_bytes: int = MAX_DATA_LINE_BYTES) -> None:
        self._where = where
        self._max = max_line_bytes
        self._lines = LineReader(max_line_bytes, max_containers=max_line_bytes)
        self._long_line = False
        self.begun = False
        """Whether rows have begun to arrive."""
        self.columns: list[dict[str, str]] | None = None
        self.still_runs = False

    @property
    def active(self) -> bool:
        """Whether the last piece held more than blank lines."""
        return self._lines.active

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
            self._long_line = self.begun = True
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
        for value in _values(line, number, self._where):
            document = value if isinstance(value, dict) else {}
            if document.get("error"):
                self._take_error(document["error"])
                continue
            rows = document.get("data")
            if isinstance(document.get("schema"), list):
                used = _names(document.get("usedPreAggregations"))
                yield self._take_columns(document["schema"], used, number)
                if not rows:
                    continue
            yield self._chunk(rows, number)

    def _take_columns(self, schema: list[Any], used: tuple[str, ...], number: int) -> SqlColumns:
        columns = [_column(column) for column in schema]
        if self.columns is not None and columns != self.columns:
            raise self._broken(number, "has different columns than the previous rows")
        self.columns = columns
        return SqlColumns(columns, used)

    def _chunk(self, rows: Any, number: int) -> SqlChunk:
        if not isinstance(rows, list) or self.columns is None:
            raise self._broken(number, "contains neither columns nor rows nor an error")
        width = len(self.columns)
        if not ({*map(type, rows)} <= _LISTS and {*map(len, rows)} <= {width}):
            raise self._broken(number, f"has a row that does not have exactly {width} values")
        self.begun = self.begun or bool(rows)
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


def _values(line: bytes, number: int, where: str) -> Iterator[Any]:
    """The JSON value of a line. A long line of rows gives several values, as if its rows had come
    in several lines. Raises PlatformProtocolError."""
    try:
        text = line.decode() if len(line) > LONG_LINE_BYTES else ""
    except UnicodeDecodeError:
        text = ""
    start = _BEFORE_ROWS.match(text)
    if start is None:
        yield _read(line, number, where)
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
            data = f'{{"data":[{part}]}}'.encode()
            yield {"data": rows} if plain else _read(data, number, where)
            rows, begin = [], at
    # The last rows, and what follows them; if a row is wrong, this says where.
    yield _read(f'{{"data":[{text[begin:]}'.encode(), number, where)


def _read(line: bytes, number: int, where: str) -> Any:
    """The JSON value of a line. Nearly every line holds nothing but rows of texts, booleans and
    nulls; its numbers, depth and surrogates need no look."""
    try:
        value = read_unchecked_json(line)
    except ValueError:
        value = None
    if isinstance(value, dict) and [*value] == ["data"] and _are_plain(value["data"]):
        return value
    return replace_surrogates(parse_line(line, number, where))


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


def _names(used: Any) -> tuple[str, ...]:
    """Return the names of pre-aggregations. The service documents no shape. A dict has tables as
    its keys, a list has strings or objects; an object may have the pre-aggregation's name."""
    entries = used.items() if isinstance(used, dict) else []
    if isinstance(used, list):
        entries = [(one, one) for one in used]
    fields = ("preAggregationId", "name", "tableName")
    named = (
        next((one[field] for field in fields if field in one), key)
        if isinstance(one, dict)
        else key
        for key, one in entries
    )
    return tuple(name for name in named if isinstance(name, str))


def why_open_ended(row_count: int) -> str:
    """Return why rows may be missing after SqlOpenEnd, and what to do."""
    return (
        f"Rows may be missing: the connection was closed after {row_count} rows, and the response "
        "does not say how long it is. Run the query again. If that does not help, check the "
        "proxies between Airflow and the service."
    )


WhyCut = Callable[[int], str | None]
"""Returns why a result with this number of rows may have been cut, as sentences; None if nothing
suggests that."""
OnFailure = Callable[[PlatformError], None]
"""Called once with the error that ends a result."""


class SqlRows:
    """The rows of a query. Each row is a list of values in the order of `columns`. Use it in a
    `with`, or call `close` if you do not read all rows.

    The query is sent when you first read a row or the columns. Raises PlatformError. If the result
    breaks off, it raises after the rows that arrived, and again at each later read. `why_cut`
    judges the number of rows (`RowLimits.why_cut`).
    """

    def __init__(
        self, begin: Callable[[], Events[Any]], why_cut: WhyCut, on_failure: OnFailure | None = None
    ) -> None:
        self._begin = begin
        self._why_cut = why_cut
        self._on_failure = on_failure
        self._events: Events[Any] | None = None
        self._columns: list[dict[str, str]] | None = None
        self._used_pre_aggregations: tuple[str, ...] = ()
        self._rows: deque[list[Any]] = deque()
        """The rows that have arrived and that the caller has not read."""
        self._row_count = 0
        self._ended = False
        self._open_ended = False
        self._failure: PlatformError | None = None
        """What each later read raises: missing rows must never look like the end."""

    @property
    def columns(self) -> list[dict[str, str]]:
        """The columns: `{"name", "type"}` each."""
        while self._columns is None and self._receive():
            continue
        if self._columns is None:
            raise PlatformClosedError("The query's response ended without columns.")
        return self._columns

    @property
    def used_pre_aggregations(self) -> tuple[str, ...]:
        """The names of the pre-aggregations that the service says it read; none if it does not say
        so."""
        self.columns  # noqa: B018 - waits for them
        return self._used_pre_aggregations

    @property
    def truncated(self) -> bool | None:
        """Whether there may be more rows: the number of rows suggests that the service cut the
        result, or the response did not mark its end. None until the last row has arrived."""
        return self.why_truncated is not None if self._ended else None

    @property
    def why_truncated(self) -> str | None:
        """Why there may be more rows, and what to do, as sentences. None if nothing suggests that,
        and until the last row has arrived."""
        if not self._ended:
            return None
        if self._open_ended:
            return why_open_ended(self._row_count)
        return self._why_cut(self._row_count)

    @property
    def rows_read(self) -> int:
        """How many rows the caller has received."""
        return self._row_count - len(self._rows)

    def pieces(self) -> Iterator[list[list[Any]]]:
        """The rows in pieces as they come, which is quicker for many than one at a time."""
        while self._rows or self._receive():
            if self._rows:
                rows, self._rows = list(self._rows), deque()
                yield rows

    def close(self) -> None:
        """Stop reading and close the connection. Reading rows that were left raises
        PlatformClosedError."""
        if self._rows or not self._ended:
            self._rows.clear()
            self._failure = self._failure or PlatformClosedError(
                "The result of this query was closed before its last row was read."
            )
        if self._events is not None:
            self._events.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Any]:
        while not self._rows:
            if not self._receive():
                raise StopIteration
        return self._rows.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _receive(self) -> bool:
        """Wait for more rows. Return False at the end."""
        if self._failure is not None:
            raise self._failure
        if self._ended:
            return False
        if self._events is None:
            self._events = self._begin()
        try:
            event = next(self._events)
        except StopIteration:
            self._ended = True
            return False
        except PlatformError as error:
            self._failure = error
            if self._on_failure is not None:
                self._on_failure(error)
            raise
        if isinstance(event, SqlColumns):
            self._columns = event.columns
            self._used_pre_aggregations = event.used_pre_aggregations
        elif isinstance(event, SqlOpenEnd):
            self._open_ended = True
        else:
            self._rows.extend(event.rows)
            self._row_count += len(event.rows)
        return True
