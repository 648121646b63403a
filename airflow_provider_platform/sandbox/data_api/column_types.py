"""Types and values of rows, as the data API writes them.

``core``: as the open core does. It declares decimals and 32-bit integers as ``Int32``, timestamps
as ``String``, dates as an object with one key. Booleans are JSON booleans. ``words``: each column
is declared by the word for its type, and every value is a string.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.settings import Settings

_CORE: dict[str, Any] = {"Decimal": "Int32", "Timestamp": "String", "Date": {"Date": False}}
_INT32_COLUMNS = {"quantity"}
"""Integers of 32 bits in the sample warehouse; SQLite itself has 64 bits only."""


def declared(schema: list[dict[str, str]], settings: Settings) -> list[dict[str, Any]]:
    """Return the schema for the first line."""
    if settings.column_types == "words":
        return list(schema)
    return [
        {
            "name": column["name"],
            "column_type": "Int32"
            if column["name"] in _INT32_COLUMNS and column["column_type"] == "Int64"
            else _CORE.get(column["column_type"], column["column_type"]),
        }
        for column in schema
    ]


def sent(
    schema: list[dict[str, str]], rows: list[list[Any]], settings: Settings
) -> list[list[Any]]:
    """Return the values of rows for a data line: strings, and null."""
    core = settings.column_types == "core"
    forms: list[Callable[[Any], Any]] = [
        _form(column["column_type"], core=core) for column in schema
    ]
    return [
        [None if value is None else form(value) for form, value in zip(forms, row, strict=True)]
        for row in rows
    ]


def _form(kind: str, *, core: bool) -> Callable[[Any], Any]:
    if kind == "Boolean":
        return _boolean if core else _boolean_text
    if kind == "Decimal":
        return _decimal
    return _double if core and kind == "Double" else str


def _boolean(value: Any) -> Any:
    return bool(value) if value in (0, 1) else str(value)


def _boolean_text(value: Any) -> str:
    return str(_boolean(value)).lower()


def _decimal(value: Any) -> str:
    return f"{Decimal(str(value)):.2f}" if isinstance(value, float) else str(value)


def _double(value: Any) -> str:
    """Return a number as a string without an exponent, and a whole number without a decimal
    point."""
    if not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or not isfinite(value):
        return str(value)
    return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
