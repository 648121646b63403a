"""The specification that is drawn: it loads nothing, and the rows are its data.

An agent writes the specification without data. Vega-Lite names everything that it loads or links
to in `url`, `href` and `src`, and vega-embed reads `usermeta`. All of these are removed, wherever
they are. The rows replace the data of the chart as a whole; an inner view keeps values of its own
(the line of a goal).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_platform.charts.chart_data import records_of
from airflow_provider_platform.charts.errors import ChartError

Json = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

_LOADING = frozenset({"url", "href", "src", "usermeta"})
_VIEWS = ("mark", "layer", "facet", "hconcat", "vconcat", "concat", "repeat")
_OWN_DATA = ("values", "sequence", "graticule", "sphere")


def drawable(
    spec: Any, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> tuple[Json, list[str]]:
    """Return the specification with its rows, and notes about what the picture leaves out.

    :raises ChartError: it is not a Vega-Lite specification
    """
    if not isinstance(spec, Mapping) or not any(name in spec for name in _VIEWS):
        other = " but a Vega specification" if isinstance(spec, Mapping) and "marks" in spec else ""
        raise ChartError(
            f"The chart is not a Vega-Lite specification{other}: it has none of "
            f"{', '.join(_VIEWS)}. Ask for the chart again."
        )
    notes: list[str] = []
    removed: set[str] = set()
    try:
        json.dumps(spec)
        cleaned = _without_loading(spec, removed)
    except (RecursionError, TypeError, ValueError) as error:
        raise ChartError(
            "The chart's specification is nested too deeply or is not JSON. Ask for the chart "
            "again."
        ) from error
    if removed - {"usermeta"}:
        names = ", ".join(sorted(removed - {"usermeta"}))
        notes.append(f"Charts load nothing and have no links, so {names} was left out.")
    data = cleaned.pop("data", None)
    data = data if isinstance(data, Mapping) else {}
    if any(data.get(name) for name in _OWN_DATA):
        notes.append("The chart shows the rows of the query, not its own data.")
    if not rows:
        return _without_rows(cleaned), [*notes, "The query returned no rows."]
    records = records_of(cleaned, columns, rows, notes)
    parse = data["format"].get("parse") if isinstance(data.get("format"), Mapping) else None
    shown: Json = {"values": records, **({"format": {"parse": parse}} if parse else {})}
    return {**cleaned, "$schema": SCHEMA, "data": shown}, notes


def _without_loading(spec: Mapping[str, Any], removed: set[str]) -> Json:
    """A copy of the specification without what loads. An inner view without values of its own gets
    the data of the chart."""
    datasets = spec.get("datasets")
    named = datasets if isinstance(datasets, Mapping) else {}

    def copied(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [copied(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        removed.update(_LOADING & value.keys())
        copy = {key: copied(item) for key, item in value.items() if key not in _LOADING}
        data = copy.get("data")
        if value is not spec and isinstance(data, Mapping):
            own = data.get("name") in named or any(name in data for name in _OWN_DATA)
            copy = copy if own else {key: copy[key] for key in copy if key != "data"}
        return copy

    cleaned: Json = copied(spec)
    return cleaned


def _without_rows(spec: Json) -> Json:
    """The chart's title, and that there are no rows."""
    view: Json = {
        "$schema": SCHEMA,
        "data": {"values": [{}]},
        "width": 300,
        "height": 120,
        "mark": {"type": "text", "fontSize": 14, "color": "#666666"},
        "encoding": {"text": {"value": "No rows"}},
    }
    return {**view, "title": spec["title"]} if "title" in spec else view
