"""Queries by member, as ``/v1/load`` takes them, turned into SQL over the sample warehouse."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import shapes
from airflow_provider_platform.sandbox.state.warehouse import MEMBERS

DEFAULT_ROWS = 10_000
MOST_ROWS = 50_000

_SQL = {
    "orders.count": "COUNT(*)",
    "orders.revenue": "ROUND(SUM(orders.amount), 2)",
    "orders.average": "ROUND(AVG(orders.amount), 2)",
    "orders.quantity": "SUM(orders.quantity)",
    **{name: name for name, _, _, aggregation in MEMBERS if aggregation is None},
}
_MEASURES = {name for name, _, _, aggregation in MEMBERS if aggregation is not None}
_KINDS = {name: (title, kind) for name, title, kind, _ in MEMBERS}
_FROM = (
    "FROM orders JOIN customers ON customers.id = orders.customer_id "
    "JOIN products ON products.id = orders.product_id"
)
_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_PATTERNS = {
    "contains": "%{}%",
    "notContains": "%{}%",
    "startsWith": "{}%",
    "endsWith": "%{}",
}
_NAMES = shapes.array(shapes.string())
QUERY = shapes.structure(
    {
        "measures": _NAMES,
        "dimensions": _NAMES,
        "timeDimensions": shapes.array(
            shapes.structure(
                {
                    "dimension": shapes.string(),
                    "granularity": shapes.string(one_of=("month",)),
                    "dateRange": shapes.array(shapes.string(), minimum=2, maximum=2),
                },
                required=("dimension",),
            )
        ),
        "filters": shapes.array(shapes.mapping),
        "order": shapes.either(shapes.mapping, shapes.array(_NAMES)),
        "limit": shapes.integer(minimum=1, maximum=MOST_ROWS),
        "offset": shapes.integer(minimum=0),
        "total": shapes.boolean,
        "timezone": shapes.string(),
        "segments": shapes.array(shapes.string(), maximum=0),
        "responseFormat": shapes.string(one_of=("default", "compact", "columnar")),
    }
)


def columns(query: dict[str, Any]) -> list[str]:
    """The members of the answer's rows, in order."""
    grouped = [one["dimension"] for one in query.get("timeDimensions", []) if "granularity" in one]
    return list(dict.fromkeys([*query.get("dimensions", []), *grouped, *query.get("measures", [])]))


def annotation(members: list[str]) -> dict[str, dict[str, Any]]:
    """Titles and types of the members, by what they are."""
    described: dict[str, dict[str, Any]] = {"measures": {}, "dimensions": {}, "timeDimensions": {}}
    for member in members:
        title, kind = _KINDS[member]
        part = "measures" if member in _MEASURES else "dimensions"
        part = "timeDimensions" if kind == "time" else part
        described[part][member] = {"title": title, "shortTitle": title, "type": kind}
    return described


def sql(query: dict[str, Any]) -> str:
    """One SELECT without limit; raises ``ValueError`` for what cannot be asked."""
    wanted = columns(query)
    if not wanted:
        raise ValueError("Query should contain either measures, dimensions or timeDimensions")
    conditions = [_condition(one) for one in query.get("filters", [])]
    conditions += [
        (
            f"{_sql(one['dimension'])} BETWEEN {_text(one['dateRange'][0][:7])} "
            f"AND {_text(one['dateRange'][1][:7])}",
            False,
        )
        for one in query.get("timeDimensions", [])
        if "dateRange" in one
    ]
    parts = ["SELECT " + ", ".join(f'{_sql(name)} AS "{name}"' for name in wanted), _FROM]
    before = [condition for condition, on_measure in conditions if not on_measure]
    after = [condition for condition, on_measure in conditions if on_measure]
    groups = [_sql(name) for name in wanted if name not in _MEASURES]
    parts += [f"WHERE {' AND '.join(before)}"] if before else []
    parts += [f"GROUP BY {', '.join(groups)}"] if groups else []
    parts += [f"HAVING {' AND '.join(after)}"] if after else []
    order = query.get("order", {})
    pairs = list(order.items()) if isinstance(order, dict) else order
    if pairs:
        parts.append("ORDER BY " + ", ".join(_ordering(pair) for pair in pairs))
    return " ".join(parts)


def _ordering(pair: Any) -> str:
    if len(pair) != 2 or pair[1] not in ("asc", "desc"):
        raise ValueError("order must name members with asc or desc")
    return f"{_sql(pair[0])} {pair[1].upper()}"


def _condition(filter_: dict[str, Any]) -> tuple[str, bool]:
    """The SQL of one filter, and whether it is about a measure."""
    for group in ("and", "or"):
        if group in filter_:
            _check_list(filter_[group], dict, f"{group} must be a list of filters")
            parts = [_condition(one) for one in filter_[group]]
            if len({measure for _, measure in parts}) != 1:
                raise ValueError(f"{group} cannot mix measures and dimensions")
            joined = f" {group.upper()} ".join(condition for condition, _ in parts)
            return f"({joined})", parts[0][1]
    member, operator = str(filter_.get("member")), filter_.get("operator")
    expression, measure = _sql(member), member in _MEASURES
    values = filter_.get("values", [])
    _check_list(values, str, "values must be a list of strings")
    if operator in ("set", "notSet"):
        return f"{expression} IS {'NOT ' if operator == 'set' else ''}NULL", measure
    if not values:
        raise ValueError(f"values are required for the operator {operator}")
    if operator in ("equals", "notEquals"):
        listed = ", ".join(_value(value, measure) for value in values)
        return f"{expression} {'NOT ' if operator == 'notEquals' else ''}IN ({listed})", measure
    if operator in _COMPARISONS:
        value = _value(values[0], measure or _KINDS[member][1] == "number")
        return f"{expression} {_COMPARISONS[operator]} {value}", measure
    if operator in _PATTERNS:
        likes = [f"{expression} LIKE {_text(_PATTERNS[operator].format(one))}" for one in values]
        joined = f"({' OR '.join(likes)})"
        return f"NOT {joined}" if operator == "notContains" else joined, measure
    raise ValueError(f"unknown filter operator {operator}")


def _check_list(value: Any, kind: type, words: str) -> None:
    if not isinstance(value, list) or not all(isinstance(one, kind) for one in value):
        raise ValueError(words)


def _sql(member: str) -> str:
    expression = _SQL.get(member)
    if expression is None:
        raise ValueError(f"'{member}' not found for path '{member}'")
    return expression


def _value(value: Any, numeric: bool) -> str:
    return str(float(value)) if numeric else _text(str(value))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
