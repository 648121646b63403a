"""What a chart shows: labels and values, by its Vega-Lite specification, out of the rows; as bars.

For places without pictures: messages, logs, terminals, the sandbox's pages. What cannot be read
from the rows alone (transforms, data of its own, fields that the rows lack) has no values here:
bars of other numbers than the chart's would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from airflow_provider_platform.results.readable_dates import short_moments
from airflow_provider_platform.results.text.table import cell, number, pad, width

FULL = "█"
EIGHTHS = " ▏▎▍▌▋▊▉"
_INNER = ("layer", "concat", "hconcat", "vconcat", "spec")
_LABELS = ("x", "y", "color", "theta", "row", "column", "detail")
_VALUES = ("y", "x", "theta", "size", "color")
_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "average": lambda values: sum(values) / len(values),
    "median": median,
    "min": min,
    "max": max,
    "count": len,
    "distinct": lambda values: len(set(values)),
}


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


@dataclass(frozen=True)
class _Plan:
    """Where labels and values are: the positions of their columns, and how the values of one label
    become one."""

    label_at: int | None
    value_at: int | None
    """None where the rows of a label are counted."""
    aggregate: str | None


def chart_values(
    spec: Any, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> list[tuple[Any, float]]:
    """A label and a value for each row (for each label, where the chart aggregates); none for what
    is no such chart.

    Labels and values are those of the specification's encodings; where it has none, the first
    column of texts and the first one of numbers. Dates are short.
    """
    plan = _plan(spec, columns, rows)
    if plan is None:
        return []
    pairs = _pairs(rows, plan)
    short = short_moments([label for label, _ in pairs])
    if short is None:
        return pairs
    return [(label, value) for label, (_, value) in zip(short, pairs, strict=True)]


def _pairs(rows: Sequence[Sequence[Any]], plan: _Plan) -> list[tuple[Any, float]]:
    pairs: list[tuple[Any, Any]] = []
    for position, row in enumerate(rows):
        if max(plan.label_at or 0, plan.value_at or 0) >= len(row):
            continue
        value: Any = 1.0 if plan.value_at is None else number(row[plan.value_at])
        if plan.aggregate == "distinct" and plan.value_at is not None:
            value = row[plan.value_at]
        if value is not None:
            pairs.append((row[plan.label_at] if plan.label_at is not None else position + 1, value))
    if plan.aggregate is None:
        return pairs
    groups: dict[str, tuple[Any, list[Any]]] = {}
    for label, value in pairs:
        groups.setdefault(str(label), (label, []))[1].append(value)
    reduce = _AGGREGATES[plan.aggregate]
    return [(label, float(reduce(values))) for label, values in groups.values()]


def _plan(
    spec: Any, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> _Plan | None:
    names = [str(column.get("name", "")) for column in columns]
    numeric = [
        any(at < len(row) and number(row[at]) is not None for row in rows)
        and all(at < len(row) and (row[at] is None or number(row[at]) is not None) for row in rows)
        for at in range(len(names))
    ]
    reads_fields = False
    for encoding, is_plain in _encodings(spec):
        fields = [item for item in encoding.values() if _reads(item)]
        reads_fields = reads_fields or bool(fields)
        if not is_plain:
            continue
        for channel in _by_type(encoding):
            plan = _of_channel(channel, encoding, names, numeric)
            if plan is not None:
                return plan
    if reads_fields:
        return None
    value_at = next((at for at, is_numeric in enumerate(numeric) if is_numeric), None)
    if value_at is None:
        return None
    return _Plan(
        next((at for at, is_numeric in enumerate(numeric) if not is_numeric), None), value_at, None
    )


def _of_channel(
    channel: str, encoding: Mapping[str, Any], names: list[str], numeric: list[bool]
) -> _Plan | None:
    """The plan with this channel's values; None where it has none, or its labels are no column."""
    item = encoding.get(channel)
    if not isinstance(item, Mapping) or item.get("bin"):
        return None
    aggregate = item.get("aggregate")
    if aggregate is not None and (not isinstance(aggregate, str) or aggregate not in _AGGREGATES):
        return None
    value_at = _position(item, names)
    if aggregate != "count":
        if value_at is None or not (numeric[value_at] or aggregate == "distinct"):
            return None
    else:
        value_at = None
    for name in _LABELS:
        label = encoding.get(name)
        if name == channel or not isinstance(label, Mapping) or not _reads(label):
            continue
        label_at = _position(label, names)
        if label_at is None or label.get("bin") or label.get("timeUnit") or label.get("aggregate"):
            return None
        if label_at != value_at:
            return _Plan(label_at, value_at, aggregate)
    return _Plan(None, value_at, aggregate) if aggregate is None else None


def _by_type(encoding: Mapping[str, Any]) -> list[str]:
    """The channels that can hold values, those of numbers first."""
    first = [name for name in _VALUES if _is_quantitative(encoding.get(name))]
    return first + [name for name in _VALUES if name not in first]


def _is_quantitative(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    return item.get("type") == "quantitative" or isinstance(item.get("aggregate"), str)


def _reads(item: Any) -> bool:
    """Whether a channel reads a field, or counts."""
    return isinstance(item, Mapping) and ("field" in item or "aggregate" in item)


def _encodings(
    spec: Any, is_plain: bool = True, depth: int = 16
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The encodings, and whether they read the rows as they are."""
    if depth < 0 or not isinstance(spec, Mapping):
        return
    own_data = depth < 16 and isinstance(spec.get("data"), Mapping)
    is_plain = is_plain and not spec.get("transform") and not own_data and "repeat" not in spec
    encoding = spec.get("encoding")
    if isinstance(encoding, Mapping):
        yield encoding, is_plain
    for name in _INNER:
        inner = spec.get(name)
        for part in inner if isinstance(inner, list) else [inner]:
            yield from _encodings(part, is_plain, depth - 1)


def _position(channel: Any, names: list[str]) -> int | None:
    field = channel.get("field") if isinstance(channel, Mapping) else None
    if not isinstance(field, str):
        return None
    unescaped = re.sub(r"\\(.)", r"\1", field.removeprefix("['").removesuffix("']"))
    return next((names.index(name) for name in (field, unescaped) if name in names), None)
