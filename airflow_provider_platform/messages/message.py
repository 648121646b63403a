"""What a message says, made once of a result; and the message as plain text.

The module of each other target (`markdown`, `mail`, `slack`) words the same message in its markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.client.log_text import printable
from airflow_provider_platform.messages.bars import bar_chart
from airflow_provider_platform.messages.table import aligned_table


@dataclass(frozen=True)
class Section:
    """One query: its title, its first rows, its chart."""

    title: str
    columns: list[dict[str, Any]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    """All rows that the result holds; a message shows the first `max_rows` of them."""
    total_rows: int = 0
    chart: dict[str, Any] | None = None
    error: str | None = None
    path: str | None = None
    chart_paths: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the rows are all that there are: a chart of some of them is another chart."""
        return len(self.rows) >= self.total_rows

    def table(self, max_rows: int, max_width: int = 100) -> list[str]:
        return aligned_table(self.columns, self.rows, max_rows=max_rows, max_width=max_width)

    def bars(self, max_width: int = 68) -> list[str]:
        if self.chart is None or not self.complete:
            return []
        return bar_chart(self.columns, self.rows, max_width=max_width)

    def counted(self, max_rows: int) -> str:
        return rows_shown(min(max_rows, len(self.rows)), self.total_rows)


@dataclass(frozen=True)
class Message:
    """A title, the agent's answer or what went wrong, the queries, and facts of the run."""

    title: str
    text: str = ""
    sections: tuple[Section, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Names and values, as `("DAG", "weekly_report")`."""
    link: str | None = None
    """An https address where the run can be seen."""
    max_rows: int = 10


def message_of(
    result: Any,
    *,
    title: str,
    text: str | None = None,
    facts: Sequence[tuple[str, str]] = (),
    link: str | None = None,
    max_rows: int = 10,
) -> Message:
    """The message of a chat task's result, of a query task's, or of none (None).

    :param text: said in the place of the answer
    """
    fields = result if isinstance(result, Mapping) else {}
    queries = fields.get("queries")
    if not isinstance(queries, Sequence) and "columns" in fields and "rows" in fields:
        queries = [fields]  # of a query operator
    answer = text if text is not None else fields.get("answer")
    if answer is None and result is not None and not fields:
        answer = result
    link = link if link and link.startswith(("https://", "http://")) else None
    return Message(
        title=title,
        text="" if answer is None else str(answer),
        sections=tuple(section_of(query) for query in queries or () if isinstance(query, Mapping)),
        facts=tuple((str(name), str(value)) for name, value in facts),
        link=link,
        max_rows=max_rows,
    )


def section_of(query: Mapping[str, Any]) -> Section:
    """A section of a query as results hold it."""
    rows = [list(row) for row in query.get("rows") or ()]
    total = query.get("total_rows", query.get("row_count"))
    chart = query.get("chart")
    paths = query.get("chart_paths") or ()
    listed = paths.values() if isinstance(paths, Mapping) else paths
    return Section(
        title=str(query.get("title") or ""),
        columns=[dict(column) for column in query.get("columns") or ()],
        rows=rows,
        total_rows=total if isinstance(total, int) and total >= len(rows) else len(rows),
        chart=dict(chart) if isinstance(chart, Mapping) else None,
        error=None if query.get("error") is None else str(query["error"]),
        path=None if not query.get("path") else str(query["path"]),
        chart_paths=tuple(str(path) for path in listed),
    )


def to_plain(message: Message) -> str:
    """Lines without control characters."""
    parts = ["\n".join([line(message.title), *lines(message.text)])]
    parts += ["\n".join(section_lines(section, message.max_rows)) for section in message.sections]
    closing = [f"{line(name)}: {line(value)}" for name, value in message.facts]
    if message.link:
        closing.append(line(message.link))
    return "\n\n".join(part for part in [*parts, "\n".join(closing)] if part)


def section_lines(section: Section, max_rows: int, max_width: int = 100) -> list[str]:
    """A query's title, its error or its first rows, its chart as bars and where its files are."""
    shown = [line(section.title or "Query")]
    if section.error is not None:
        return [*shown, f"failed: {line(section.error)}"]
    shown[0] += f" ({section.counted(max_rows)})"
    shown += section.table(max_rows, max_width)
    if bars := section.bars():
        shown += ["", *bars]
    shown += [f"Rows: {line(section.path)}"] if section.path else []
    shown += [f"Chart: {line(path)}" for path in section.chart_paths]
    return shown


def lines(text: str) -> list[str]:
    """The lines of a text, each printable."""
    return [line(one) for one in text.strip().split("\n")] if text.strip() else []


def line(text: str) -> str:
    return printable(text.replace("\t", " ").rstrip("\r"))


def rows_shown(shown: int, total: int) -> str:
    """How many rows there are, and how many of them are shown."""
    rows = "row" if total == 1 else "rows"
    return f"{total:,} {rows}" if shown >= total else f"{shown:,} of {total:,} {rows}"
