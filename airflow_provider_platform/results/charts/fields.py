"""The fields that a specification reads: whether its data have them, and what they are read as.

Vega draws a field that the data lack as `undefined`: an empty picture, or one bar of everything,
without an error. So each field of encodings and transforms is looked up here before anything is
drawn, in the columns of the result and in the names that transforms make on the way.

Vega reads a field as a path: `a.b` and `a[0]` lead into objects, `a\\.b` and `['a.b']` name one
column. A field that is the name of a column as it stands is written as the path of that column.
Vega-Lite writes such paths again in its own way, which loses brackets, quotes and all dots but the
first; a column with such a name gets another key. The title is the name as it stands.

What a column is read as (numbers, dates, labels) decides how its values are sent: see `records`.
Sources: vega.github.io/vega-lite/docs (transforms, encodings, types), `splitAccessPath` of
vega-util, `defaultType` and `replacePathInField` of Vega-Lite 5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.expressions import ExpressionError, members_of

Json = dict[str, Any]
Names = frozenset[str] | None
"""The names that a view's rows have; None where they are known only once Vega has run."""

GENERATORS = ("sequence", "sphere", "graticule")
"""Data that Vega-Lite makes by itself."""

_QUIET = {"tooltip", "href", "description", "key", "ariaLabel"}
"""Channels that a picture does not show."""
_COUNTS = {"count", "valid", "missing", "distinct", "values", "argmin", "argmax"}
"""Aggregates of values that need not be numbers."""
_SHOWN_COLUMNS = 20
_PART = re.compile(
    r"\['((?:\\.|[^'\\])*)'\]|\[\"((?:\\.|[^\"\\])*)\"\]|\[([^\]'\"]*)\]|((?:\\.|[^.\[\]\\])+)|\.",
    re.DOTALL,
)
_SPECIAL = re.compile(r"[.\[\]\\'\"]")
_CATEGORIES = {"time": "temporal", "utc": "temporal", "ordinal": "nominal", "band": "nominal",
               "point": "nominal"}  # fmt: skip


@dataclass
class Uses:
    """Names of columns by what the chart reads them as."""

    numbers: set[str] = field(default_factory=set)
    """Drawn on a scale of numbers."""
    computed: set[str] = field(default_factory=set)
    """Summed, binned, stacked, sorted by: numbers where they can be."""
    times: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    """Drawn as they are: on nominal and ordinal scales, as groups."""
    compared: set[str] = field(default_factory=set)
    """Read by expressions and filters, in the form that the service sends."""
    parsed: set[str] = field(default_factory=set)
    """Read by the specification's own rules (`format.parse`), in that form too."""


@dataclass
class Fields:
    """A specification whose fields lead to its columns."""

    spec: Json
    uses: Uses
    keys: dict[str, str]
    """Columns that have another key in the rows, since Vega-Lite cannot write their names."""
    notes: list[str]


def resolve_fields(
    spec: Mapping[str, Any],
    names: Sequence[str],
    structured: Iterable[str] = (),
    years: Iterable[str] = (),
) -> Fields:
    """Find the columns of all fields of a cleaned specification.

    :param names: the columns of the result, none twice
    :param structured: those that hold objects and lists, which a path may lead into
    :param years: those whose values are years, as numbers: Vega takes these for milliseconds
    :raises ChartError: a field that neither the result nor a transform has
    """
    reader = _Reader(names, frozenset(structured), frozenset(years), spec)
    resolved, _ = reader.view(spec, frozenset(names) or None, {}, top=True)
    reader.refuse_missing()
    return Fields(resolved, reader.uses, reader.keys, reader.notes)


def split_path(path: str) -> list[str]:
    """The parts of a path as Vega reads it; one part where it is no path."""
    parts, end = [], 0
    for match in _PART.finditer(path):
        if match.start() != end:
            return [path]
        end = match.end()
        part = next((group for group in match.groups() if group is not None), None)
        if part is not None:
            parts.append(re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL))
    return parts if parts and end == len(path) else [path]


