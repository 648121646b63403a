"""The agent: turns a question into the records of one run, following rules instead of a model.

A table lists the questions that it understands, and the SQL for each.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

from airflow_provider_platform.sandbox.chat.planned_answers import PlannedAnswer
from airflow_provider_platform.sandbox.state.settings import Settings
from airflow_provider_platform.sandbox.state.warehouse import (
    COUNTRIES,
    CUSTOMERS,
    MEMBERS,
    QueryError,
    Result,
    Warehouse,
)

_METRICS = {
    "revenue": ("Revenue", "ROUND(SUM(orders.amount), 2)", r"revenue|sales|turnover"),
    "average": (
        "Average order value",
        "ROUND(AVG(orders.amount), 2)",
        r"average order value|aov",
    ),
    "quantity": ("Items sold", "SUM(orders.quantity)", r"items|quantity|units"),
    "orders": ("Orders", "COUNT(*)", r"orders?"),
}
_DIMENSIONS = {
    "country": ("customers.country", r"countr(?:y|ies)"),
    "segment": ("customers.segment", r"segments?"),
    "customer": ("customers.name", r"customers?"),
    "product": ("products.name", r"products?"),
    "category": ("products.category", r"categor(?:y|ies)"),
    "month": ("orders.month", r"months?"),
    "status": ("orders.status", r"status(?:es)?"),
}
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_FROM = (
    "FROM orders JOIN customers ON customers.id = orders.customer_id "
    "JOIN products ON products.id = orders.product_id"
)
_LISTS = {
    "orders": f"SELECT orders.id, orders.ordered_at, customers.name AS customer, "
    f"products.name AS product, orders.quantity, orders.amount {_FROM} ORDER BY orders.id",
    "customers": "SELECT id, name, country, city, segment FROM customers ORDER BY id",
    "products": "SELECT id, name, category, price FROM products ORDER BY id",
}

EXAMPLES = (
    "revenue by country",
    "top 5 products",
    "orders per month",
    "chart revenue by category",
    "total revenue in March",
    "list all orders",
    "and by product?",
    "only for Germany",
    "orders per month for Dubois 01",
    "sql: SELECT ...",
)


@dataclass(frozen=True)
class Query:
    """One query that the agent will run. A follow-up question changes the previous query."""

    title: str
    sql: str
    chart: bool = False
    metric: str | None = None
    dimension: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    limit: int | None = None


def understand(text: str, previous: Query | None) -> list[Query]:
    """Return the queries for ``text``, in order; empty if no pattern matches.

    Several questions in one message are joined by ``, then``.
    """
    queries: list[Query] = []
    for part in re.split(r"[,;.]\s*then\s+", text):
        query = _one(part.strip(), queries[-1] if queries else previous)
        if query is not None:
            queries.append(query)
    return queries


def _one(text: str, previous: Query | None) -> Query | None:
    literal = re.match(r"(?:run\s+)?sql:\s*(.+)", text, re.IGNORECASE | re.DOTALL)
    if literal:
        return Query("Your query", literal[1].strip())
    low = text.lower()
    chart = re.search(r"\b(chart|plot|graph|draw|visuali[sz]e)", low) is not None
    listing = re.search(r"\blist (?:all |the )?(orders|customers|products)\b", low)
    if listing:
        return Query(f"All {listing[1]}", _LISTS[listing[1]])
    metric = next((m for m, (_, _, names) in _METRICS.items() if _has(names, low)), None)
    top = re.search(r"\btop (\d{1,3})\b", low)
    dimension = _dimension(low, top is not None)
    filters = (*_filters(low), *_unknown_customers(text))
    if metric is None and top and dimension is not None:
        metric = "revenue"
    if metric is not None:
        limit = int(top[1]) if top else None
        return _build(Query("", "", chart, metric, dimension, filters, limit))
    if previous is None or previous.metric is None or not (dimension or filters or chart or top):
        return None
    named = {column for column, _ in filters}
    kept = tuple(entry for entry in previous.filters if entry[0] not in named)
    return _build(
        replace(
            previous,
            chart=chart,
            dimension=dimension or previous.dimension,
            filters=kept + filters,
            limit=int(top[1]) if top else (None if dimension else previous.limit),
        )
    )


def _has(names: str, low: str) -> bool:
    return re.search(rf"\b(?:{names})\b", low) is not None


def _dimension(low: str, top: bool) -> str | None:
    for name, (_, names) in _DIMENSIONS.items():
        if re.search(rf"\b(?:by|per|each|every)\s+(?:{names})\b", low):
            return name
        if top and re.search(rf"\btop \d+ (?:{names})\b", low):
            return name
    return None


def _filters(low: str) -> tuple[tuple[str, str], ...]:
    found = [("customers.country", name) for name in COUNTRIES if _has(name.lower(), low)]
    found += [("customers.name", name) for name in CUSTOMERS if _has(name.lower(), low)]
    found += [
        ("orders.month", f"2025-{number:02d}")
        for number, name in enumerate(_MONTHS, start=1)
        if _has(name, low)
    ]
    found += [("orders.month", month) for month in re.findall(r"\b2025-\d{2}\b", low)]
    return tuple(found)


_CUSTOMER = re.compile(
    r"""\b(?:for|of|from|customer)\s+(?:the\s+)?["']?([A-ZÀ-ŽŁ][\w&.-]*(?:\s+\d+)?)|"""
    r"""\b(?:for|of|from)\s+(?:the\s+)?customer\s+["']?([\w&.-]+(?:\s+\d+)?)"""
)
_KNOWN_NAMES = {name.lower() for name in (*COUNTRIES, *CUSTOMERS, *_MONTHS)}


