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

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.results.charts.errors import ChartError

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
GENERATORS = ("sequence", "sphere", "graticule")
"""Data that Vega-Lite makes by itself."""
NUMERIC = re.compile(r"int|double|float|decimal|numeric|number|real", re.IGNORECASE)

_DROPPED = {"$schema", "url", "usermeta", "src", "srcset", "xlink:href", "baseURL", "loader"}
_SELECTION_CALL = re.compile(r"vlSelection|\bmodify\s*\(")
"""Calls that read and write the stores of selections: with arguments of an author's own, they call
what they are given."""
_HTTPS = re.compile(r"https://[^\s\x00-\x20\"'<>\\^`{|}]+")

Json = dict[str, Any]


def drawable(
    spec: Mapping[str, Any],
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    *,
    depth: int,
) -> Json:
    """The specification that is drawn. Raises ChartError for what is none."""
    return with_rows(without_loading(spec, depth=depth), columns, rows)


def without_loading(spec: Mapping[str, Any], *, depth: int = 64) -> Json:
    """A copy in which nothing loads anything, and links lead to https only."""
    if not isinstance(spec, Mapping):
        raise ChartError("The chart is no specification: it is not a JSON object.")
    cleaned: Json = _clean(spec, depth)
    return cleaned


def _clean(value: Any, depth: int) -> Any:
    if depth < 0:
        raise ChartError("The chart's specification is nested too deeply.")
    if isinstance(value, Mapping):
        found = {}
        for key, item in value.items():
            if key in _DROPPED:
                continue
            if key == "href":
                link = safe_link(item)
                if link is not None:
                    found[key] = link
                continue
            found[str(key)] = _clean(item, depth - 1)
        return found
    if isinstance(value, (list, tuple)):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, str) and _SELECTION_CALL.search(value):
        raise ChartError(
            f"The chart's specification calls a function of selections: {quote_service(value)}. "
            "Only Vega-Lite may call those. Ask for the chart without that expression."
        )
    return value


def safe_link(value: Any) -> Any:
    """A link that is an https address as it stands, else None.

    One that comes of a field or an expression has no address before the chart is drawn.
    """
    constant = value.get("value") if isinstance(value, Mapping) else value
    if not isinstance(constant, str) or _HTTPS.fullmatch(constant) is None:
        return None
    return {"value": constant} if isinstance(value, Mapping) else constant


def with_rows(
    spec: Json, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> Json:
    """The specification with the rows where it expects its data.

    They are the data of the whole chart, under the name that it has there, and of every other name
    that is used and not defined. Data that the chart makes itself (a sequence) stays.
    """
    records = list(records_of(columns, rows))
    top = spec.get("data")
    data: Json = dict(top) if isinstance(top, Mapping) else {}
    given = spec.get("datasets")
    datasets: Json = dict(given) if isinstance(given, Mapping) else {}
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
    found = {}
    for key, item in value.items():
        if key == "data" and isinstance(item, Mapping):
            if any(name in item for name in ("name", "values", *GENERATORS)):
                found[key] = dict(item)
            elif "key" in value:  # the source of a lookup, which must have one
                found[key] = {"values": []}
            continue
        found[key] = _inner(item)
    return found


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


def records_of(
    columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]
) -> Iterator[Json]:
    """The rows as objects of plain JSON.

    Numbers that came as text become numbers where their column is one of numbers. A column
    `orders.count` can also be reached as the field `count` of `orders`, which is what Vega-Lite
    takes such a name for.
    """
    names = [str(column.get("name", "")) for column in columns]
    numeric = [bool(NUMERIC.search(str(column.get("type") or ""))) for column in columns]
    for row in rows:
        record: Json = {}
        for name, is_numeric, value in zip(names, numeric, row, strict=False):
            record[name] = plain(value, is_numeric)
        for name in names:
            _nest(record, name, names)
        yield record


def _nest(record: Json, name: str, names: list[str]) -> None:
    path = name.split(".")
    if len(path) < 2 or path[0] in names or name not in record:
        return
    at = record
    for part in path[:-1]:
        deeper = at.setdefault(part, {})
        if not isinstance(deeper, dict):
            return
        at = deeper
    at.setdefault(path[-1], record[name])


def plain(value: Any, numeric: bool = False) -> Any:
    """A value of a row as JSON has it; a number that JSON lacks is no value."""
    if isinstance(value, Decimal) or (numeric and isinstance(value, str)):
        try:
            value = float(value)
        except (ValueError, OverflowError):
            return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)
