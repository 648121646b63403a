"""What the agent's tool calls say: parses their JSON texts into queries and errors.

The platform's tools are known by the ends of their names, because tenants carry them under
different prefixes.
"""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_platform.client.chat import Query
from airflow_provider_platform.client.errors import MAX_SERVICE_TEXT, quote_service
from airflow_provider_platform.client.json_text import read_json

UNFINISHED = "The call had no result when the run ended."
_KEPT = (
    "data",
    "description",
    "error",
    "queryTitle",
    "schema",
    "searchQuery",
    "sqlQuery",
    "totalRows",
    "uuid",
    "vegaSpec",
)
"""What is read of a result; the rest (metadata can be long) is not kept while a run is followed."""


def is_query(tool_call: dict[str, Any]) -> bool:
    """Whether the call runs SQL."""
    return str(tool_call.get("name") or "").endswith("SqlApi")


def has_result(tool_call: dict[str, Any]) -> bool:
    """Whether the call is complete."""
    return tool_call.get("result") is not None


def error_of(tool_call: dict[str, Any]) -> str | None:
    """The error that a complete call ended with, None where it succeeded or is not complete."""
    if not has_result(tool_call):
        return None
    result = _json_text(tool_call["result"])
    if isinstance(result, dict):
        error = result.get("error")
        if not error:
            return None
        return str(error.get("message") or error) if isinstance(error, dict) else str(error)
    return _words_of(tool_call["result"]) if is_query(tool_call) else None


def complete(known: dict[str, Any] | None, told: dict[str, Any]) -> dict[str, Any]:
    """The call with what an earlier record of it said and this one leaves out; a result that came
    before the record of the call's start (connections may overlap) is kept."""
    return {**(known or {}), **{name: part for name, part in told.items() if part is not None}}


def trim_rows(tool_call: dict[str, Any], max_rows: int) -> dict[str, Any]:
    """The call with its JSON texts parsed and at most `max_rows` rows, so that no more is kept."""
    if not has_result(tool_call):
        return tool_call
    told = _json_text(tool_call["result"])
    if not isinstance(told, dict):
        failed = is_query(tool_call)
        return {
            **tool_call,
            "result": {"error": _words_of(tool_call["result"])} if failed else "",
        }
    result = {name: told[name] for name in _KEPT if name in told}
    rows = result.get("data")
    if isinstance(rows, list):
        result["totalRows"] = _total(result.get("totalRows"), len(rows))
        result["data"] = rows[:max_rows]
    return {**tool_call, "result": result}


def read_query(tool_call: dict[str, Any]) -> Query:
    """The query of a SQL call, complete or not."""
    given = _json_text(tool_call.get("input"))
    got = _json_text(tool_call.get("result"))
    given = given if isinstance(given, dict) else {}
    got = got if isinstance(got, dict) else {}

    def text(name: str) -> str:
        return str(got.get(name) or given.get(name) or "")

    columns, rows = _table(_columns(got.get("schema")), got.get("data"))
    total = _total(got.get("totalRows"), len(rows))
    error = error_of(tool_call) if has_result(tool_call) else UNFINISHED
    chart = _json_text(got.get("vegaSpec") or given.get("vegaSpec"))
    return Query(
        title=text("queryTitle"),
        description=text("description"),
        sql=text("sqlQuery"),
        columns=columns,
        rows=rows,
        total_rows=total,
        truncated=total > len(rows),
        uuid=str(got["uuid"]) if got.get("uuid") is not None else None,
        chart=chart if isinstance(chart, dict) else None,
        error=None if error is None else quote_service(error),
    )


def title_of(tool_call: dict[str, Any]) -> str:
    """A few words for the log: the query's title, or what was searched for."""
    for part in ("result", "input"):
        value = _json_text(tool_call.get(part))
        if isinstance(value, dict):
            for name in ("queryTitle", "searchQuery"):
                if value.get(name):
                    return str(value[name])
    return str(tool_call.get("name") or "tool call")


def _columns(schema: Any) -> list[dict[str, str]]:
    found = []
    for column in schema if isinstance(schema, list) else []:
        if isinstance(column, dict):
            kind = column.get("column_type") or column.get("type") or ""
            found.append({"name": str(column.get("name") or ""), "type": str(kind)})
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
    objects = [row for row in told if isinstance(row, dict)]
    if not objects:
        return columns, [row if isinstance(row, list) else [row] for row in told]
    names = [column["name"] for column in columns]
    added = dict.fromkeys(name for row in objects for name in row)
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


def _json_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return None
