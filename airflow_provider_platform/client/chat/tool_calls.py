"""What the agent's tool calls say: parses their JSON texts into queries and errors.

The platform's tools are known by the ends of their names, because tenants carry them under
different prefixes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from airflow_provider_platform.client.formats.column_types import type_name
from airflow_provider_platform.client.formats.json_text import (
    read_json,
    read_plain_json,
    settle_numbers,
)
from airflow_provider_platform.client.formats.service_text import (
    MAX_CHART_CHARACTERS,
    MAX_SERVICE_TEXT,
    quote_service,
)

UNFINISHED = "The call had no result when the run ended."
"""The error of a query whose result did not reach us."""

NO_REASON = "The tool failed without a reason."
"""The error of a call whose `error` is empty."""

_KEPT = (
    "data",
    "description",
    "error",
    "queryTitle",
    "schema",
    "searchQuery",
    "sqlQuery",
    "totalRows",
    "userRequest",
    "uuid",
    "vegaSpec",
)
_METADATA = "cubes"
"""What a search of the data model gave; kept as well where details are asked for."""
"""What is read of a result; the rest (metadata can be long) is not kept while a run is followed."""

_TITLES = ("queryTitle", "searchQuery")
_WORDS = (*_TITLES, "error")

_LONG = 64 * 1024
"""Characters above which a result is not kept as the text it is, but as what is read of it."""


@dataclass
class Query:
    """One query of the agent and what it gave.

    `rows` holds at most `max_rows` rows as the chat API sends them (100 by default), `total_rows`
    how many there are, `truncated` whether some are missing here; all of them come from running
    `sql` on the data API. `chart` is a Vega-Lite specification without data; `chart_error` says why
    one that the chat sent is missing here. Details: the `user_request` that the agent made the
    query for, and how many rows the chat sent (`sent_rows`).
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


@dataclass
class Search:
    """A search of the agent in the data model: `cubes` as the service sends them, each with its
    `name`, `title`, `type` and `members`."""

    search_query: str = ""
    cubes: list[Any] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class _Result:
    """What is told of a call's result: how many rows were kept, sent and are there, the title, the
    error, the `words` of one that is no object."""

    rows: int = 0
    sent_rows: int = 0
    total_rows: int = 0
    title: str = ""
    error: str | None = None
    words: str | None = None


@dataclass(frozen=True)
class ToolCall:
    """One call as told so far; without a `result` it is not complete.

    `input` and `result` are JSON texts or values. A result is kept as the text that it came as,
    which takes a fraction of the memory of its rows, and read when somebody asks for what it says:
    a stream tells it again with every reconnect. A long one is `read` when it comes, and kept as an
    object of what is needed.
    """

    name: str = ""
    input: Any = None
    result: Any = None
    max_rows: int = 100
    read: _Result | None = None

    @property
    def is_query(self) -> bool:
        """Whether the call runs SQL."""
        return self.name.endswith("SqlApi")

    @property
    def is_search(self) -> bool:
        """Whether the call searches the data model."""
        return self.name.endswith("Meta")

    @property
    def has_result(self) -> bool:
        """Whether the call is complete."""
        return self.result is not None

    @property
    def error(self) -> str | None:
        """The error that a complete call ended with, None where it succeeded or is not complete."""
        told = self._told
        return told.words if told.words is not None and self.is_query else told.error

    @property
    def rows(self) -> int:
        """How many rows of the result are kept."""
        return self._told.rows

    @property
    def total_rows(self) -> int:
        """How many rows the result has."""
        return self._told.total_rows

    @property
    def title(self) -> str:
        """A few words for the log: the query's title, or what was searched for."""
        return self._told.title or _title(_json_text(self.input)) or self.name or "tool call"

    @property
    def sql(self) -> str:
        """The SQL of a query, "" where the call has none."""
        given, got = _json_object(self.input), _json_object(self.result)
        return str(got.get("sqlQuery") or given.get("sqlQuery") or "")

    @cached_property
    def cost(self) -> int:
        """Characters of the input and the result that are kept."""
        return _length(self.input) + _length(self.result)

    @cached_property
    def _told(self) -> _Result:
        return self.read or _read_result(self.result, self.max_rows)[0]

    def query(self) -> Query:
        """The query of a SQL call, complete or not."""
        given, got = _json_object(self.input), _json_object(self.result)

        def text(name: str) -> str:
            return str(got.get(name) or given.get(name) or "")

        columns, rows = _table(_columns(got.get("schema")), _rows(got)[: self.max_rows])
        error = self.error if self.has_result else UNFINISHED
        sent = got.get("vegaSpec") or given.get("vegaSpec") if error is None else None
        chart, chart_error = _chart(sent)
        return Query(
            title=text("queryTitle"),
            description=text("description"),
            sql=self.sql,
            columns=columns,
            rows=rows,
            total_rows=self.total_rows,
            truncated=self.total_rows > len(rows),
            uuid=str(got["uuid"]) if got.get("uuid") is not None else None,
            chart=chart,
            error=None if error is None else quote_service(error),
            user_request=text("userRequest"),
            sent_rows=self._told.sent_rows,
            chart_error=chart_error,
        )

    def search(self) -> Search:
        """The search of a metadata call, complete or not."""
        given, got = _json_object(self.input), _json_object(self.result)
        cubes = got.get(_METADATA)
        error = self.error if self.has_result else UNFINISHED
        return Search(
            search_query=str(got.get("searchQuery") or given.get("searchQuery") or ""),
            cubes=cubes if isinstance(cubes, list) else [],
            error=None if error is None else quote_service(error),
        )


