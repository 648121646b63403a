"""The agent's tool calls: their JSON texts, parsed into queries, searches, errors and log lines.

A call and its result are JSON strings inside the records. The platform's tools are recognized by
the ends of their names, because tenants give them different prefixes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from airflow_provider_platform.client.choices import MAX_ROWS
from airflow_provider_platform.client.json_text import read_any_json, read_json, storable
from airflow_provider_platform.client.models import type_name
from airflow_provider_platform.client.redaction import (
    MAX_CHART_CHARACTERS,
    MAX_SERVICE_TEXT,
    quote_service,
)

UNFINISHED = "The call had no result when the run ended."
"""The error of a query whose result did not arrive."""

NO_REASON = "The tool failed, and the service gave no reason."
"""The error of a call whose `error` is empty."""

CHAT_ROWS = 100
"""The rows of a result that the service sends by default."""

_KEPT = (
    "data",
    "description",
    "error",
    "memoryId",
    "queryTitle",
    "schema",
    "searchQuery",
    "sqlQuery",
    "totalRows",
    "userRequest",
    "uuid",
    "vegaSpec",
)
"""The fields of a result that are read. The rest (metadata can be long) is not kept while a run is
followed."""
_METADATA = "cubes"
"""The result of a search of the data model; kept with `details` only."""

_TITLES = ("queryTitle", "searchQuery")

_LONG = 64 * 1024
"""If a result has more characters, only the fields that are read are kept, not its text."""


@dataclass
class Query:
    """One query of the agent and its result.

    `rows` holds at most `max_rows` rows as the chat API sends them (100 by default). `total_rows`
    is how many the result has; `truncated` says that the chat did not send some of them. To get all
    of them, run `sql` on the data API. `chart` is a Vega-Lite specification without data;
    `chart_error` says why a chart that the chat sent is missing here. Details: the `user_request`
    that the agent made the query for, how many rows the chat sent (`sent_rows`), and the id under
    which the agent remembers the query (`memory_id`), if the service sends one.
    """

    title: str = ""
    description: str = ""
    sql: str = ""
    columns: list[dict[str, str]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    total_rows: int = 0
    truncated: bool = False
    uuid: str | None = None
    chart: dict[str, Any] | None = None
    error: str | None = None
    user_request: str = ""
    sent_rows: int = 0
    chart_error: str | None = None
    memory_id: str | None = None


@dataclass
class Search:
    """A search of the data model: `cubes` as the service sends them, each with its `name`, `title`,
    `type` and `members`."""

    search_query: str = ""
    cubes: list[Any] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class _Result:
    """What a call's result says: how many rows are kept, were sent and exist, the title, the error,
    and the `text` of a result that is not an object."""

    rows: int = 0
    sent_rows: int = 0
    total_rows: int = 0
    title: str = ""
    error: str | None = None
    text: str | None = None
    names_total: bool = True

    @property
    def is_truncated(self) -> bool:
        """Whether rows were not sent, or may not have been: the service sends `CHAT_ROWS` rows
        unless it is told otherwise, and this result has as many and does not say how many exist."""
        unsure = not self.names_total and self.sent_rows == CHAT_ROWS
        return unsure or self.total_rows > self.sent_rows


@dataclass(frozen=True)
class ToolCall:
    """One call as known so far; without a `result` it is not complete.

    `input` and `result` are JSON texts or values. A result is kept as text, which takes a fraction
    of the memory of its rows, and parsed when it is needed: a stream repeats it with every
    reconnect. A long result is parsed when it comes (`parsed`), and only the fields that are needed
    are kept.
    """

    name: str = ""
    input: Any = None
    result: Any = None
    max_rows: int = MAX_ROWS
    parsed: _Result | None = None

    @property
    def is_query(self) -> bool:
        """Whether the call runs SQL."""
        return self.name.endswith("SqlApi")

    @property
    def is_search(self) -> bool:
        """Whether the call searches the data model."""
        return self.name.endswith("Meta")

    @property
    def error(self) -> str | None:
        """The error that a complete call ended with, None if it succeeded or is not complete."""
        read = self._read
        return read.text if read.text is not None and self.is_query else read.error

    @property
    def rows(self) -> int:
        """How many rows of the result are kept."""
        return self._read.rows

    @property
    def total_rows(self) -> int:
        """How many rows the result has."""
        return self._read.total_rows

    @property
    def title(self) -> str:
        """A short title for the log: the query's title, or the search text."""
        return self._read.title or _title(_json_text(self.input)) or self.name or "tool call"

    @property
    def sql(self) -> str:
        """The SQL of a query, "" where the call has none."""
        arguments, result = _json_object(self.input), _json_object(self.result)
        return str(result.get("sqlQuery") or arguments.get("sqlQuery") or "")

    @cached_property
    def cost(self) -> int:
        """Characters of the input and the result that are kept."""
        return _length(self.input) + _length(self.result)

    @cached_property
    def _read(self) -> _Result:
        return self._whole[0]

    @property
    def _whole(self) -> tuple[_Result, dict[str, Any]]:
        """What the result says, and the result as an object. It is parsed each time, because it
        takes more memory than its text."""
        if self.parsed is not None:
            return self.parsed, _json_object(self.result)
        return _read_result(self.result, self.max_rows)

    def query(self) -> Query:
        """Return the query of a SQL call, complete or not."""
        sent, (read, got) = _json_object(self.input), self._whole

        def text(name: str) -> str:
            return str(got.get(name) or sent.get(name) or "")

        columns, rows = _table(_columns(got.get("schema")), _rows(got))
        error = UNFINISHED if self.result is None else self.error
        specification = got.get("vegaSpec") or sent.get("vegaSpec")
        chart, chart_error = _chart(specification if error is None else None)
        return Query(
            title=text("queryTitle"),
            description=text("description"),
            sql=text("sqlQuery"),
            columns=columns,
            rows=rows,
            total_rows=read.total_rows,
            truncated=read.is_truncated,
            uuid=str(got["uuid"]) if got.get("uuid") is not None else None,
            chart=chart,
            error=None if error is None else quote_service(error),
            user_request=text("userRequest"),
            sent_rows=read.sent_rows,
            chart_error=chart_error,
            memory_id=text("memoryId") or None,
        )

    def search(self) -> Search:
        """Return the search of a metadata call, complete or not."""
        sent, got = _json_object(self.input), _json_object(self.result)
        cubes = got.get(_METADATA)
        error = UNFINISHED if self.result is None else self.error
        return Search(
            search_query=str(got.get("searchQuery") or sent.get("searchQuery") or ""),
            cubes=cubes if isinstance(cubes, list) else [],
            error=None if error is None else quote_service(error),
        )


