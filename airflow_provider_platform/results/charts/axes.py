"""Axes whose labels can be read: none runs into the next one.

Vega-Lite lets the labels of categories run together where their author asks for them side by side
(`labelAngle: 0`) or for a chart that is too narrow, and lets those of times touch. Here labels that
would run together stand upright; if that is not enough, some are left out. An author's own
`labelOverlap` and `labelSeparation` hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

_SEPARATION = 4
"""Pixels between two labels, at least."""
_STEP = 20.0
"""Pixels that Vega-Lite gives a category."""
_WIDTH = 200.0
"""Pixels that it gives an axis of another kind."""
_LETTER, _LINE = 5.5, 12.0
"""Pixels of a letter's width and of a line's height, in the size of labels (10)."""
_LONGEST = 180.0
"""Pixels of the longest label: Vega cuts a longer one."""
_UNITS = ("nominal", "ordinal")


def readable_axes(spec: Json, records: Sequence[Json]) -> Json:
    """The specification with axes whose labels keep apart.

    :param records: the rows, by the fields' names
    """
    config = spec.get("config")
    settings_by_name: Json = dict(config) if isinstance(config, Mapping) else {}
    defaults: dict[str, Json] = {
        "axis": {"labelSeparation": _SEPARATION},
        "axisDiscrete": {"labelOverlap": "greedy"},
    }
    for name, settings in defaults.items():
        own = settings_by_name.get(name)
        settings_by_name[name] = {**settings, **own} if isinstance(own, Mapping) else settings
    return {**_view(spec, records, None), "config": settings_by_name}


def _view(view: Mapping[str, Any], records: Sequence[Json], outer: Any) -> Json:
    """The view with its inner views; `outer` is the width of the view that it is a layer of."""
    width = view.get("width", outer)
    copied = dict(view)
    encoding = view.get("encoding")
    if isinstance(encoding, Mapping) and isinstance(encoding.get("x"), Mapping):
        copied["encoding"] = {**encoding, "x": _horizontal(encoding["x"], records, width)}
    for key in ("layer", "concat", "hconcat", "vconcat"):
        if isinstance(view.get(key), list):
            inner = width if key == "layer" else None
            copied[key] = [
                _view(part, records, inner) if isinstance(part, Mapping) else part
                for part in view[key]
            ]
    if isinstance(view.get("spec"), Mapping):
        copied["spec"] = _view(view["spec"], records, None)
    return copied


def _horizontal(channel: Mapping[str, Any], records: Sequence[Json], width: Any) -> Json:
    """The channel of a horizontal axis."""
    axis = channel.get("axis", {})
    if channel.get("type") not in _UNITS or not isinstance(axis, Mapping):
        return dict(channel)
    if "timeUnit" in channel:  # every second label, every fourth: as even as months are
        return {**channel, "axis": {"labelOverlap": True, **axis}}
    angle = axis.get("labelAngle")
    if isinstance(angle, bool) or not isinstance(angle, (int, float)) or angle % 180 == 90:
        return dict(channel)
    labels = _labels(channel.get("field"), records)
    if not labels:
        return dict(channel)
    if _fit(labels, float(angle), width):
        # Vega takes slanted labels for as wide as the boxes around them.
        beside = {} if angle % 90 == 0 else {"labelOverlap": False}
        return {**channel, "axis": {**beside, **axis}}
    placed = ("labelAngle", "labelAlign", "labelBaseline")
    return {**channel, "axis": {key: item for key, item in axis.items() if key not in placed}}


def _labels(field: Any, records: Iterable[Json]) -> set[str]:
    """The different values of a field of the rows; none for one that a transform makes."""
    if not isinstance(field, str):
        return set()
    name = field.replace("\\", "")
    return {str(record[name]) for record in records if name in record}


def _fit(labels: set[str], angle: float, width: Any) -> bool:
    """Whether labels at an angle keep apart."""
    if isinstance(width, Mapping):
        step = width.get("step", _STEP)
    elif isinstance(width, (int, float)):
        step = width / len(labels)
    elif isinstance(width, str):  # of a container, which a picture does not have
        step = _WIDTH / len(labels)
    else:
        step = _STEP
    if isinstance(step, bool) or not isinstance(step, (int, float)):
        return True
    slope = abs(math.sin(math.radians(angle)))
    longest = min(max(map(len, labels)) * _LETTER, _LONGEST)
    beside = longest * abs(math.cos(math.radians(angle))) + _SEPARATION <= step
    return beside or (slope > 0.1 and step * slope >= _LINE)
