"""Values as cells, and rows as an aligned table of plain text.

tabulate, which Airflow brings, does not align Chinese or Japanese texts without a further package,
and has no limit on the width of a whole table.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.known_secrets import CUT, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    for column_width in widths:
        used += column_width + (len(GAP) if kept else 0)
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


def cell(value: Any, most: int = 40) -> str:
    """A value as one printable line of at most so many columns; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return shorten(printable(str(value)[: most + 1]), most)


def width(text: str) -> int:
    """Columns that a terminal gives the text: two for a wide character, none for an accent."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, most: int) -> str:
    """The text cut to so many columns, which a mark at its end says."""
    if width(text) <= most:
        return text
    kept, used = [], 0
    for character in text:
        used += _width(character)
        if used > most - 1:
            break
        kept.append(character)
    return "".join(kept) + CUT


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """The text with as many spaces as it lacks."""
    spaces = " " * max(0, columns - width(text))
    return spaces + text if right else text + spaces


def number(value: Any) -> float | None:
    """The number that a value is, or that its text is; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if abs(parsed) != float("inf") and parsed == parsed else None