@dataclass(frozen=True)
class ToolCallEnded:
    """A tool call is complete, after so many `seconds`. Its result is parsed by `str(event)`."""

    call: ToolCall
    seconds: float

    @property
    def is_warning(self) -> bool:
        """Whether the call failed."""
        return self.call.error is not None

    def __str__(self) -> str:
        call, took = self.call, f"{self.seconds:.1f} s"
        error, title = call.error, quote_service(call.title)
        if error is not None:
            said, sql = quote_service(error), quote_service(call.sql)
            line = f"Tool call {title!r} failed after {took}: {said}"
            return f"{line.removesuffix('.')}. SQL: {sql}" if sql else line
        if not call.is_query:
            return f"Tool call {title!r}: {took}"
        among = "" if call.rows == call.total_rows else f" of {call.total_rows}"
        return f"Query {title!r}: {call.rows}{among} rows, {took}"


def read_tool_call(
    received: dict[str, Any], known: ToolCall | None, max_rows: int, *, details: bool = False
) -> ToolCall:
    """Return the call by its latest record. Fields that this record leaves out come from earlier
    ones: connections may overlap, so that a result can come before the record of the call's start.
    At most `max_rows` rows are kept. The cubes of a long search are kept with `details` only."""
    before = known or ToolCall()
    name, sent, result = received.get("name"), received.get("input"), received.get("result")
    name = before.name if name is None else str(name or "")
    sent = before.input if sent is None else _stored(sent)
    if result is None:
        return replace(before, name=name, input=sent, max_rows=max_rows)
    if isinstance(result, str) and len(result) <= _LONG:
        return ToolCall(name, sent, result, max_rows)
    parsed, value = _read_result(result, max_rows)
    wanted = (*_KEPT, _METADATA) if details else _KEPT
    kept = {name: value[name] for name in wanted if name in value}
    if "data" in kept:
        kept["data"] = _rows(value)[:max_rows]
    return ToolCall(name, sent, kept, max_rows, parsed)


def _read_result(value: Any, max_rows: int) -> tuple[_Result, dict[str, Any]]:
    """Return (what a result says, the result as an object or {} if it is not one)."""
    if value is None:
        return _Result(), {}
    result = _unchecked(value)
    if not isinstance(result, dict):
        return _Result(text=_text_of_result(value)), {}
    rows = len(_rows(result))
    if rows > max_rows:
        # Only the rows that are kept: to look at each number of 26 MB stops a loop for too long.
        result = {**result, "data": result["data"][:max_rows]}
    if _stored(result) is None:
        return _Result(text="The result is nested too deeply."), {}
    return _Result(
        rows=min(rows, max_rows),
        sent_rows=rows,
        total_rows=_total(result.get("totalRows"), rows),
        names_total=result.get("totalRows") is not None,
        title=_title(result),
        error=_error(result.get("error")),
    ), result


