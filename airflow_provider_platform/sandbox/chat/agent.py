"""The agent: turns a question into the records of one run, following rules instead of a model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from airflow_provider_platform.sandbox.chat.questions import EXAMPLES, Query, understand
from airflow_provider_platform.sandbox.state.settings import Settings
from airflow_provider_platform.sandbox.state.warehouse import MEMBERS, QueryError, Result, Warehouse

_CHUNK = 24

Record = dict[str, Any]
Mark = Literal["echo", "work", "tool", "final", "final_closing", "state", "usage"]


@dataclass(frozen=True)
class Step:
    """One record of a run and which part of the run it is."""

    record: Record
    mark: Mark


@dataclass
class Assignment:
    """What the agent knows when it starts: the question, its thread and the requested branch."""

    text: str
    message_id: str
    branch_error: str | None
    """The branch's error, if queries on it get no data."""
    previous: Query | None
    earlier_messages: list[Record]
    settings: Settings
    warehouse_for: Callable[[str], Warehouse]
    messages: list[Record]
    """The serialized messages of this turn: the question, and the messages that the run adds."""
    answer_suffix: str = ""
    last_query: Query | None = None
    on_sql: Callable[[str], None] = lambda _: None


class Agent:
    """Yields the steps of one run lazily: a query runs when its record is requested."""

    def __init__(self, assignment: Assignment) -> None:
        self._job = assignment
        self._node = "service_data_analyst_agent"
        self._sorts = count(2)

    def steps(self) -> Iterator[Step]:
        job = self._job
        echo = {"id": job.message_id, "role": "user", "content": job.text, "isDelta": False}
        yield Step({**echo, "sort": 1}, "echo")
        queries = understand(job.text, job.previous)
        yield Step(self._thought(f"The user asks: {job.text}"), "work")
        findings: list[tuple[Query, Result | str]] = []
        if queries:
            yield from self._text("Let me look at the data model first.", [self._node], "work")
            yield from self._search(queries[0])
            for query in queries:
                outcome = yield from self._run(query)
                findings.append((query, outcome))
                job.last_query = query
        answer = "\n".join(_sentence(q, o) for q, o in findings) if findings else _help()
        answer += job.answer_suffix
        yield from self._text(answer, ["final"], "final")
        job.messages.append(serialized("AIMessage", answer, str(uuid.uuid4())))
        yield Step(self.state(), "state")
        yield Step(self.usage(), "usage")

    def state(self) -> Record:
        return state_record([*self._job.earlier_messages, *self._job.messages])

    def usage(self) -> Record:
        return usage_record(self._job.text, self._job.messages)

    def _record(self, record_id: str, graph: list[str], sort: int, **fields: Any) -> Record:
        return {
            "id": record_id,
            "role": "assistant",
            "graphPath": graph,
            "isStructuredResponse": False,
            "sort": sort,
            **fields,
        }

    def _thought(self, text: str) -> Record:
        return self._record(
            str(uuid.uuid4()),
            [self._node],
            next(self._sorts),
            thinking=text,
            content="",
            isDelta=False,
            isInProcess=False,
        )

    def _text(self, text: str, graph: list[str], mark: Mark) -> Iterator[Step]:
        """Yield a message in pieces, then the whole message."""
        record_id, sort = str(uuid.uuid4()), next(self._sorts)
        for start in range(0, len(text), _CHUNK):
            piece = text[start : start + _CHUNK]
            yield Step(
                self._record(record_id, graph, sort, content=piece, isDelta=True, isInProcess=True),
                mark,
            )
            sort = next(self._sorts)
        closing: Mark = "final_closing" if mark == "final" else mark
        yield Step(
            self._record(record_id, graph, sort, content=text, isDelta=False, isInProcess=False),
            closing,
        )

    def _tool(self, name: str, given: Record, work: Callable[[], Record]) -> Iterator[Step]:
        record_id, call_id = str(uuid.uuid4()), f"call_{uuid.uuid4().hex[:12]}"
        tool = f"service{name}"
        call = {"name": tool, "input": _json(given)}
        graph = [self._node, "tools"]
        sort = next(self._sorts)
        shared: Record = {"content": "", "isDelta": False}
        yield Step(
            self._record(record_id, graph, sort, **shared, isInProcess=True, toolCall=call), "tool"
        )
        sort = next(self._sorts)
        result = _json(work())
        done = {**call, "result": result}
        yield Step(
            self._record(record_id, graph, sort, **shared, isInProcess=False, toolCall=done), "tool"
        )
        asked = serialized("AIMessage", "", str(uuid.uuid4()))
        asked["kwargs"]["tool_calls"] = [
            {"name": tool, "args": given, "id": call_id, "type": "tool_call"}
        ]
        told = serialized("ToolMessage", result, str(uuid.uuid4()))
        told["kwargs"]["tool_call_id"] = call_id
        self._job.messages += [asked, told]

    def _search(self, query: Query) -> Iterator[Step]:
        words = query.title.lower()
        yield from self._tool("Meta", {"searchQuery": words}, lambda: _metadata(words))

    def _run(self, query: Query) -> Generator[Step, None, Result | str]:
        """Run one query as a tool call. Return its result, or the error's text."""
        job = self._job
        given: Record = {
            "sqlQuery": query.sql,
            "queryTitle": query.title,
            "description": f"{query.title}, from the sample warehouse",
            "userRequest": job.text,
            "memoryId": str(uuid.uuid4()),
        }
        if query.chart:
            given["vegaSpec"] = _json(_vega(query))
        outcome: list[Result | str] = []

        def work() -> Record:
            try:
                result = self._fetch(query)
            except QueryError as error:
                outcome.append(str(error))
                return {"error": str(error)}
            outcome.append(result)
            echoed = {key: value for key, value in given.items() if key != "memoryId"}
            return {
                **echoed,
                "schema": result.schema,
                "data": self._rows(result),
                "totalRows": result.total_rows,
                "uuid": str(uuid.uuid4()),
            }

        yield from self._tool("SqlApi", given, work)
        return outcome[0]

    def _rows(self, result: Result) -> list[list[Any]]:
        if self._job.settings.chat_rows == "values":
            return result.rows
        kinds = [column["column_type"] for column in result.schema]
        return [list(map(_as_text, row, kinds)) for row in result.rows]

    def _fetch(self, query: Query) -> Result:
        if self._job.branch_error is not None:
            raise QueryError(f"Error: {self._job.branch_error}")
        self._job.on_sql(query.sql)
        return self._job.warehouse_for(query.sql).query(
            query.sql, limit=self._job.settings.chat_row_limit
        )


