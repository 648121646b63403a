"""Bodies that concern dashboards: their variables, and the configuration a workbook draws up."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import shapes

_WITHOUT_VALUE = ("is_null", "is_not_null", "is_empty", "is_not_empty")
_OPERATORS = (
    *("equals", "not_equals", "greater_than", "greater_than_or_equal"),
    *("less_than", "less_than_or_equal", "contains", "not_contains"),
    *("starts_with", "not_starts_with", "ends_with", "not_ends_with"),
    *(*_WITHOUT_VALUE, "between", "custom"),
)
_MEMBER = shapes.string(pattern=r".+\..+")
_OPEN_TEXT = shapes.string(min_length=0)
_SCALAR = shapes.either(_OPEN_TEXT, shapes.number(), shapes.boolean)


def _value_fits(value: Any, name: str) -> list[str]:
    operator, given = value.get("operator"), value.get("value")
    if operator in _WITHOUT_VALUE and given is not None:
        return [f"{name}.value must be left out with {operator}"]
    if operator == "between" and (not isinstance(given, list) or len(given) != 2):
        return [f"{name}.value must be [start, end] with between"]
    return []


_FILTER = shapes.nullable_fields(
    {
        "member": _MEMBER,
        "operator": shapes.string(one_of=_OPERATORS),
        "value": shapes.either(_SCALAR, shapes.array(shapes.nullable(_SCALAR))),
        "caseSensitive": shapes.boolean,
        "startInclusive": shapes.boolean,
        "endInclusive": shapes.boolean,
    },
    required=("member",),
).also(_value_fits)
_TIME_GRAIN = shapes.structure(
    {"member": _MEMBER, "grain": shapes.string()}, required=("member", "grain")
)
_MEMBER_SWITCHER = shapes.structure(
    {"member": _MEMBER, "selected": shapes.string()}, required=("member", "selected")
)
VARIABLES: shapes.Shape = {
    "filters": shapes.array(_FILTER),
    "timeGrains": shapes.array(_TIME_GRAIN),
    "memberSwitchers": shapes.array(_MEMBER_SWITCHER),
}
"""What may be set when a dashboard runs: for a notification and for an export."""

_POSITION = shapes.structure(
    {axis: shapes.integer() for axis in "xywh"}, required=("x", "y", "w", "h")
)
_SIZES = ("lg", "md", "sm", "xs", "xxs")
_WIDGET: shapes.Shape = {
    "id": shapes.string(max_length=128),
    "type": shapes.string(
        one_of=(
            *("CHART", "TEXT", "FILTER", "AI", "TIME_GRAIN", "FIELD"),
            *("PARENT", "SPACER", "DIVIDER", "CONTAINER"),
        )
    ),
    "position": _POSITION,
    "config": shapes.mapping,
    "responsiveLayouts": shapes.nullable_fields(dict.fromkeys(_SIZES, _POSITION)),
    "style": shapes.mapping,
}
_BREAKPOINTS = shapes.nullable_fields(dict.fromkeys(_SIZES, shapes.integer()))
_LAYOUT = shapes.nullable_fields(
    {
        "breakpoints": _BREAKPOINTS,
        "cols": _BREAKPOINTS,
        "containerPadding": shapes.array(shapes.integer()),
        "margin": shapes.array(shapes.integer()),
        "rowHeight": shapes.integer(),
    }
)
_APP = shapes.nullable_fields(
    {
        "entry": shapes.string(max_length=255),
        "files": shapes.mapping,
        "html": _OPEN_TEXT,
        "manifest": shapes.nullable_fields(
            {"dependencies": shapes.mapping, "version": shapes.integer()}
        ),
    }
)
_THEME_PARTS: shapes.Shape = {
    "backgroundColor": _OPEN_TEXT,
    "controls": shapes.mapping,
    "dashboard": shapes.mapping,
    "fontFamily": _OPEN_TEXT,
    "primaryColor": _OPEN_TEXT,
    "themeId": _OPEN_TEXT,
    "widgets": shapes.mapping,
}


def _config(widget: shapes.Check) -> shapes.Check:
    return shapes.nullable_fields(
        {
            "app": _APP,
            "description": _OPEN_TEXT,
            "kind": shapes.string(one_of=("CLASSIC", "APP")),
            "layout": _LAYOUT,
            "settings": shapes.mapping,
            "theme": shapes.nullable_fields(_THEME_PARTS),
            "title": _OPEN_TEXT,
            "widgets": shapes.array(widget),
        }
    )


CONFIG = _config(shapes.nullable_fields(_WIDGET, required=("id", "type", "position")))
"""What is published."""
DRAFT = _config(shapes.nullable_fields(_WIDGET, required=("type", "position")))
"""What is saved before: widgets need no id yet."""