def _unknown_customers(text: str) -> tuple[tuple[str, str], ...]:
    """Return a filter for each name after "for", "of", "from" or "customer" that is nothing in
    the warehouse: such a question must not get the numbers of all customers."""
    found = (match[1] or match[2] for match in _CUSTOMER.finditer(text))
    names = (name.rstrip(".") for name in found)
    return tuple(
        ("customers.name", name)
        for name in names
        if name.lower() not in _KNOWN_NAMES and name.split()[0].lower() not in _KNOWN_NAMES
    )


def _build(query: Query) -> Query:
    label, expression, _ = _METRICS[query.metric or "revenue"]
    name = query.metric or "revenue"
    where = ""
    if query.filters:
        columns: dict[str, list[str]] = {}
        for column, value in query.filters:
            columns.setdefault(column, []).append(f"'{value}'")
        tests = [f"{column} IN ({', '.join(values)})" for column, values in columns.items()]
        where = f" WHERE {' AND '.join(tests)}"
    title = label
    if query.dimension is None:
        sql = f"SELECT {expression} AS {name} {_FROM}{where}"
    else:
        column = _DIMENSIONS[query.dimension][0]
        order = "1" if query.dimension == "month" and query.limit is None else f"{name} DESC, 1"
        sql = (
            f"SELECT {column} AS {query.dimension}, {expression} AS {name} {_FROM}{where} "
            f"GROUP BY {column} ORDER BY {order}"
        )
        if query.limit is not None:
            sql += f" LIMIT {query.limit}"
            title = f"Top {query.limit} by {query.dimension}: {label.lower()}"
        else:
            title = f"{label} by {query.dimension}"
    if query.filters:
        title += f" ({', '.join(value for _, value in query.filters)})"
    return replace(query, title=title, sql=sql)


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
    on_tokens: Callable[[int], None] = lambda _: None
    plan: PlannedAnswer | None = None
    """The answer that a test has planned in place of the rules."""


class Agent:
    """Yields the steps of one run lazily: a query runs when its record is requested."""

    def __init__(self, assignment: Assignment) -> None:
        self._job = assignment
        self._node = "service_data_analyst_agent"
        self._sorts = count(2)

    def steps(self) -> Iterator[Step]:
        job, plan = self._job, self._job.plan
        echo = {"id": job.message_id, "role": "user", "content": job.text, "isDelta": False}
        yield Step({**echo, "sort": 1}, "echo")
        if plan is not None and plan.error is not None:
            yield Step({"error": plan.error}, "work")
            yield Step(usage_record(), "usage")
            return
        if plan is None:
            queries = understand(job.text, job.previous)
        else:
            queries = [Query(job.text, sql) for sql in plan.queries]
        yield Step(self._thought(f"The user asks: {job.text}"), "work")
        findings: list[tuple[Query, Result | str]] = []
        if queries:
            yield from self._text("Let me look at the data model first.", [self._node], "work")
            yield from self._search(queries[0])
            for query in queries:
                outcome = yield from self._run(query)
                findings.append((query, outcome))
                job.last_query = query
        answer = "\n".join(_sentence(q, o) for q, o in findings)
        if plan is not None:
            answer = plan.text or answer or _APOLOGY
        answer = answer or _help()
        answer += job.answer_suffix
        yield from self._text(answer, ["final"], "final")
        job.messages.append(serialized("AIMessage", answer, str(uuid.uuid4())))
        yield Step(self.state(), "state")
        yield Step(self.usage(), "usage")

    def state(self) -> Record:
        return state_record([*self._job.earlier_messages, *self._job.messages])

    def usage(self) -> Record:
        job = self._job
        record = usage_record(job.text, job.messages, job.settings.answer_tokens)
        job.on_tokens(record["usage"]["totalTokens"])
        return record

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


def usage_record(
    text: str = "", messages: Sequence[Record] = (), tokens: int | None = None
) -> Record:
    """Return the usage record of a run, which cost ``tokens`` (None: as many as its texts suggest);
    without arguments, of a run that reached no model."""
    counts = {
        "inputTokens": 900 + len(text) if text else 0,
        "outputTokens": 200 + 40 * len(messages) if text else 0,
        "cacheWriteTokens": 0,
        "cacheReadTokens": 600 if text else 0,
    }
    if tokens is not None:
        used = {"inputTokens": tokens - tokens // 10, "outputTokens": tokens // 10}
        counts = {**dict.fromkeys(counts, 0), **used}
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


_APOLOGY = "I am sorry, I cannot answer this question."


def _help() -> str:
    return (
        "I am the sandbox's agent and follow simple rules. Ask me for example: "
        + "; ".join(EXAMPLES)
        + "."
    )