def read_tool_call(
    received: dict[str, Any], known: ToolCall | None, max_rows: int, *, details: bool = False
) -> ToolCall:
    """The call with what an earlier record of it said and this one leaves out; a result that came
    before the record of the call's start (connections may overlap) is kept. No more than `max_rows`
    rows are; of a long search only what it was for, unless `details` are asked for."""
    before = known or ToolCall()
    name, given, result = received.get("name"), received.get("input"), received.get("result")
    name = before.name if name is None else str(name or "")
    given = before.input if given is None else given
    if result is None:
        return replace(before, name=name, input=given, max_rows=max_rows)
    if isinstance(result, str) and len(result) <= _LONG:
        return ToolCall(name, given, result, max_rows)
    read, value = _read_result(result, max_rows)
    wanted = (*_KEPT, _METADATA) if details else _KEPT
    kept = {name: value[name] for name in wanted if name in value}
    if "data" in kept:
        kept["data"] = _rows(value)[:max_rows]
    return ToolCall(name, given, kept, max_rows, read)


def _read_result(told: Any, max_rows: int) -> tuple[_Result, dict[str, Any]]:
    """What is told of a result, and its object, which is empty where it is none."""
    if told is None:
        return _Result(), {}
    result = _json_text(told, plain=True)
    if not isinstance(result, dict):
        return _Result(words=_words_of(told)), {}
    if isinstance(told, str) and not (len(told) <= _LONG and _has_plain_words(result)):
        result = settle_numbers(result, told)
    rows = len(_rows(result))
    return _Result(
        rows=min(rows, max_rows),
        sent_rows=rows,
        total_rows=_total(result.get("totalRows"), rows),
        title=_title(result),
        error=_error(result.get("error")),
    ), result


def _chart(sent: Any) -> tuple[dict[str, Any] | None, str | None]:
    """Return a chart's specification, or why there is none; a call without a chart has neither."""
    length = _length(sent)
    if length > MAX_CHART_CHARACTERS:
        return None, (
            f"The chart's specification has {length:,} characters, more than the limit of "
            f"{MAX_CHART_CHARACTERS:,}, so it was left out. Ask for the chart again without data "
            "of its own."
        )
    chart = _json_text(sent)
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


def _has_plain_words(result: dict[str, Any]) -> bool:
    """Whether a result's title and error are texts, so that no number shows in them."""
    return all(type(result.get(name, "")) is str for name in _WORDS)


def _error(error: Any) -> str | None:
    """Return the error of a result, None where it has none. A text is an error, an empty one
    too."""
    if isinstance(error, str):
        return error if error.strip() else NO_REASON
    if not error:
        return None
    words = error.get("message") if isinstance(error, dict) else None
    return quote_service(words or error)


def _title(part: Any) -> str:
    if isinstance(part, dict):
        for name in _TITLES:
            if part.get(name):
                return str(part[name])
    return ""


def _columns(schema: Any) -> list[dict[str, str]]:
    found = []
    for column in schema if isinstance(schema, list) else []:
        if isinstance(column, dict):
            kind = type_name(column.get("column_type") or column.get("type"))
            found.append({"name": str(column.get("name") or ""), "type": kind})
    return found


def _table(
    columns: list[dict[str, str]], data: Any
) -> tuple[list[dict[str, str]], list[list[Any]]]:
    """The columns and the rows, each a list in column order.

    A row may come as an object: its values then stand under the columns of their names, None where
    it has no such value. A name that no column has becomes a column of its own, after the others,
    so that no value is lost; without a schema the first row's names come first.
    """
    told = data if isinstance(data, list) else []
    kinds = set(map(type, told))
    if kinds <= {list}:
        return columns, told
    if dict not in kinds:
        return columns, [row if isinstance(row, list) else [row] for row in told]
    names = [column["name"] for column in columns]
    added = dict.fromkeys(name for row in told if isinstance(row, dict) for name in row)
    for name in names:
        added.pop(name, None)
    names += added
    rows = [
        [row.get(name) for name in names]
        if isinstance(row, dict)
        else _padded(row if isinstance(row, list) else [row], len(names))
        for row in told
    ]
    return [*columns, *({"name": name, "type": ""} for name in added)], rows


def _padded(row: list[Any], width: int) -> list[Any]:
    return row + [None] * (width - len(row))


def _words_of(result: Any) -> str:
    """What a query's result says that is no object, at most as much as is quoted of it. Frameworks
    of agents give plain text for a tool that failed: those are the tool's own words."""
    said, is_json = result, True
    if isinstance(result, str):
        try:
            said = read_json(result)
        except ValueError:
            is_json = False
    words = said if isinstance(said, str) else result
    text = (words if isinstance(words, str) else json.dumps(words)).strip()
    cut = text[: MAX_SERVICE_TEXT + 1]
    if not cut:
        return "The result is empty."
    if isinstance(said, str) and (is_json or not cut.startswith(("{", "["))):
        return cut
    return f"The result is not a JSON object: {cut}"


def _total(told: Any, at_least: int) -> int:
    try:
        return max(int(float(told)), at_least)
    except (TypeError, ValueError, OverflowError):
        return at_least


def _json_object(value: Any) -> dict[str, Any]:
    found = _json_text(value)
    return found if isinstance(found, dict) else {}


def _json_text(value: Any, *, plain: bool = False) -> Any:
    """The value of a JSON text, None for another text; `plain` as `read_plain_json` has it."""
    if not isinstance(value, str):
        return value
    if plain:
        with suppress(ValueError):
            return read_plain_json(value.encode())
    try:
        return read_json(value)
    except ValueError:
        return None
