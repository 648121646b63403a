"""A column of names and a column of numbers as bars, for places without pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

from airflow_provider_platform.client.readable_dates import short_moments
from airflow_provider_platform.messages.table import cell, number, numeric_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    labels = [cell(name, 30) for name, _ in shown]
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
