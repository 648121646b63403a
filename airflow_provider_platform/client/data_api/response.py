"""The data API's response to SQL, read while it arrives: a line with the columns, lines with rows,
perhaps one with an error. A long line of rows is read in parts (`row_lines`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from airflow_provider_platform.client.data_api.row_lines import RowLine, RowLineReader
from airflow_provider_platform.client.errors import (
    DataQueryError,
    DataQueryTimeoutError,
    PlatformAddressError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.formats.json_text import (
    read_unchecked_json,
    replace_surrogates,
)
from airflow_provider_platform.client.formats.ndjson import parse_line
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.formats.service_types import type_name
from airflow_provider_platform.client.formats.timeout_errors import TIME_OUT_ADVICE, says_time_out

CONTINUE_WAIT = "continue wait"
CHUNK_ROWS = 1000
"""Rows that are enough for a chunk. Many more are slower: what was read leaves the processor's
cache before it is used."""

_LISTS, _PLAIN = {list}, {str, bool, type(None)}


@dataclass(frozen=True)
class SqlColumns:
    """The columns of the result: `{"name", "type"}` each."""

    columns: list[dict[str, str]]


@dataclass(frozen=True)
class SqlChunk:
    """Some rows of the result, in order."""

    rows: list[list[Any]]


@dataclass(frozen=True)
class SqlOpenEnd:
    """The rows end where the connection was closed, and the protocol does not say that all of them
    have come: some may be missing."""


class SqlResponse:
    """The lines of one response, each of them checked; `where` ends the message of errors."""

    def __init__(self, where: str = "", reader: RowLineReader | None = None) -> None:
        self._where = where
        self._reader = reader or RowLineReader()
        self.columns: list[dict[str, str]] | None = None
        self.still_runs = False

    def feed(self, data: bytes) -> Iterator[SqlColumns | SqlChunk]:
        """What a piece of the response brings, each read when it is asked for. Raises
        DataQueryError for an error line (DataQueryTimeoutError if it names a time limit),
        PlatformProtocolError for a line that is none of these."""
        lines = self._reader.feed(data)
        return _together(event for line in lines for event in self._take(line))

    def finish(self) -> Iterator[SqlColumns | SqlChunk]:
        """What the last line brings, at the end of the response. Raises PlatformTransportError
        where it was cut."""
        try:
            for line in self._reader.finish():
                yield from self._take(line)
        except PlatformProtocolError as error:
            raise PlatformTransportError(
                "The data API's response was cut off. Run the query again.", where=self._where
            ) from error
        if self.columns is None and not self.still_runs:
            raise PlatformTransportError(
                "The data API's response ended before the first row. Run the query again.",
                where=self._where,
            )

    def _take(self, line: RowLine) -> tuple[SqlColumns | SqlChunk, ...]:
        if self.columns is not None:
            plain = _plain_rows(line, len(self.columns))
            if plain is not None:
                return (SqlChunk(plain),)
        elif line.data.startswith(b"<"):
            raise PlatformAddressError(
                "The data API's address returned a web page instead of rows. Check Data API "
                "address (data_api_url) in the connection, or the deployment's address in the "
                "platform.",
                where=self._where,
            )
        number = line.number
        value = parse_line(line.data, number, line.skipped)
        document = value if isinstance(value, dict) else {}
        if document.get("error"):
            self._take_error(document["error"])
            return ()
        rows = document.get("data")
        if not isinstance(document.get("schema"), list):
            return (self._chunk(rows, number),)
        columns = self._take_columns(document["schema"], number)
        return (columns, self._chunk(rows, number)) if rows else (columns,)

    def _take_columns(self, schema: list[Any], number: int) -> SqlColumns:
        columns = [_column(column) for column in schema]
        if self.columns is not None and columns != self.columns:
            raise self._broken(number, "has different columns than the previous rows")
        self.columns = columns
        return SqlColumns(columns)

    def _chunk(self, rows: Any, number: int) -> SqlChunk:
        if not isinstance(rows, list) or self.columns is None:
            raise self._broken(number, "contains neither columns nor rows nor an error")
        if not _is_table(rows, len(self.columns)):
            raise self._broken(
                number, f"has a row that does not have exactly {len(self.columns)} values"
            )
        return SqlChunk(replace_surrogates(rows))

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


def _plain_rows(line: RowLine, width: int) -> list[list[str | bool | None]] | None:
    """The rows of a line that holds nothing but rows of texts, booleans and nulls, as nearly every
    line does: they need no look at numbers and depth. None for any other line."""
    value = line.value
    if value is None:
        try:
            value = read_unchecked_json(line.data)
        except ValueError:
            return None
    if not isinstance(value, dict) or [*value] != ["data"] or not isinstance(value["data"], list):
        return None
    rows: list[list[str | bool | None]] = value["data"]
    if _is_table(rows, width) and {*map(type, chain.from_iterable(rows))} <= _PLAIN:
        return rows
    return None


def _is_table(rows: list[Any], width: int) -> bool:
    return {*map(type, rows)} <= _LISTS and {*map(len, rows)} <= {width}


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
    column_type = type_name(known.get("column_type"))
    return {
        "name": replace_surrogates(str(known.get("name") or "")),
        "type": replace_surrogates(column_type),
    }
