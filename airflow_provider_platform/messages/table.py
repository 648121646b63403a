"""Values as cells, and rows as an aligned table of plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from airflow_provider_platform.client.log_text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    names = [cell(column.get("name", "")) for column in columns]
    shown = rows[:max_rows]
    body = [[cell(value) for value in row] for row in shown]
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
    return [bool(cells) and None not in map(number, cells) for cells in by_column]


def cell(value: Any, most: int = 40) -> str:
    """A value as one printable line, cut to so many columns of a terminal; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = Text(printable(str(value)[: most + 1]))
    text.truncate(most, overflow="ellipsis")
    return text.plain


def number(value: Any) -> float | None:
    """The number that a value is, or that its text is; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if abs(parsed) != float("inf") and parsed == parsed else None