class _Reader:
    """Walks views from the outside in; the rows of a view have the names that its parents left."""

    def __init__(
        self,
        names: Sequence[str],
        structured: frozenset[str],
        years: frozenset[str],
        spec: Mapping[str, Any],
    ) -> None:
        self._columns = list(names)
        self._structured = structured
        self._years = years
        self._dated: set[str] = set()
        """Years that the view at hand draws on a scale of time."""
        datasets, data = spec.get("datasets"), spec.get("data")
        self._datasets = datasets if isinstance(datasets, Mapping) else {}
        form = data.get("format") if isinstance(data, Mapping) else None
        parse = form.get("parse") if isinstance(form, Mapping) else None
        self._parsed = set(parse) if isinstance(parse, Mapping) else set()
        self._missing: dict[str, Names] = {}
        self._quiet: dict[str, None] = {}
        self.uses = Uses(parsed=self._parsed & set(self._columns))
        self.keys: dict[str, str] = {}
        self.notes: list[str] = []

    def refuse_missing(self) -> None:
        """Raise ChartError for fields that are read and not there; note those not drawn."""
        for name in self._quiet:
            if name not in self._missing:
                self.notes.append(
                    f"The result has no column for the field {_quoted(name)}, so this field of "
                    "the tooltip stays empty."
                )
        if not self._missing:
            return
        missing = []
        for name, scope in self._missing.items():
            similar = _similar(name, scope or self._columns)
            hint = f" (did you mean {_quoted(similar)}?)" if similar else ""
            if name in self._columns:
                hint = " (the result has this column, but a transform of the chart removes it)"
            missing.append(_quoted(name) + hint)
        columns = [_quoted(name) for name in self._columns[:_SHOWN_COLUMNS]]
        if len(self._columns) > len(columns):
            columns.append(f"… {len(self._columns) - len(columns)} more")
        which = "a field" if len(missing) == 1 else "fields"
        raise ChartError(
            f"The chart uses {which} that its rows do not have: {', '.join(missing[:10])}. The "
            f"result's columns are: {', '.join(columns)}. Names must match exactly. Ask for the "
            "chart again with these columns."
        )

    # Views

    def view(
        self,
        view: Mapping[str, Any],
        scope: Names,
        repeats: Mapping[str, list[str]],
        *,
        top: bool = False,
    ) -> tuple[Json, Names]:
        """A copy of a view, and the names that its marks can read."""
        copied: Json = dict(view)
        scope = self._own_data(view, scope, top)
        if isinstance(view.get("transform"), list):
            copied["transform"] = []
            for step in view["transform"]:
                written, scope = self._transform(step, scope)
                copied["transform"].append(written)
        if "repeat" in view:
            copied["repeat"], repeats = self._repeat(view["repeat"], scope, repeats)
        inner: list[Names] = []
        for name in ("layer", "concat", "hconcat", "vconcat"):
            if isinstance(view.get(name), list):
                copied[name] = []
                for child in view[name]:
                    if not isinstance(child, Mapping):
                        copied[name].append(child)
                        continue
                    written, left = self.view(child, scope, repeats)
                    inner.append(left)
                    copied[name].append(written)
        if isinstance(view.get("spec"), Mapping):
            copied["spec"], left = self.view(view["spec"], scope, repeats)
            inner.append(left)
        own = _union(inner) if inner else scope
        self._dated = set()
        if isinstance(view.get("encoding"), Mapping):
            copied["encoding"] = {
                channel: self._channel(channel, item, own, repeats)
                for channel, item in view["encoding"].items()
            }
        if isinstance(view.get("facet"), Mapping):
            facet = view["facet"]
            copied["facet"] = (
                self._channel("facet", facet, scope, repeats)
                if "field" in facet
                else {key: self._channel(key, facet[key], scope, repeats) for key in facet}
            )
        if self._dated:
            steps = copied.get("transform") if isinstance(copied.get("transform"), list) else []
            copied["transform"] = [*(steps or []), *map(self._date_of_year, sorted(self._dated))]
            self._dated = set()
        return copied, own

    def _date_of_year(self, name: str) -> Json:
        """A transform that makes the first day of a year."""
        year = f"datum[{json.dumps(self.keys.get(name, name))}]"
        return {
            "calculate": f"isValid({year}) ? datetime({year}, 0) : null",
            "as": _dated_key(name),
        }

    def _own_data(self, view: Mapping[str, Any], scope: Names, top: bool) -> Names:
        """The names of a view's own data, the parents' where it has none; see `with_rows`."""
        data = view.get("data")
        if not isinstance(data, Mapping):
            return scope
        if any(name in data for name in GENERATORS):
            return None
        if top:
            return scope
        values = data.get("values")
        if isinstance(data.get("name"), str):
            values = self._datasets.get(data["name"])
            if not values:
                return frozenset(self._columns) or None
        elif "values" not in data:
            return scope
        if not isinstance(values, list) or not all(isinstance(row, Mapping) for row in values):
            return None
        return frozenset(str(key) for row in values for key in row) or None

    def _repeat(
        self, repeat: Any, scope: Names, repeats: Mapping[str, list[str]]
    ) -> tuple[Any, Mapping[str, list[str]]]:
        """What a view is repeated for, as paths, and the names by `repeat`, `row`, `column`,
        `layer`."""
        by_channel = repeat if isinstance(repeat, Mapping) else {"repeat": repeat}
        written: Json = {}
        named = dict(repeats)
        for key, fields in by_channel.items():
            if not isinstance(fields, list):
                written[key] = fields
                continue
            named[key] = []
            written[key] = []
            for item in fields:
                path, name = self._reference(item, scope, titled=False)
                written[key].append(path)
                if name is not None:
                    named[key].append(name)
        return (written if isinstance(repeat, Mapping) else written["repeat"]), named

    # Transforms

    def _transform(self, step: Any, scope: Names) -> tuple[Any, Names]:
        if not isinstance(step, Mapping):
            return step, scope
        copied: Json = dict(step)

        def path(item: Any, use: set[str] | None = None) -> Any:
            written, name = self._reference(item, scope)
            if use is not None:
                self._use(name, use)
            return written

        def paths(key: str, use: set[str] | None = None) -> list[str]:
            """Write the fields of a list anew; their names."""
            named_fields = copied.get(key)
            if not isinstance(named_fields, list):
                return []
            copied[key] = [path(item, use) for item in named_fields]
            return [self._name(item, scope) for item in named_fields if isinstance(item, str)]

        uses = self.uses
        if "sort" in copied:
            copied["sort"] = self._sort(copied["sort"], scope)
        groups = paths("groupby", uses.labels)
        made = _made(step)
        for operation in ("aggregate", "joinaggregate", "window"):
            if isinstance(step.get(operation), list):
                copied[operation] = [self._operation(item, scope) for item in step[operation]]
                made = [_made_by(item) for item in step[operation] if isinstance(item, Mapping)]
                if operation == "aggregate":
                    return copied, frozenset([*groups, *made])
                return copied, _with(scope, made)
        if "calculate" in step:
            self._expression(step["calculate"], scope)
            return copied, _with(scope, made)
        if "filter" in step:
            copied["filter"] = self._predicate(step["filter"], scope)
            return copied, scope
        if "fold" in step:
            paths("fold", uses.computed)
            return copied, _with(scope, made or ["key", "value"])
        if "flatten" in step:
            return copied, _with(scope, [*paths("flatten"), *made])
        if "lookup" in step:
            copied["lookup"] = path(step["lookup"], uses.compared)
            source = step.get("from")
            fields = source.get("fields") if isinstance(source, Mapping) else None
            named = fields if isinstance(fields, list) else []
            if not made and not named:
                return copied, None
            return copied, _with(scope, made or [str(name) for name in named])
        if "pivot" in step:
            copied["pivot"] = path(step["pivot"], uses.labels)
            copied["value"] = path(step.get("value"), uses.computed)
            return copied, None
        for operation, defaults in (
            ("density", ["value", "density"]),
            ("quantile", ["prob", "value"]),
        ):
            if operation in step:
                copied[operation] = path(step[operation], uses.computed)
                return copied, frozenset([*groups, *(made or defaults)])
        for operation in ("regression", "loess"):
            if operation in step:
                copied[operation] = path(step[operation], uses.computed)
                copied["on"] = path(step.get("on"), uses.computed)
                if step.get("params"):
                    return copied, None
                read = [self._name(step[key], scope) for key in ("on", operation) if key in step]
                return copied, frozenset([*groups, *(made or read)])
        if "stack" in step:
            copied["stack"] = path(step["stack"], uses.computed)
            return copied, _with(scope, [*made, *(f"{name}_end" for name in made)])
        if "impute" in step:
            copied["impute"] = path(step["impute"], uses.computed)
            copied["key"] = path(step.get("key"), uses.labels)
            return copied, scope
        if "bin" in step or "timeUnit" in step or "extent" in step:
            if "extent" in step:
                copied["extent"] = path(step["extent"], uses.computed)
            else:
                use = uses.computed if "bin" in step else uses.times
                copied["field"] = path(step.get("field"), use)
            return copied, _with(scope, [*made, *(f"{name}_end" for name in made)])
        return copied, scope if "sample" in step else None

    def _operation(self, item: Any, scope: Names) -> Any:
        """One of the operations of an aggregate or a window."""
        if not isinstance(item, Mapping) or "field" not in item:
            return item
        path, name = self._reference(item["field"], scope)
        self._use(name, self.uses.compared if item.get("op") in _COUNTS else self.uses.computed)
        return {**item, "field": path}

    def _sort(self, sort: Any, scope: Names) -> Any:
        """A sort of a transform or of a channel: `{"field": …}`, a list of these, or values."""
        if isinstance(sort, list):
            return [self._sort(item, scope) if isinstance(item, Mapping) else item for item in sort]
        if not isinstance(sort, Mapping) or "field" not in sort:
            return sort
        path, name = self._reference(sort["field"], scope)
        self._use(name, self.uses.computed)
        return {**sort, "field": path}

    def _predicate(self, test: Any, scope: Names, depth: int = 32) -> Any:
        if isinstance(test, str):
            self._expression(test, scope)
        elif isinstance(test, Mapping) and depth:
            copied = dict(test)
            for key in ("and", "or"):
                if isinstance(test.get(key), list):
                    copied[key] = [self._predicate(item, scope, depth - 1) for item in test[key]]
            if "not" in test:
                copied["not"] = self._predicate(test["not"], scope, depth - 1)
            if "field" in test:
                copied["field"], name = self._reference(test["field"], scope)
                self._use(name, self.uses.compared)
            return copied
        return test

    def _expression(self, text: Any, scope: Names) -> None:
        """Look up the members of `datum` that an expression reads."""
        try:
            read = members_of(text, "datum") if isinstance(text, str) else []
        except ExpressionError:
            return  # refused, with its reason, once it is compiled
        for path in read:
            known = {*self._columns, *(scope or ())}
            name = next(
                (
                    ".".join(path[:length])
                    for length in range(len(path), 0, -1)
                    if ".".join(path[:length]) in known
                ),
                path[0],
            )
            if scope is None or name in scope:
                self._use(name, self.uses.compared)
            else:
                self._missing.setdefault(name, scope)

    # Encodings

    def _channel(
        self, channel: str, item: Any, scope: Names, repeats: Mapping[str, list[str]]
    ) -> Any:
        if isinstance(item, list):
            return [self._channel(channel, part, scope, repeats) for part in item]
        if not isinstance(item, Mapping):
            return item
        copied: Json = dict(item)
        reference, quiet = item.get("field"), channel in _QUIET
        names: list[str] = []
        if isinstance(reference, str):
            copied["field"], name = self._reference(reference, scope, quiet=quiet)
            if name is not None:
                names = [name]
                is_dated = name in self._years and _is_temporal(channel, item)
                if is_dated:
                    self._dated.add(name)
                    copied["field"] = _dated_key(name)
                if (is_dated or _SPECIAL.search(name)) and not _has_title(item):
                    copied["title"] = _title(name, item)
        elif isinstance(reference, Mapping):
            names = repeats.get(str(reference.get("repeat")), [])
        for name in names:
            self._use_as(name, channel, item)
        aggregate = item.get("aggregate")
        if isinstance(aggregate, Mapping):
            copied["aggregate"] = {
                key: self._reference(value, scope)[0] for key, value in aggregate.items()
            }
        if "sort" in item:
            copied["sort"] = self._sort(item["sort"], scope)
        if "condition" in item:
            copied["condition"] = self._condition(channel, item["condition"], scope, repeats)
        return copied

    def _condition(
        self, channel: str, item: Any, scope: Names, repeats: Mapping[str, list[str]]
    ) -> Any:
        if isinstance(item, list):
            return [self._condition(channel, part, scope, repeats) for part in item]
        if not isinstance(item, Mapping):
            return item
        copied: Json = self._channel(channel, item, scope, repeats)
        if "test" in item:  # which also reads what the encodings have aggregated
            copied["test"] = self._predicate(item["test"], None)
        return copied

    def _use_as(self, name: str, channel: str, item: Mapping[str, Any]) -> None:
        measure, aggregate = _type_of(channel, item), item.get("aggregate")
        if isinstance(aggregate, Mapping) or (isinstance(aggregate, str) and aggregate in _COUNTS):
            self._use(name, self.uses.compared)
        elif _is_temporal(channel, item):
            if name not in self._years:
                self._use(name, self.uses.times)
        elif measure.startswith("q"):
            self._use(name, self.uses.numbers)
        elif not measure.startswith("g"):
            self._use(name, self.uses.labels)

    # Names

    def _use(self, name: str | None, use: set[str]) -> None:
        if name is not None and name in self._columns:
            use.add(name)

    def _name(self, path: str, scope: Names) -> str:
        """The name that a path leads to: of a column, else of what a transform made."""
        known = {*self._columns, *(scope or ())}
        if path in known:
            return path
        parts = split_path(path)
        joined = ".".join(parts)
        if len(parts) > 1 and joined not in known and parts[0] in self._structured:
            return parts[0]
        return joined if joined in known or len(parts) == 1 else path

    def _reference(
        self, path: Any, scope: Names, *, quiet: bool = False, titled: bool = True
    ) -> tuple[Any, str | None]:
        """A field as Vega-Lite shall have it, and the name that it leads to."""
        if not isinstance(path, str):
            return path, None
        name = self._name(path, scope)
        if scope is not None and name not in scope:
            if quiet:
                self._quiet.setdefault(name)
            else:
                self._missing.setdefault(name, scope)
            return path, None
        if name != path and len(split_path(path)) > 1 and name in self._structured:
            return path, None  # a path into an object
        return self._written(name, titled), name

    def _written(self, name: str, titled: bool) -> str:
        special = _SPECIAL.findall(name)
        if not special or (name not in self._columns and special != ["."]):
            return name
        if special == ["."] or not titled:
            return _SPECIAL.sub(r"\\\g<0>", name)
        if name not in self.keys:
            number = self._columns.index(name) + 1
            key = f"column_{number}"
            while key in self._columns:
                key += "_"
            self.keys[name] = key
        return self.keys[name]


