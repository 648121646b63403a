"""What a chart shows: labels and values, by its Vega-Lite specification, out of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_platform.results.text.cells import number

_INNER = ("layer", "concat", "hconcat", "vconcat", "spec")
_LABELS = ("x", "y", "color", "theta", "row", "column", "detail")
_VALUES = ("y", "x", "theta", "size", "color")


def chart_values(
    spec: Any, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> list[tuple[Any, float]]:
    """A label and a value for each row (for each label, where the chart sums); none for what is no
    such chart.

    Labels and values are those of the specification's encodings, else the first column of texts
    and the first one of numbers.
    """
    found = _columns_of(spec, columns, rows)
    return [] if found is None else _pairs(rows, *found)


def _pairs(
    rows: Sequence[Sequence[Any]], label_at: int | None, value_at: int, aggregate: str | None
) -> list[tuple[Any, float]]:
    pairs = []
    for position, row in enumerate(rows):
        if value_at >= len(row) or (label_at is not None and label_at >= len(row)):
            continue
        value = number(row[value_at])
        if value is not None:
            pairs.append((row[label_at] if label_at is not None else position + 1, value))
    if aggregate is None:
        return pairs
    groups: dict[str, tuple[Any, list[float]]] = {}
    for label, value in pairs:
        groups.setdefault(str(label), (label, []))[1].append(value)
    return [(label, _aggregated(aggregate, values)) for label, values in groups.values()]


def _aggregated(aggregate: str, values: list[float]) -> float:
    if aggregate in ("mean", "average"):
        return sum(values) / len(values)
    if aggregate in ("min", "max"):
        return min(values) if aggregate == "min" else max(values)
    return sum(values)


def _columns_of(
    spec: Any, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> tuple[int | None, int, str | None] | None:
    """Positions of labels and values, and how values of one label are taken together."""
    names = [str(column.get("name", "")) for column in columns]
    numeric = [
        any(at < len(row) and number(row[at]) is not None for row in rows)
        and all(at < len(row) and (row[at] is None or number(row[at]) is not None) for row in rows)
        for at in range(len(names))
    ]
    for encoding in _encodings(spec):
        values = [c for c in _VALUES if _kind(encoding.get(c)) == "quantitative"]
        values += [c for c in _VALUES if c not in values]
        for channel in values:
            value_at = _position(encoding.get(channel), names)
            if value_at is None or not numeric[value_at]:
                continue
            others = [_position(encoding.get(c), names) for c in _LABELS if c != channel]
            label_at = next((at for at in others if at is not None and at != value_at), None)
            aggregate = encoding[channel].get("aggregate")
            return label_at, value_at, aggregate if isinstance(aggregate, str) else None
    value_at = next((at for at, one in enumerate(numeric) if one), None)
    if value_at is None:
        return None
    return next((at for at, one in enumerate(numeric) if not one), None), value_at, None


def _encodings(spec: Any, depth: int = 16) -> Iterator[Mapping[str, Any]]:
    if depth < 0 or not isinstance(spec, Mapping):
        return
    encoding = spec.get("encoding")
    if isinstance(encoding, Mapping):
        yield encoding
    for name in _INNER:
        inner = spec.get(name)
        for one in inner if isinstance(inner, list) else [inner]:
            yield from _encodings(one, depth - 1)


def _kind(channel: Any) -> Any:
    return channel.get("type") if isinstance(channel, Mapping) else None


def _position(channel: Any, names: list[str]) -> int | None:
    field = channel.get("field") if isinstance(channel, Mapping) else None
    if not isinstance(field, str):
        return None
    plain = field.replace("\\.", ".").removeprefix("['").removesuffix("']")
    return names.index(plain) if plain in names else None
