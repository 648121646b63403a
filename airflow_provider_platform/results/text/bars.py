"""A chart as bars of Unicode characters, for a terminal, a log or a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.results.text.cells import cell, pad, width
from airflow_provider_platform.results.text.chart_values import chart_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FULL = "█"
EIGHTHS = " ▏▎▍▌▋▊▉"


def bar_chart(
    spec: Any,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    *,
    max_bars: int = 20,
    max_width: int = 80,
) -> list[str]:
    """One bar for each value of the chart; none where it has no values. A line of its own says how
    many bars are left out."""
    bars = chart_values(spec, columns, rows)
    if not bars:
        return []
    shown = bars[:max_bars]
    labels = [cell(label, 30) for label, _ in shown]
    decimals = 0 if all(value == int(value) for _, value in shown) else 2
    numbers = [f"{value:,.{decimals}f}" for _, value in shown]
    label_width = max(map(width, labels))
    number_width = max(map(len, numbers))
    room = max(10, max_width - label_width - number_width - 3)
    largest = max(abs(value) for _, value in bars)
    lines = [
        f"{pad(label, label_width)}  {pad(_bar(value, largest, room), room)} "
        f"{pad(text, number_width, right=True)}".rstrip()
        for label, text, (_, value) in zip(labels, numbers, shown, strict=True)
    ]
    if len(bars) > len(shown):
        lines.append(f"… and {len(bars) - len(shown):,} more")
    return lines


def _bar(value: float, largest: float, room: int) -> str:
    """A negative value has a bar of its size in a lighter shade."""
    eighths = round(abs(value) / largest * room * 8) if largest else 0
    if value < 0:
        return "░" * max(1, eighths // 8)
    return (FULL * (eighths // 8) + EIGHTHS[eighths % 8]).strip()
