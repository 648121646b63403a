"""Filters of a dashboard: the one rule that their schema does not say."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError

_WITHOUT_VALUE = ("is_null", "is_not_null", "is_empty", "is_not_empty")


def check_filters(body: dict[str, Any]) -> None:
    """Raise ``ApiError`` (400) if the operator of a filter does not fit its value."""
    messages = []
    for number, one in enumerate(body.get("filters", [])):
        operator, value = one.get("operator"), one.get("value")
        if operator in _WITHOUT_VALUE and value is not None:
            messages.append(f"filters[{number}].value must be left out with {operator}")
        if operator == "between" and (not isinstance(value, list) or len(value) != 2):
            messages.append(f"filters[{number}].value must be [start, end] with between")
    if messages:
        raise ApiError(400, messages)
