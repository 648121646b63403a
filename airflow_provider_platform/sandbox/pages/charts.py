"""A query's chart as shapes of an SVG picture, from its Vega-Lite specification and its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.messages.bars import chart_values

WIDTH, _LABELS, _ROW, _PLOT = 640, 150, 26, 220
_LETTER, _LABEL_LENGTH = 7, 10
"""Pixels of a letter, and letters of a label below a line."""
_MOST = 40
"""Values that one picture shows."""
_LINES = {"line", "area", "point", "trail"}


@dataclass(frozen=True)
class Value:
    """One value of a chart: a bar, or a point of a line. Lengths are pixels."""

    label: str
    text: str
    x: float
    y: float
    width: float = 0
    height: float = 0
    labelled: bool = True
    """Whether label and text are written beside it: not where they would run into the next ones."""


@dataclass(frozen=True)
class Chart:
    """A picture. ``kind`` is bars (they lie, so that labels can be read) or line."""

    kind: str
    title: str
    values: list[Value]
    width: int
    height: int

    @property
    def points(self) -> str:
        """The line as SVG's ``points``."""
        return " ".join(f"{value.x:.1f},{value.y:.1f}" for value in self.values)


def draw(
    spec: Mapping[str, Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Chart | None:
    """The chart; None where there is nothing to draw."""
    named = [{"name": name} for name in columns]
    pairs = [(str(label), number) for label, number in chart_values(named, rows)][:_MOST]
    if not pairs:
        return None
    title = spec.get("title")
    title = title.get("text", "") if isinstance(title, dict) else title or ""
    shape = _line if _mark(spec) in _LINES else _bars
    return shape(str(title), pairs)


def _mark(spec: Mapping[str, Any]) -> str:
    mark = spec.get("mark", "bar")
    return str(mark.get("type", "bar") if isinstance(mark, dict) else mark)


def _bars(title: str, pairs: list[tuple[str, float]]) -> Chart:
    most = max(*(abs(number) for _, number in pairs), 1e-9)
    room = WIDTH - _LABELS - 100
    values = [
        Value(
            label,
            _text(number),
            x=_LABELS,
            y=index * _ROW + 4,
            width=max(abs(number) / most * room, 1),
            height=_ROW - 8,
        )
        for index, (label, number) in enumerate(pairs)
    ]
    return Chart("bars", title, values, WIDTH, len(pairs) * _ROW + 4)


def _line(title: str, pairs: list[tuple[str, float]]) -> Chart:
    numbers = [number for _, number in pairs]
    least, most = min(*numbers, 0), max(*numbers, 0)
    span = (most - least) or 1
    step = (WIDTH - 80) / max(len(pairs) - 1, 1)
    longest = max(max(len(label[:_LABEL_LENGTH]), len(_text(number))) for label, number in pairs)
    every = math.ceil((longest + 1) * _LETTER / step)
    values = [
        Value(
            label,
            _text(number),
            x=40 + index * step,
            y=20 + (1 - (number - least) / span) * (_PLOT - 60),
            labelled=index % every == 0,
        )
        for index, (label, number) in enumerate(pairs)
    ]
    return Chart("line", title, values, WIDTH, _PLOT)


def _text(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"
