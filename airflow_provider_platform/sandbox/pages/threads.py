"""A chat thread as a person reads it: turn by turn, each with its queries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.sandbox.chat.agent import Record
from airflow_provider_platform.sandbox.chat.threads import Run, Thread, fold
from airflow_provider_platform.sandbox.pages.charts import Chart, draw


@dataclass(frozen=True)
class QueryView:
    """One query of the agent. ``error`` is what the service said of a failed one."""

    title: str
    sql: str
    columns: list[str]
    rows: list[list[Any]]
    total: int
    error: str
    chart: Chart | None
    specification: str
    """The Vega-Lite specification as text; "" without a chart."""


@dataclass(frozen=True)
class Turn:
    """One question and what came of it."""

    question: str
    message_id: str
    identity: str
    branch: str | None
    status: str
    started_at: float
    answer: str
    queries: list[QueryView]


def turns(thread: Thread) -> list[Turn]:
    """The thread, oldest turn first."""
    return [_turn(run) for run in thread.runs]


def _turn(run: Run) -> Turn:
    records = fold(run.replayable())
    answers = [r.get("content", "") for r in records if r.get("graphPath", [None])[0] == "final"]
    errors = [str(r["error"]) for r in run.log if "error" in r]
    return Turn(
        question=run.text,
        message_id=run.message_id,
        identity=run.entry.identity,
        branch=run.entry.branch,
        status=run.status,
        started_at=run.entry.started_at,
        answer=next(filter(None, [*reversed(answers), *errors]), ""),
        queries=[view for record in records if (view := _query(record)) is not None],
    )


def _query(record: Record) -> QueryView | None:
    call = record.get("toolCall") or {}
    if not str(call.get("name", "")).endswith("SqlApi"):
        return None
    given, result = _document(call.get("input")), _document(call.get("result"))
    columns = [str(column.get("name", "")) for column in result.get("schema", [])]
    rows = [_cells(row, columns) for row in result.get("data", [])]
    spec = given.get("vegaSpec") or result.get("vegaSpec")
    spec = _document(spec) if isinstance(spec, str) else spec
    return QueryView(
        title=str(given.get("queryTitle", "")),
        sql=str(given.get("sqlQuery", "")),
        columns=columns,
        rows=rows,
        total=int(result.get("totalRows", len(rows))),
        error=str(result.get("error", "")),
        chart=draw(spec, columns, rows) if spec else None,
        specification=json.dumps(spec, indent=2, ensure_ascii=False) if spec else "",
    )


def _cells(row: Any, columns: list[str]) -> list[Any]:
    return [row.get(name) for name in columns] if isinstance(row, dict) else list(row)


def _document(text: Any) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
