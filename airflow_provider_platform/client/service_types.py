"""Names of column types.

The service writes a column's type as a word (`"String"`), or as an object with one key:
`{"Date": false}`, `{"Interval": "MonthDayNano"}`, `{"List": {...}}`, `{"Decimal": [10, 2]}`.
"""

from __future__ import annotations

from typing import Any


def type_name(column_type: Any) -> str:
    """The name of a column's type: the word, or the key of the object. A decimal keeps its
    precision and scale, as in `Decimal(10, 2)`. The empty text where the service names no type."""
    if isinstance(column_type, str):
        return column_type.strip()
    if not isinstance(column_type, dict) or len(column_type) != 1:
        return ""
    ((name, details),) = column_type.items()
    numbers = details if isinstance(details, list) else []
    if name == "Decimal" and numbers and {*map(type, numbers)} == {int}:
        return f"{name}({', '.join(map(str, numbers))})"
    return str(name).strip()
