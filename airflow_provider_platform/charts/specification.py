"""The specification that is drawn: it loads nothing, and the rows are its data.

An agent writes the specification without data. Vega-Lite names everything that it loads or links to
in `url`, `href` and `src`, and vega-embed reads `usermeta`. All of these are removed, wherever they
are. The rows replace the data of the chart as a whole; an inner view keeps values of its own (such
as the line of a goal).

Vega reads the rows as objects. The service sends numbers as strings, JavaScript has no integers
beyond 2^53, and Vega takes a year for milliseconds of 1970. So a value's form follows from its
column's type and from how the channels of the chart read the column.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.readable_dates import short_moments
from airflow_provider_platform.client.redaction import quote_service

Json = dict[str, Any]

EXACT = 2**53 - 1
"""The largest number up to which JavaScript has every whole number."""

_NUMERIC_TYPE = re.compile(
    r"u?(tiny|small|medium|big|long)?int(eger)?\d*\b|double|float|decimal|numeric|number|real\b",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_YEAR = re.compile(r"[12]\d{3}", re.ASCII)
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Control characters and lone surrogates: the library crashes when it measures such a text."""
_PREDICATES = frozenset({"equal", "oneOf", "range", "lt", "lte", "gt", "gte", "valid"})
_COUNTS = frozenset({"count", "valid", "missing", "distinct", "values", "argmin", "argmax"})
"""Aggregates of values that need not be numbers."""


def records_of(
    spec: Mapping[str, Any],
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    notes: list[str],
) -> list[Json]:
    """The rows as objects of plain JSON, with the columns that the specification names: a page for
    a browser has no other column in it.

    Of two columns with one name, the first. A column `orders.count` is also the field `count` of
    `orders`, as Vega reads that name.

    :param notes: gets a sentence for each column with values that the chart cannot draw
    """
    text = json.dumps(spec, ensure_ascii=False).replace("\\", "")
    uses: defaultdict[str, set[str]] = defaultdict(set)
    for field, use in _uses(spec):
        uses[field.replace("\\", "")].add(use)
    values: dict[str, list[Any]] = {}
    for at, column in enumerate(columns):
        name = str(column.get("name") or f"column_{at + 1}")
        if name in values or name.replace("\\", "") not in text:
            continue
        if re.search(rf"datum[.\['\"\s]+{re.escape(name)}\b", text):
            uses[name].add("compared")
        cells = [row[at] if at < len(row) else None for row in rows]
        is_numeric = _NUMERIC_TYPE.match(str(column.get("type") or "")) is not None or any(
            isinstance(cell, (int, float, Decimal)) and not isinstance(cell, bool) for cell in cells
        )
        values[name] = _column(
            name, [_plain(cell) for cell in cells], is_numeric, uses[name], notes
        )
    records: list[Json] = [
        dict(zip(values, row, strict=True))
        for row in (zip(*values.values(), strict=True) if values else [()] * len(rows))
    ]
    for name in values:
        if "." in name:
            for record in records:
                _nest(record, name)
    return records


def _uses(value: Any) -> Iterator[tuple[str, str]]:
    """Each field that the specification reads, and how: as `number`, `time` or `label`, or
    `compared` with a constant."""
    if isinstance(value, Mapping):
        field, kind, aggregate = value.get("field"), value.get("type"), value.get("aggregate")
        if isinstance(field, str):
            if not _PREDICATES.isdisjoint(value):
                yield field, "compared"
            elif "timeUnit" in value or kind == "temporal":
                yield field, "time"
            elif kind == "quantitative" or value.get("bin") or aggregate:
                yield field, "label" if aggregate in _COUNTS else "number"
            else:
                yield field, "label"
        for key, item in value.items():
            if key not in ("data", "datasets"):
                yield from _uses(item)
    elif isinstance(value, list):
        for item in value:
            yield from _uses(item)


def _column(
    name: str, values: list[Any], is_numeric: bool, uses: set[str], notes: list[str]
) -> list[Any]:
    """The values of one column in the form that its uses need."""
    if "time" in uses:
        return [_moment(value) for value in values]
    if is_numeric or "number" in uses:
        numbers = [_number(value) for value in values]
        misfits = sum(
            number is None and value is not None
            for number, value in zip(numbers, values, strict=True)
        )
        if "number" in uses:
            if misfits:
                notes.append(
                    f"The chart leaves out {misfits:,} of {len(values):,} values of "
                    f"'{quote_service(name)}', because they are not numbers."
                )
            return numbers
        if not misfits and all(number is None or abs(number) <= EXACT for number in numbers):
            return numbers
        return [value if value is None else str(value) for value in values]
    if "compared" not in uses and (short := short_moments(values)) is not None:
        return list(short)
    return values


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return _NOT_IN_XML.sub("\ufffd", value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _plain(str(value))


def _number(value: Any) -> float | int | None:
    """The finite number that a value is or that its text is; None for anything else."""
    if not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value) if isinstance(value, int) else float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    is_whole = isinstance(number, float) and number.is_integer() and abs(number) <= EXACT
    return int(number) if is_whole else number


def _moment(value: Any) -> Any:
    """A day or a year as its first moment: JavaScript takes a day for one in UTC."""
    text = str(value)
    if _DAY.fullmatch(text):
        return f"{text}T00:00:00"
    return f"{text}-01-01T00:00:00" if _YEAR.fullmatch(text) else value


def _nest(record: Json, name: str) -> None:
    *parents, last = name.split(".")
    inner = record
    for part in parents:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return
    inner.setdefault(last, record[name])


class ChartError(PlatformError):
    """A chart could not be drawn; the message is the reason, as one sentence or two."""


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
