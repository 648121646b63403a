"""``/v1/load``: a query in terms of the semantic model, answered from the sample warehouse."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.sandbox.data_api import members
from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.state.warehouse import Warehouse

CACHE = checks.string(
    one_of=("stale-if-slow", "stale-while-revalidate", "must-revalidate", "no-cache")
)
REFRESHED = "2026-07-20T00:00:00.000Z"


def _directions(pairs: list[Any], name: str) -> list[str]:
    """A further rule for ``order``: each member rises or falls."""
    known = all(direction in ("asc", "desc") for _, direction in pairs)
    return [] if known else [f"{name}: a direction must be asc or desc"]


_NAMES = checks.array(checks.string())
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+)?")
_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPERATORS = ("equals", "notEquals", "contains", "notContains", "set", "notSet", *_COMPARISONS)
_QUERY: checks.Fields = {
    "measures": _NAMES,
    "dimensions": _NAMES,
    "segments": checks.array(checks.string(), maximum=0),
    "timeDimensions": checks.array(
        checks.structure(
            {
                "dimension": checks.needed(checks.string()),
                "granularity": checks.nullable(checks.string()),
                "dateRange": checks.either(
                    checks.string(), checks.array(checks.string(), minimum=2, maximum=2)
                ),
            }
        )
    ),
    "filters": checks.array(
        checks.structure(
            {
                "member": checks.needed(checks.string()),
                "operator": checks.needed(checks.string(one_of=_OPERATORS)),
                "values": checks.array(checks.anything),
            }
        )
    ),
    "order": checks.either(
        checks.mapping.also(lambda order, name: _directions(list(order.items()), name)),
        checks.array(checks.array(checks.string(), minimum=2, maximum=2)).also(_directions),
    ),
    "limit": checks.integer(minimum=1),
    "offset": checks.integer(minimum=0),
    "total": checks.boolean,
    "timezone": checks.string(),
    "responseFormat": checks.string(one_of=("default", "compact", "columnar")),
}
_ONE = checks.structure(_QUERY)


@dataclass(frozen=True)
class _Plan:
    """A query as SQL: the columns by the keys of the rows, and everything after SELECT."""

    columns: dict[str, str]
    rest: str
    group: str
    order: str


class BadQuery(ValueError):
    """The query names something that the data model does not have."""


BODY = checks.structure(
    {
        "query": checks.needed(checks.either(_ONE, checks.array(_ONE, minimum=1))),
        "queryType": checks.string(one_of=("multi",)),
        "cache": CACHE,
    }
)


def load(warehouse: Warehouse, query: dict[str, Any], *, default_rows: int) -> dict[str, Any]:
    """Return the result of one query, with at most ``default_rows`` rows if it has no limit. Raises
    ``BadQuery``, and the warehouse's ``QueryError``."""
    plan = _plan(query)
    selected = ", ".join(f'{sql} AS "{key}"' for key, sql in plan.columns.items())
    limit, offset = query.get("limit", default_rows), query.get("offset", 0)
    base = f"SELECT {selected} {plan.rest}{plan.group}"
    result = warehouse.query(f"{base}{plan.order} LIMIT {limit} OFFSET {offset}", limit=limit)
    keys = list(plan.columns)
    rows = [[_value(value) for value in row] for row in result.rows]
    answer: dict[str, Any] = {
        "query": {
            **query,
            "limit": limit,
            "offset": offset,
            "timezone": query.get("timezone", "UTC"),
        },
        "data": _formed(query.get("responseFormat", "default"), keys, rows),
        "annotation": _annotations(query, keys),
        "lastRefreshTime": REFRESHED,
        "dataSource": "default",
        "external": False,
        "slowQuery": False,
    }
    if query.get("total"):
        counted = warehouse.query(f"SELECT COUNT(*) FROM ({base})", limit=1)  # noqa: S608
        answer["total"] = counted.rows[0][0]
    return answer


