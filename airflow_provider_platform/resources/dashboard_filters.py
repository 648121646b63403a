"""What a dashboard is set to when it runs unattended: filters, time grains, member switchers.

Members are named with their view, as `orders.status`.

Two sets of filters mean the same if they leave the same rows: filters are combined with AND, so
their order does not matter, and neither does the order of the values of one filter, but for a
range. Values are compared as text, since the service may write a number either way. What is left
out of a filter means the service's default, which is not described: `equals`, any case, both ends
of a range included are taken for it.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.argument_rules import refuse
from airflow_provider_platform.client.operation import check_described
from airflow_provider_platform.client.operations_table import definition, fit

WITHOUT_VALUE = frozenset({"is_null", "is_not_null", "is_empty", "is_not_empty"})

_ORDERED = frozenset({"between", "custom"})
"""Operators whose values have an order, and ends that may be included."""
SETTINGS = ("filters", "time_grains", "member_switchers")
"""The three kinds of settings, by the names of their arguments."""
_ITEMS = {
    "filters": "DashboardFilterInput",
    "time_grains": "DashboardTimeGrainInput",
    "member_switchers": "DashboardMemberSwitcherInput",
}
"""What the service calls one of them."""


def check_settings(name: str, items: list[Any]) -> list[Any]:
    """Return settings under the service's names; `name` is one of `SETTINGS`. Raises
    PlatformInputError, which names the field and the rule."""
    schema = {"type": "array", "items": definition(_ITEMS[name])}
    settings: list[Any] = fit(schema, items, rendered=True)
    check_described(name, schema, settings)
    for place, item in enumerate(settings if name == "filters" else ()):
        operator, value = item.get("operator"), item.get("value")
        if operator in WITHOUT_VALUE and value is not None:
            raise refuse(f"{name}[{place}].value", f"cannot be given with operator {operator}")
        if operator == "between" and not (isinstance(value, list) and len(value) == 2):
            rule = "must be [start, end] with operator='between'"
            raise refuse(f"{name}[{place}].value", rule)
        if operator not in WITHOUT_VALUE and _has_no_value(value):
            rule = f"has no value, which operator={operator or 'equals'!r} needs"
            raise refuse(f"{name}[{place}]", rule)
    return settings


def _has_no_value(value: Any) -> bool:
    """Return whether a value is none, or a list without values: the service describes no meaning of
    such a filter, and it may leave all rows."""
    if isinstance(value, list):
        return not value or any(map(_has_no_value, value))
    return value in (None, "")


def same_settings(ours: dict[str, Any], reported: dict[str, Any]) -> dict[str, bool | None]:
    """Return for each of `SETTINGS` whether it means the same in two bodies. None: the answer does
    not report it although `ours` has it, or has it in a shape that cannot be read."""
    same: dict[str, bool | None] = {}
    for name in SETTINGS:
        alias = to_camel(name)
        wanted = ours.get(alias) or None
        if alias not in reported:
            same[name] = None if wanted else True
            continue
        try:
            same[name] = meaning(name, wanted) == meaning(name, reported[alias])
        except ValueError:
            same[name] = True if wanted == reported[alias] else None
    return same


def meaning(name: str, items: Any) -> frozenset[tuple[Any, ...]]:
    """What settings mean, as a value to compare: `name` is one of `SETTINGS`, `items` their JSON,
    None for none. Raises ValueError for JSON that cannot be read."""
    if items is None:
        return frozenset()
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{name} must be a list of objects")
    if name == "filters":
        return frozenset(_filter_meaning(item) for item in items)
    value = "grain" if name == "time_grains" else "selected"
    return frozenset((_text(item.get("member")), _text(item.get(value))) for item in items)


def _filter_meaning(item: dict[str, Any]) -> tuple[Any, ...]:
    operator = item.get("operator") or "equals"
    sent = item.get("value")
    values = [_text(value) for value in (sent if isinstance(sent, list) else [sent])]
    ordered = operator in _ORDERED
    ends = [item.get(name, True) for name in ("startInclusive", "endInclusive")]
    return (
        _text(item.get("member")),
        _text(operator),
        () if operator in WITHOUT_VALUE else tuple(values) if ordered else frozenset(values),
        _text(item.get("caseSensitive") or False),
        tuple(_text(end is None or end) for end in ends) if ordered else (),
    )


def _text(value: Any) -> str:
    """A value of JSON as text, the same for 5, 5.0 and "5", for true and "true"."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)