def _chart(sent: Any) -> tuple[dict[str, Any] | None, str | None]:
    """Return a chart's specification, or why there is none; a call without a chart has neither."""
    length = _length(sent)
    if length > MAX_CHART_CHARACTERS:
        return None, (
            f"The chart was left out: its specification has {length:,} characters, and the limit "
            f"is {MAX_CHART_CHARACTERS:,}. Ask for the chart again without inline data."
        )
    chart = _json_text(sent)
    if sent and not isinstance(chart, dict):
        return None, (
            "The chart was left out: its specification is not a JSON object. Ask for the chart "
            "again."
        )
    return (chart if isinstance(chart, dict) else None), None


def _length(value: Any) -> int:
    """Characters of a text, or of the JSON of a value."""
    if type(value) is str:
        return len(value)
    if value is None:
        return 0
    try:
        return len(to_json(value, inf_nan_mode="null", fallback=str).decode())
    except ValueError:  # half a character
        return len(repr(value))


def _rows(result: dict[str, Any]) -> list[Any]:
    data = result.get("data")
    return data if isinstance(data, list) else []


def _error(error: Any) -> str | None:
    """Return the error of a result, None if it has none. A string is an error, also if empty."""
    if isinstance(error, str):
        return error if error.strip() else NO_REASON
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else None
    return quote_service(message or error)


def _title(part: Any) -> str:
    if isinstance(part, dict):
        for name in _TITLES:
            if part.get(name):
                return str(part[name])
    return ""


def _columns(schema: Any) -> list[dict[str, str]]:
    columns = []
    for column in schema if isinstance(schema, list) else []:
        if isinstance(column, dict):
            column_type = type_name(column.get("column_type") or column.get("type"))
            columns.append({"name": str(column.get("name") or ""), "type": column_type})
    return columns


def _table(
    columns: list[dict[str, str]], received: list[Any]
) -> tuple[list[dict[str, str]], list[list[Any]]]:
    """Return the columns and the rows, each row a list in column order.

    A row may be an object: its values go to the columns of their names, None if it lacks one. A
    name that no column has becomes a column of its own, after the others, so that no value is lost.
    Without a schema the first row's names come first.
    """
    row_types = set(map(type, received))
    if row_types <= {list}:
        return columns, received
    if dict not in row_types:
        return columns, [row if isinstance(row, list) else [row] for row in received]
    names = [column["name"] for column in columns]
    added = dict.fromkeys(name for row in received if isinstance(row, dict) for name in row)
    for name in names:
        added.pop(name, None)
    names += added
    rows = [
        [row.get(name) for name in names]
        if isinstance(row, dict)
        else _padded(row if isinstance(row, list) else [row], len(names))
        for row in received
    ]
    return [*columns, *({"name": name, "type": ""} for name in added)], rows


def _padded(row: list[Any], width: int) -> list[Any]:
    return row + [None] * (width - len(row))


def _text_of_result(result: Any) -> str:
    """Return what a query's result says that is not an object, no longer than it is quoted. Agent
    frameworks return plain text for a tool that failed: its own error message."""
    value, is_json = result, True
    if isinstance(result, str):
        try:
            value = read_json(result)
        except ValueError:
            is_json = False
    source = value if isinstance(value, str) else result
    text = (source if isinstance(source, str) else json.dumps(source)).strip()
    cut = text[: MAX_SERVICE_TEXT + 1]
    if not cut:
        return "The result is empty."
    if isinstance(value, str) and (is_json or not cut.startswith(("{", "["))):
        return cut
    return f"The result is not a JSON object: {cut}"


def _total(value: Any, at_least: int) -> int:
    try:
        return max(int(float(value)), at_least)
    except (TypeError, ValueError, OverflowError):
        return at_least


def _json_object(value: Any) -> dict[str, Any]:
    parsed = _json_text(value)
    return parsed if isinstance(parsed, dict) else {}


def _json_text(value: Any) -> Any:
    """Return the value of a JSON string, None for another string."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return None


def _stored(value: Any) -> Any:
    """Return a value that can be stored; None if it is nested too deeply."""
    with suppress(ValueError):
        return storable(value)
    return None


def _unchecked(value: Any) -> Any:
    """`_json_text`, with numbers as large as the service sends them."""
    if not isinstance(value, str):
        return value
    try:
        return read_any_json(value)
    except ValueError:
        return None