def _plan(query: dict[str, Any]) -> _Plan:
    dimensions = {name: _sql(name, measure=False) for name in query.get("dimensions", [])}
    tests = []
    for time in query.get("timeDimensions", []):
        if time["dimension"] != members.TIME_DIMENSION:
            raise BadQuery(f"'{time['dimension']}' is not a time dimension")
        granularity = time.get("granularity")
        if granularity is not None and granularity not in members.GRANULARITIES:
            raise BadQuery(f"Unsupported granularity: {granularity}")
        if granularity is not None:
            key = f"{time['dimension']}.{granularity}"
            dimensions[key] = members.GRANULARITIES[granularity]
        if "dateRange" in time:
            tests.append(_between(time["dateRange"]))
    measures = {name: _sql(name, measure=True) for name in query.get("measures", [])}
    if not dimensions and not measures:
        raise BadQuery("Query should contain either measures, dimensions or timeDimensions")
    conditions = [_condition(one) for one in query.get("filters", [])]
    having = [sql for is_measure, sql in conditions if is_measure]
    tests += [sql for is_measure, sql in conditions if not is_measure]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    group = f" GROUP BY {', '.join(map(str, range(1, len(dimensions) + 1)))}" if dimensions else ""
    group += f" HAVING {' AND '.join(having)}" if having else ""
    columns = {**dimensions, **measures}
    return _Plan(columns, members.FROM + where, group, _order(query, columns))


def _sql(name: str, *, measure: bool) -> str:
    sql = members.sql_of(name)
    if sql is None or members.is_measure(name) != measure:
        raise BadQuery(f"'{name}' not found for path '{name}'")
    return sql


def _between(span: str | list[str]) -> str:
    first, last = (span, span) if isinstance(span, str) else span
    if not (_DATE.fullmatch(first) and _DATE.fullmatch(last)):
        raise BadQuery(f"the date range {span!r} must be one date or two")
    return f"{members.DAY} BETWEEN {_text(first[:10])} AND {_text(last[:10])}"


def _condition(one: dict[str, Any]) -> tuple[bool, str]:
    """Return whether the filter is on a measure, and its SQL."""
    name, operator, values = one["member"], one["operator"], one.get("values", [])
    measure = members.is_measure(name)
    sql = _sql(name, measure=measure)
    if operator in ("set", "notSet"):
        return measure, f"{sql} IS {'NOT ' if operator == 'set' else ''}NULL"
    if not values:
        raise BadQuery(f"Values required for filter: {name} {operator}")
    if operator in _COMPARISONS:
        return measure, f"{sql} {_COMPARISONS[operator]} {_number(values[0])}"
    literal = _number if measure else _text
    negated = "NOT " if operator.startswith("not") else ""
    if operator in ("contains", "notContains"):
        return measure, f"{negated}INSTR(LOWER({sql}), LOWER({_text(values[0])}))"
    return measure, f"{sql} {negated}IN ({', '.join(map(literal, values))})"


def _order(query: dict[str, Any], columns: dict[str, str]) -> str:
    """Return the ORDER BY of ``order``, which is an object or a list of pairs. The default is by
    time, else by the first measure descending, else by the first dimension."""
    given = query.get("order")
    if given is None:
        measures = query.get("measures", [])
        pairs = [(measures[0], "desc")] if measures else [(next(iter(columns)), "asc")]
        timed = next((key for key in columns if key.count(".") == 2), None)
        if timed is not None:
            pairs = [(timed, "asc")]
    else:
        pairs = list(given.items()) if isinstance(given, dict) else given
    parts = []
    for member, direction in pairs:
        key = next((k for k in columns if k == member or k.startswith(f"{member}.")), None)
        if key is None:
            raise BadQuery(f"'{member}' is not part of the query and cannot order it")
        parts.append(f'"{key}" {direction.upper()}')
    rest = [str(at) for at in range(1, len(columns) + 1)]
    return f" ORDER BY {', '.join([*parts, *rest])}"


def _text(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _number(value: Any) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise BadQuery(f"not a number: {value!r}") from None


def _value(value: Any) -> Any:
    """Return a value of the response: numbers are strings."""
    return str(value) if isinstance(value, (int, float)) else value


def _formed(form: str, keys: list[str], rows: list[list[Any]]) -> Any:
    if form == "compact":
        return {"members": keys, "dataset": rows}
    if form == "columnar":
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in keys]
        return {"members": keys, "columns": columns}
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _annotations(query: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    times = {key: members.annotation(members.TIME_DIMENSION) for key in keys if key.count(".") == 2}
    return {
        "measures": {name: members.annotation(name) for name in query.get("measures", [])},
        "dimensions": {name: members.annotation(name) for name in query.get("dimensions", [])},
        "segments": {},
        "timeDimensions": times,
    }
