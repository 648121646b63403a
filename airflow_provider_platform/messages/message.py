"""A task's result as a message: what it says, and how it looks as plain text.

`Message` is made once from a result. Plain text, for the log and for places without pictures, is
made here: rows become an aligned table, and a column of names with a column of numbers becomes
bars. The other modules of this package word the same message in their markup (`markdown`, `mail`,
`slack`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from airflow_provider_platform.client.readable_dates import short_moments
from airflow_provider_platform.client.redaction import (
    log_line,
    printable,
    printable_texts,
    split_log_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_GAP = 2


def aligned_table(
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    *,
    max_rows: int = 10,
    max_width: int = 100,
) -> list[str]:
    """Lines of a heading, a rule and the first rows; numbers are aligned to the right.

    Columns that do not fit into the width are left out, and the heading says how many.
    """
    shown = rows[:max_rows]
    heading_values = [column.get("name", "") for column in columns]
    texts = iter(cells([*heading_values, *chain.from_iterable(shown)]))
    names = list(islice(texts, len(columns)))
    body = [list(islice(texts, len(row))) for row in shown]
    widths = [
        max(cell_len(row[at]) for row in (names, *body) if at < len(row))
        for at in range(len(names))
    ]
    kept = sum(end - _GAP <= max_width for end in accumulate(width + _GAP for width in widths))
    kept = max(kept, min(1, len(names)))
    if not kept:
        return []
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name, is_number in list(zip(names, numeric_columns(columns, shown), strict=True))[:kept]:
        table.add_column(Text(name), justify="right" if is_number else "left", no_wrap=True)
    for row in body:
        table.add_row(*map(Text, row[:kept]))
    console = Console(file=StringIO(), width=sum(widths) + _GAP * len(widths), no_color=True)
    with console.capture() as drawn:
        console.print(table)
    heading, *others = [line.rstrip() for line in drawn.get().splitlines()]
    more = f"  (and {len(names) - kept} more columns)" if kept < len(names) else ""
    return [heading + more, *others]


def numeric_columns(
    columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> list[bool]:
    """Whether each column has numbers, and nothing else that is shown."""
    by_column = [
        [row[at] for row in rows if at < len(row) and row[at] not in (None, "")]
        for at in range(len(columns))
    ]
    return [bool(values) and None not in map(number, values) for values in by_column]


def cells(values: Iterable[Any], most: int = 40) -> list[str]:
    """Each value as one printable line, cut to so many columns of a terminal; nothing for None."""
    shown = [
        json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, (Mapping, list, tuple))
        else ""
        if value is None
        else str(value)
        for value in values
    ]
    texts = list(map(Text, printable_texts(text[: most + 1] for text in shown)))
    for text in texts:
        text.truncate(most, overflow="ellipsis")
    return [text.plain for text in texts]


def number(value: Any) -> float | None:
    """The number that a value is, or that its text is; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if abs(parsed) != float("inf") and parsed == parsed else None


_FULL, _EIGHTHS = "█", " ▏▎▍▌▋▊▉"


def chart_values(
    columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> list[tuple[Any, float]]:
    """A name and a number of each row; none unless the rows have one column of each. Dates are
    short."""
    numeric = numeric_columns(columns, rows)
    if len(columns) != 2 or not any(numeric):
        return []
    value_at = 1 if numeric[1] else 0
    pairs = [
        (row[1 - value_at], value)
        for row in rows
        if len(row) == 2 and (value := number(row[value_at])) is not None
    ]
    names = short_moments([name for name, _ in pairs]) or [name for name, _ in pairs]
    return [(name, value) for name, (_, value) in zip(names, pairs, strict=True)]


def bar_chart(
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    *,
    max_bars: int = 20,
    max_width: int = 80,
) -> list[str]:
    """A bar for each pair of `chart_values`, a lighter one for a negative number. The last line
    says how many bars are left out."""
    bars = chart_values(columns, rows)
    if not bars:
        return []
    shown = bars[:max_bars]
    labels = cells([name for name, _ in shown], 30)
    decimals = 0 if all(value == int(value) for _, value in shown) else 2
    numbers = [f"{value:,.{decimals}f}" for _, value in shown]
    label_width, number_width = max(map(cell_len, labels)), max(map(len, numbers))
    room = max(10, max_width - label_width - number_width - 3)
    largest = max(abs(value) for _, value in bars) or 1
    lines = []
    for label, text, (_, value) in zip(labels, numbers, shown, strict=True):
        eighths = round(abs(value) / largest * room * 8)
        bar = _FULL * (eighths // 8) + _EIGHTHS[eighths % 8]
        bar = "░" * max(1, eighths // 8) if value < 0 else bar.strip()
        lines.append(f"{set_cell_size(label, label_width)}  {bar:<{room}} {text:>{number_width}}")
    more = len(bars) - len(shown)
    return [*lines, f"… and {more:,} more"] if more else lines


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


LOG_ROWS = 10
LOG_LINE = 500
"""Characters of a line; a longer one goes on in the next."""
ANSWER_LINES = 1000
"""Lines of an answer that are shown: all of any that a person reads."""


def log_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a result: its answer, and a group with the rest, which log viewers fold. No line
    of the result begins or ends a group by itself."""
    if "answer" in result:
        first, *more = split_log_lines(str(result["answer"] or ""), LOG_LINE) or [""]
        yield f"Answer: {first}"
        yield from more[: ANSWER_LINES - 1]
        if len(more) >= ANSWER_LINES:
            yield f"… ({len(result['answer'])} characters; all of them are in the task's result)"
    if not (result.get("queries") or result.get("manifest")):
        return
    yield "::group::Rows and files" if "answer" in result else "::group::Rows"
    for query in result.get("queries") or ():
        drawn = section_lines(section_of(query), LOG_ROWS)
        yield from split_log_lines("\n".join(["", *drawn]), LOG_LINE)
    if manifest := result.get("manifest"):
        yield from ("", log_line(f"Manifest: {manifest}"))
    yield "::endgroup::"
