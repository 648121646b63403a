"""The report of the demo: the tasks, the agent's answer, its query results, and their XCom keys."""

from __future__ import annotations

import textwrap
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from airflow_provider_platform.messages.message import bar_chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun, FinishedTask

WIDTH = 96
_CELL = 40


def report(run: FinishedRun) -> str:
    """The whole report of a run."""
    parts = [_tasks(run)]
    parts += [_failure(task) for task in run.tasks if task.error and task.state != "success"]
    parts.append(_places(run))
    # Last, so that the answer is at the end of the terminal's output.
    parts += [_conversation(task) for task in run.tasks if {"answer", "queries"} <= {*task.xcoms}]
    return "\n\n".join(part for part in parts if part)


def _tasks(run: FinishedRun) -> str:
    rows = [
        [task.name, task.state, "" if task.seconds is None else f"{task.seconds:.1f} s"]
        for task in run.tasks
    ]
    table = _columns([["task", "state", "time"], *rows])
    return f"{_title(f'Tasks (the run: {run.state})')}\n{table}"


def _failure(task: FinishedTask) -> str:
    return f"{_title(f'Why {task.name} is {task.state}')}\n{_wrapped(task.error or '')}"


def _conversation(task: FinishedTask) -> str:
    answer = str(task.xcoms.get("answer", ""))
    parts = [f"{_title(f'The answer of the agent ({task.name})')}\n{_wrapped(answer)}"]
    parts += [_query(query) for query in task.xcoms["queries"]]
    return "\n\n".join(parts)


def _query(query: dict[str, Any]) -> str:
    names = [column["name"] for column in query["columns"]]
    rows = [["" if value is None else str(value) for value in row] for row in query["rows"]]
    count = f"{len(rows)} of {query['total_rows']} rows"
    lines = [_title(f"Query: {query['title']} ({count})"), _wrapped(query["sql"].strip()), ""]
    if query.get("error"):
        lines.append(f"  failed: {query['error']}")
    else:
        lines.append(_columns([names, *rows]))
        lines += _chart(query)
    return "\n".join(lines)


def _chart(query: dict[str, Any]) -> list[str]:
    """The chart as bars, if all its rows are there, and the paths of its pictures and rows."""
    lines = []
    if query.get("chart") and not query["truncated"]:
        bars = bar_chart(query["columns"], query["rows"], max_width=WIDTH - 4)
        lines += ["", *(f"  {bar}" for bar in bars)] if bars else []
    files = [("rows", query.get("path")), *(("chart", p) for p in query.get("chart_paths") or ())]
    named = [f"  {kind:<5}  {path}" for kind, path in files if path]
    return [*lines, "", *named] if named else lines


def _wrapped(text: str) -> str:
    wrapper = textwrap.TextWrapper(
        WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(wrapper.fill(line) for line in text.splitlines())


def _places(run: FinishedRun) -> str:
    rows = [
        [task.name, key, _preview(value)]
        for task in run.tasks
        for key, value in sorted(task.xcoms.items())
        if key in {"answer", "queries", "return_value"}
    ]
    if not rows:
        return ""
    place = f"  dag id  {run.dag_id}\n  run id  {run.run_id}\n"
    table = _columns([["task id", "key", "value"], *rows])
    return f"{_title('Where to find the results in XCom')}\n{place}\n{table}"


def _preview(value: Any) -> str:
    if isinstance(value, str):
        return _cut(repr(value))
    if isinstance(value, dict):
        return _cut("{" + ", ".join(map(str, value)) + "}")
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _CELL else f"{text[: _CELL - 3]}..."


def _title(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows under a heading, numbers to the right."""
    heading, *body = [[_cut(cell) for cell in row] for row in rows]
    table = Table(box=None, padding=(0, 1), header_style="")
    for position, name in enumerate(heading):
        numeric = bool(body) and all(_is_number(row[position]) for row in body)
        table.add_column(escape(name), justify="right" if numeric else "left", no_wrap=True)
    for row in body:
        table.add_row(*map(escape, row))
    console = Console(file=StringIO(), width=10_000, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(f" {line}".rstrip() for line in capture.get().splitlines())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
