"""Bodies that concern dashboards: their variables, and the configuration a workbook draws up."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks

_WITHOUT_VALUE = ("is_null", "is_not_null", "is_empty", "is_not_empty")
_OPERATORS = (
    *("equals", "not_equals", "greater_than", "greater_than_or_equal"),
    *("less_than", "less_than_or_equal", "contains", "not_contains"),
    *("starts_with", "not_starts_with", "ends_with", "not_ends_with"),
    *(*_WITHOUT_VALUE, "between", "custom"),
)
_MEMBER = checks.string(pattern=r".+\..+")
_OPEN_TEXT = checks.string(min_length=0)
_SCALAR = checks.either(_OPEN_TEXT, checks.number(), checks.boolean)


def _value_fits(value: Any, name: str) -> list[str]:
    operator, given = value.get("operator"), value.get("value")
    if operator in _WITHOUT_VALUE and given is not None:
        return [f"{name}.value must be left out with {operator}"]
    if operator == "between" and (not isinstance(given, list) or len(given) != 2):
        return [f"{name}.value must be [start, end] with between"]
    return []


_FILTER = checks.nullable_fields(
    {
        "member": checks.needed(_MEMBER),
        "operator": checks.string(one_of=_OPERATORS),
        "value": checks.either(_SCALAR, checks.array(checks.nullable(_SCALAR))),
        "caseSensitive": checks.boolean,
        "startInclusive": checks.boolean,
        "endInclusive": checks.boolean,
    }
).also(_value_fits)
_TIME_GRAIN = checks.structure(
    {"member": checks.needed(_MEMBER), "grain": checks.needed(checks.string())}
)
_MEMBER_SWITCHER = checks.structure(
    {"member": checks.needed(_MEMBER), "selected": checks.needed(checks.string())}
)
VARIABLES: checks.Fields = {
    "filters": checks.array(_FILTER),
    "timeGrains": checks.array(_TIME_GRAIN),
    "memberSwitchers": checks.array(_MEMBER_SWITCHER),
}
"""What may be set when a dashboard runs: for a notification and for an export."""

_POSITION = checks.structure({axis: checks.needed(checks.integer()) for axis in "xywh"})
_SIZES = ("lg", "md", "sm", "xs", "xxs")
_WIDGET: checks.Fields = {
    "id": checks.string(max_length=128),
    "type": checks.needed(
        checks.string(
            one_of=(
                *("CHART", "TEXT", "FILTER", "AI", "TIME_GRAIN", "FIELD"),
                *("PARENT", "SPACER", "DIVIDER", "CONTAINER"),
            )
        )
    ),
    "position": checks.needed(_POSITION),
    "config": checks.mapping,
    "responsiveLayouts": checks.nullable_fields(dict.fromkeys(_SIZES, _POSITION)),
    "style": checks.mapping,
}
_BREAKPOINTS = checks.nullable_fields(dict.fromkeys(_SIZES, checks.integer()))
_LAYOUT = checks.nullable_fields(
    {
        "breakpoints": _BREAKPOINTS,
        "cols": _BREAKPOINTS,
        "containerPadding": checks.array(checks.integer()),
        "margin": checks.array(checks.integer()),
        "rowHeight": checks.integer(),
    }
)
_APP = checks.nullable_fields(
    {
        "entry": checks.string(max_length=255),
        "files": checks.mapping,
        "html": _OPEN_TEXT,
        "manifest": checks.nullable_fields(
            {"dependencies": checks.mapping, "version": checks.integer()}
        ),
    }
)
_THEME_PARTS: checks.Fields = {
    "backgroundColor": _OPEN_TEXT,
    "controls": checks.mapping,
    "dashboard": checks.mapping,
    "fontFamily": _OPEN_TEXT,
    "primaryColor": _OPEN_TEXT,
    "themeId": _OPEN_TEXT,
    "widgets": checks.mapping,
}


def _config(widget: checks.Check) -> checks.Check:
    return checks.nullable_fields(
        {
            "app": _APP,
            "description": _OPEN_TEXT,
            "kind": checks.string(one_of=("CLASSIC", "APP")),
            "layout": _LAYOUT,
            "settings": checks.mapping,
            "theme": checks.nullable_fields(_THEME_PARTS),
            "title": _OPEN_TEXT,
            "widgets": checks.array(widget),
        }
    )


CONFIG = _config(checks.nullable_fields(checks.needing(_WIDGET, "id")))
"""What is published."""
DRAFT = _config(checks.nullable_fields(_WIDGET))
"""What is saved before: widgets need no id yet."""
