"""Rows as an aligned table of plain text.

tabulate, which Airflow brings, does not align Chinese or Japanese texts without a further package,
and has no limit on the width of a whole table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.results.text.cells import cell, number, pad, width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GAP = "  "


def aligned_table(
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    *,
    max_rows: int = 10,
    max_width: int = 100,
    max_cell: int = 40,
) -> list[str]:
    """Lines of a heading, a rule and the first rows; numbers stand to the right.

    Columns that do not fit into the width are left out, which the last heading says.
    """
    names = [cell(column.get("name", ""), max_cell) for column in columns]
    if not names:
        return []
    shown = [[*row][: len(names)] for row in rows[:max_rows]]
    body = [
        [cell(value, max_cell) for value in row] + [""] * (len(names) - len(row)) for row in shown
    ]
    numeric = [
        any(row[at] is not None for row in shown if at < len(row))
        and all(row[at] is None or number(row[at]) is not None for row in shown if at < len(row))
        for at in range(len(names))
    ]
    widths = [
        max(width(name), *(width(row[at]) for row in body), 0) for at, name in enumerate(names)
    ]
    kept, used = 0, 0
    for one in widths:
        used += one + (len(GAP) if kept else 0)
        if kept and used > max_width:
            break
        kept += 1
    left_out = len(names) - kept

    def line(cells: Sequence[str]) -> str:
        padded = [pad(cells[at], widths[at], right=numeric[at]) for at in range(kept)]
        return GAP.join(padded).rstrip()

    heading = line(names) + (f"{GAP}(and {left_out} more columns)" if left_out else "")
    rule = GAP.join("─" * widths[at] for at in range(kept))
    return [heading, rule, *(line(row) for row in body)]


def rows_shown(shown: int, total: int) -> str:
    """How many rows there are, and how many of them are shown."""
    rows = "row" if total == 1 else "rows"
    return f"{total:,} {rows}" if shown >= total else f"{shown:,} of {total:,} {rows}"
