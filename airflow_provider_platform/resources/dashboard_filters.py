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
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.models import InputModel, Number

FilterOperator = Literal[
    "equals",
    "not_equals",
    "greater_than",
    "greater_than_or_equal",
    "less_than",
    "less_than_or_equal",
    "contains",
    "not_contains",
    "starts_with",
    "not_starts_with",
    "ends_with",
    "not_ends_with",
    "is_null",
    "is_not_null",
    "is_empty",
    "is_not_empty",
    "between",
    "custom",
]
WITHOUT_VALUE = frozenset({"is_null", "is_not_null", "is_empty", "is_not_empty"})

_MEMBER = r".+\..+"
_ORDERED = frozenset({"between", "custom"})
"""Operators whose values have an order, and ends that may be included."""
SETTINGS = ("filters", "time_grains", "member_switchers")
"""The three kinds of settings, by the names of their arguments."""


class UserAttributeInput(InputModel):
    """The value of one attribute of a user."""

    name: str = Field(min_length=1)
    value: bool | Number | str | list[Number | str] | None = None


class DashboardFilterInput(InputModel):
    """A filter to apply; `value` is `[start, end]` with `between`, and absent with the null and
    empty operators."""

    member: str = Field(pattern=_MEMBER)
    operator: FilterOperator | None = None
    value: Any = None
    case_sensitive: Any = None
    start_inclusive: Any = None
    end_inclusive: Any = None

    @model_validator(mode="after")
    def _value_fits_operator(self) -> Self:
        if self.operator in WITHOUT_VALUE and self.value is not None:
            raise ValueError(f"value cannot be given with operator {self.operator}")
        if self.operator == "between" and not (
            isinstance(self.value, list) and len(self.value) == 2
        ):
            raise ValueError("with operator='between', value must be [start, end]")
        return self


class DashboardTimeGrainInput(InputModel):
    """The grain of a time member: `day`, `week`, `month` ..."""

    member: str = Field(pattern=_MEMBER)
    grain: str = Field(min_length=1)


class DashboardMemberSwitcherInput(InputModel):
    """What a member switcher is set to: a member's name without its view."""

    member: str = Field(pattern=_MEMBER)
    selected: str = Field(min_length=1)


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