def _with(scope: Names, made: Iterable[str]) -> Names:
    return None if scope is None else scope | frozenset(made)


def _union(scopes: list[Names]) -> Names:
    names: frozenset[str] = frozenset()
    for scope in scopes:
        if scope is None:
            return None
        names |= scope
    return names


def _made(step: Mapping[str, Any]) -> list[str]:
    """The names under `as`."""
    made = step.get("as")
    return [str(name) for name in (made if isinstance(made, list) else [made]) if name is not None]


def _made_by(operation: Mapping[str, Any]) -> str:
    """The name that an operation's result has."""
    if operation.get("as") is not None:
        return str(operation["as"])
    field, op = operation.get("field"), str(operation.get("op"))
    return f"{op}_{field}" if field else op


def _type_of(channel: str, item: Mapping[str, Any]) -> str:
    """The type of a channel: its own, else Vega-Lite's for a channel like this."""
    if isinstance(item.get("type"), str):
        return str(item["type"]).lower()
    aggregate, scale = item.get("aggregate"), item.get("scale")
    if channel.startswith(("latitude", "longitude")):
        return "quantitative"
    if isinstance(item.get("sort"), list):
        return "ordinal"
    if item.get("timeUnit"):
        return "temporal"
    if item.get("bin") or isinstance(aggregate, str):
        return "quantitative"
    if isinstance(scale, Mapping) and isinstance(scale.get("type"), str):
        return _CATEGORIES.get(scale["type"], "quantitative")
    return "nominal"