def _as_text(value: Any, kind: str) -> str | None:
    """Return a value of a column of this type as a string; null stays null."""
    if value is None:
        return None
    if kind == "Boolean" and value in (0, 1):
        return "true" if value else "false"
    return str(value)


def serialized(kind: str, content: str, message_id: str) -> Record:
    """Return a conversation message in the form of ``__state__``."""
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "messages", kind],
        "kwargs": {"content": content, "id": message_id},
    }


def state_record(messages: list[Record]) -> Record:
    return {
        "id": "__state__",
        "role": "assistant",
        "isDelta": False,
        "state": {"messages": messages},
    }


def usage_record(text: str = "", messages: Sequence[Record] = ()) -> Record:
    """Return the usage record of a run; without arguments, of a run that reached no model."""
    counts = {
        "inputTokens": 900 + len(text) if text else 0,
        "outputTokens": 200 + 40 * len(messages) if text else 0,
        "cacheWriteTokens": 0,
        "cacheReadTokens": 600 if text else 0,
    }
    return {
        "id": "__usage__",
        "type": "usage",
        "usage": {
            "models": ["rules-1"] if text else [],
            "llmCalls": max(1, len(messages) // 2) if text else 0,
            **counts,
            "totalTokens": sum(counts.values()),
        },
    }


def aborted_record() -> Record:
    return {"id": "__aborted__", "role": "assistant"}


def _json(document: Record) -> str:
    return json.dumps(document, ensure_ascii=False)


def _metadata(words: str) -> Record:
    cubes: dict[str, list[Record]] = {}
    for name, description, kind, aggregation in MEMBERS:
        member = {"name": name, "title": description, "description": description, "type": kind}
        if aggregation:
            member["aggType"] = aggregation
        cubes.setdefault(name.split(".")[0], []).append(member)
    return {
        "cubes": [
            {"name": name, "type": "cube", "title": name.title(), "members": members}
            for name, members in cubes.items()
        ],
        "searchQuery": words,
    }


def _vega(query: Query) -> Record:
    name = query.metric or "revenue"
    shown: Record = {"y": {"field": name, "type": "quantitative"}}
    if query.dimension is not None:
        # In the order of the rows, which the query sets.
        shown["x"] = {"field": query.dimension, "type": "ordinal", "sort": None}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": query.title,
        "mark": "line" if query.dimension == "month" else "bar",
        "encoding": shown,
    }


def _sentence(query: Query, outcome: Result | str) -> str:
    if isinstance(outcome, str):
        return f"I am sorry, I could not get the data for “{query.title}”: {outcome}."
    if not outcome.rows:
        return f"{query.title}: no rows."
    if len(outcome.rows) == 1 and len(outcome.rows[0]) == 1:
        return f"{query.title}: {_number(query, outcome.rows[0][0])}."
    shown = [_row(query, row) for row in outcome.rows[:5]]
    more = outcome.total_rows - len(shown)
    tail = f", and {more} more ({outcome.total_rows} rows)" if more > 0 else ""
    chart = " The chart shows them all." if query.chart else ""
    return f"{query.title} — {'; '.join(shown)}{tail}.{chart}"


def _row(query: Query, row: list[Any]) -> str:
    if query.metric is not None and len(row) == 2:
        return f"{row[0]}: {_number(query, row[1])}"
    return ", ".join(str(value) for value in row)


def _number(query: Query, value: Any) -> str:
    if query.metric in ("revenue", "average") and isinstance(value, (int, float)):
        return f"{value:,.2f} €"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def _help() -> str:
    return (
        "I am the sandbox's agent and follow simple rules. Ask me for example: "
        + "; ".join(EXAMPLES)
        + "."
    )
