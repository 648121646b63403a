"""Makes a specification harmless and complete: takes out what loads something, puts the rows in.

A specification holds no data; it is written by an agent, so that nothing in it is taken on trust.
Vega-Lite names whatever it loads in a property `url` (data, images, also those that a lookup takes
its values from) and whatever it links to in `href`; vega-embed reads `usermeta`, which can name
files and hold HTML. Expressions can call no function that loads. They are checked once Vega-Lite
has compiled them (see `expressions`). Functions that only Vega-Lite's own expressions may call are
refused here, where the author's text can still be told apart from Vega-Lite's. `picture` checks
what values of the data can still do in a picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.client.formats.service_text import quote_service, shortened
from airflow_provider_platform.results.charts.axes import readable_axes
from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.fields import GENERATORS, resolve_fields
from airflow_provider_platform.results.charts.limits import ChartLimits
from airflow_provider_platform.results.charts.records import (
    duplicates,
    ranks,
    records_of,
    structured,
    unique_names,
    years,
)

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

_DROPPED = {"$schema", "url", "usermeta", "src", "srcset", "xlink:href", "baseURL", "loader"}
_VIEWS = ("mark", "layer", "facet", "hconcat", "vconcat", "concat", "repeat")
_SORTED = {"x", "y", "color", "fill", "stroke", "shape", "xOffset", "yOffset"}
_UNSAFE = re.compile(r"\W")
_SELECTION_CALL = re.compile(r"vlSelection|\bmodify\s*\(")
"""Calls that read and write the stores of selections: with arguments of an author's own, they call
what they are given."""
_HTTPS = re.compile(r"https://[^\s\x00-\x20\"'<>\\^`{|}]+")

Json = dict[str, Any]


@dataclass
class Drawable:
    """A specification with its rows, and what a person has to know of the picture."""

    spec: Json
    notes: list[str] = field(default_factory=list)
    is_empty: bool = False
    """Whether the result has no rows: the picture says so in the place of the chart."""
    labels: frozenset[str] = frozenset()
    """Columns whose values are labels, each with a place of its own."""


def drawable(
    spec: Mapping[str, Any],
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    limits: ChartLimits | None = None,
) -> Drawable:
    """The specification that is drawn. Raises ChartError for what is none, for a field that the
    rows lack, and for numbers that are none."""
    limits = limits or ChartLimits()
    notes: list[str] = []
    cleaned = without_loading(spec, limits, notes)
    if not any(name in cleaned for name in _VIEWS):
        other = " (but a Vega specification)" if "marks" in cleaned else ""
        raise ChartError(
            f"The chart is not a Vega-Lite specification{other}: it has none of "
            f"{', '.join(_VIEWS)}. Ask for the chart again."
        )
    names = unique_names(columns)
    read = _named(cleaned, names)
    fields = resolve_fields(
        cleaned, names, structured(names, rows, read), years(columns, names, rows, read)
    )
    notes += fields.notes
    if not rows:
        return Drawable(_without_rows(cleaned), [*notes, "The query returned no rows."], True)
    notes += duplicates(columns, names, rows)
    records = records_of(columns, rows, fields.uses, fields.keys, notes, read)
    _replaced(cleaned, notes)
    labels = frozenset(fields.uses.labels)
    ordered = _ordered(fields.spec, _rank(records, labels, fields.keys))
    return Drawable(with_rows(readable_axes(ordered, records), records), notes, labels=labels)


def without_loading(
    spec: Mapping[str, Any], limits: ChartLimits | None = None, notes: list[str] | None = None
) -> Json:
    """A copy in which nothing loads anything, and links lead to https only.

    `notes` takes what was left out and would be seen. Raises ChartError for what is no object, and
    beyond the limits before the rest is read.
    """
    if not isinstance(spec, Mapping):
        raise ChartError("The chart is not a specification, because it is not a JSON object.")
    cleaner = _Cleaner(limits or ChartLimits(), notes if notes is not None else [])
    cleaned: Json = cleaner.clean(spec, cleaner.limits.depth)
    return cleaned


class _Cleaner:
    """Copies a specification without what loads; counts what it copies."""

    def __init__(self, limits: ChartLimits, notes: list[str]) -> None:
        self.limits = limits
        self._left = limits.specification_characters
        self._notes = notes

    def clean(self, value: Any, depth: int) -> Any:
        if depth < 0:
            raise ChartError("The chart's specification is nested too deeply.")
        self._left -= len(value) + 2 if isinstance(value, str) else 2
        if self._left < 0:
            raise ChartError(
                "The chart's specification is longer than the limit of "
                f"{self.limits.specification_characters:,} characters. Ask for the chart again "
                "without inline data: the chart uses the rows of the result."
            )
        if isinstance(value, Mapping):
            cleaned = {}
            for key, item in value.items():
                self._left -= len(str(key)) + 2
                if key in _DROPPED:
                    self._note(key, item, value)
                    continue
                if key == "href":
                    link = safe_link(item)
                    if link is not None:
                        cleaned[key] = link
                    else:
                        self._say(
                            "The chart leaves out links that do not have a fixed https address."
                        )
                    continue
                cleaned[str(key)] = self.clean(item, depth - 1)
            return cleaned
        if isinstance(value, (list, tuple)):
            return [self.clean(item, depth - 1) for item in value]
        if isinstance(value, str) and _SELECTION_CALL.search(value):
            raise ChartError(
                "The chart's specification calls an internal function of Vega-Lite: "
                f"{quote_service(value)}. Ask for the chart without that expression."
            )
        return value

    def _note(self, key: str, item: Any, owner: Mapping[str, Any]) -> None:
        """Say what is left out, where a picture would show it."""
        if key not in ("url", "src"):
            return
        address = f" '{shortened(item, 100)}'" if isinstance(item, str) else ""
        is_image = "mark" in owner or owner.get("type") == "image" or not isinstance(item, str)
        if is_image:
            self._say(
                f"The image{address} is left out, because charts never load external resources."
            )
        else:
            self._say(
                f"The chart's own data{address} are not loaded. The chart shows the rows of the "
                "query instead. Values that the chart looks up in its own data stay "
                "empty."
            )

    def _say(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)


def _named(spec: Json, names: Sequence[str]) -> set[str]:
    """The columns whose names are anywhere in the specification: no others can be read.

    All for shapes of maps, which are whole rows, and for what shows whole rows on a page.
    """
    texts: list[str] = []
    left: list[Any] = [{key: item for key, item in spec.items() if key != "datasets"}]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value.replace("\\", ""))
        elif isinstance(value, Mapping):
            left += [*value.keys(), *(item for key, item in value.items() if key != "values")]
        elif isinstance(value, list):
            left += value
    if "geoshape" in texts or ("data" in texts and "content" in texts):
        return set(names)
    text = "\n".join(texts)
    return {name for name in names if name.replace("\\", "") in text}


def _rank(records: list[Json], labels: Iterable[str], keys: Mapping[str, str]) -> dict[str, str]:
    """Add the order of whole numbers that are texts to the rows; return its key by that of the
    texts."""
    names = {}
    for name in sorted(labels):
        key = keys.get(name, name)
        places = ranks([record.get(key) for record in records])
        if places is not None:
            names[key] = f"{_UNSAFE.sub('_', key)}_rank"
            for record, place in zip(records, places, strict=True):
                record[names[key]] = place
    return names


def _ordered(value: Any, ranked: Mapping[str, str]) -> Any:
    """The specification with labels that are whole numbers in the order of the numbers."""
    if not ranked:
        return value
    if isinstance(value, list):
        return [_ordered(item, ranked) for item in value]
    if not isinstance(value, Mapping):
        return value
    ordered = {}
    for name, item in value.items():
        ordered[name] = _ordered(item, ranked)
        if name != "encoding" or not isinstance(item, Mapping) or value.get("transform"):
            continue
        for channel, part in ordered[name].items():
            if channel in _SORTED and isinstance(part, Mapping) and part.get("field") in ranked:
                by = {"field": ranked[str(part["field"])], "op": "min"}
                ordered[name][channel] = {"sort": by, **part}
    return ordered


def _replaced(spec: Json, notes: list[str]) -> None:
    """Note data of the specification that the rows take the place of."""
    data = spec.get("data")
    if not isinstance(data, Mapping):
        return
    values = data.get("values")
    if isinstance(data.get("name"), str):
        datasets = spec.get("datasets")
        values = values or (datasets.get(data["name"]) if isinstance(datasets, Mapping) else None)
    if values:
        count = f" ({len(values):,} rows)" if isinstance(values, list) else ""
        notes.append(
            f"The specification contains its own data{count}. The chart shows the rows of the "
            "query instead."
        )


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


def safe_link(value: Any) -> Any:
    """A link that is an https address as it stands, else None.

    One that comes of a field or an expression has no address before the chart is drawn.
    """
    constant = value.get("value") if isinstance(value, Mapping) else value
    if not isinstance(constant, str) or _HTTPS.fullmatch(constant) is None:
        return None
    return {"value": constant} if isinstance(value, Mapping) else constant


def with_rows(spec: Json, records: list[Json]) -> Json:
    """The specification with the rows where it expects its data.

    They are the data of the whole chart, under the name that it has there, and of every other name
    that is used and not defined. Data that the chart makes itself (a sequence) stays.
    """
    top = spec.get("data")
    data: Json = dict(top) if isinstance(top, Mapping) else {}
    own = spec.get("datasets")
    datasets: Json = dict(own) if isinstance(own, Mapping) else {}
    drawn = {key: item for key, item in spec.items() if key not in ("data", "datasets")}
    inner = {key: _inner(item) for key, item in drawn.items()}
    names = {name for name in _names(inner) if not datasets.get(name)}
    if any(key in data for key in GENERATORS):
        inner["data"] = data
    else:
        kept: Json = {"values": records}
        parse = (
            data.get("format", {}).get("parse") if isinstance(data.get("format"), dict) else None
        )
        if isinstance(parse, Mapping):
            kept["format"] = {"parse": parse}
        if isinstance(data.get("name"), str):
            kept["name"] = data["name"]
            names.discard(data["name"])
            datasets.pop(data["name"], None)
        inner["data"] = kept
    datasets.update(dict.fromkeys(sorted(names), records))
    if datasets:
        inner["datasets"] = datasets
    return {"$schema": SCHEMA, **inner}


def _inner(value: Any) -> Any:
    """Views and transforms without data sources that held an address and now hold nothing."""
    if isinstance(value, list):
        return [_inner(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    inner = {}
    for key, item in value.items():
        if key == "data" and isinstance(item, Mapping):
            if any(name in item for name in ("name", "values", *GENERATORS)):
                inner[key] = dict(item)
            elif "key" in value:  # the source of a lookup, which must have one
                inner[key] = {"values": []}
            continue
        inner[key] = _inner(item)
    return inner


def _names(value: Any) -> Iterator[str]:
    """Names of data sources that views and lookups use without defining them."""
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key == "data" and isinstance(item, Mapping):
                name = item.get("name")
                if isinstance(name, str) and not any(k in item for k in ("values", *GENERATORS)):
                    yield name
            else:
                yield from _names(item)