def _is_temporal(channel: str, item: Mapping[str, Any]) -> bool:
    return bool(item.get("timeUnit")) or _type_of(channel, item).startswith("t")


def _dated_key(name: str) -> str:
    return _SPECIAL.sub("_", name) + "_as_date"


def _has_title(item: Mapping[str, Any]) -> bool:
    places = (item, item.get("axis"), item.get("legend"), item.get("header"))
    return any(isinstance(place, Mapping) and "title" in place for place in places)


def _title(name: str, item: Mapping[str, Any]) -> str:
    """The title that Vega-Lite gives a channel."""
    aggregate, unit = item.get("aggregate"), item.get("timeUnit")
    if item.get("bin") is True or isinstance(item.get("bin"), Mapping):
        return f"{name} (binned)"
    if isinstance(unit, str):
        return f"{name} ({unit})"
    return f"{aggregate.capitalize()} of {name}" if isinstance(aggregate, str) else name


def _quoted(name: str) -> str:
    return f"'{quote_service(name)}'"


def _similar(name: str, known: Iterable[str]) -> str | None:
    plain = {_plain(candidate): candidate for candidate in sorted(known)}
    matches = get_close_matches(_plain(name), list(plain), n=1, cutoff=0.8)
    return plain[matches[0]] if matches else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold() or name
