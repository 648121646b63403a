"""Columns and values: the service's column types, and what a value of each is.

The service sends values as texts. Read by its column's type a value is an int (`Int64`), a float
(`Double`), a Decimal (`Decimal`), a bool (`Boolean`), a date (`Date`), a datetime (`Timestamp`) or
a str (`String`, and every type that is not among these); None is None in all of them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.client.formats.service_text import shortened
from airflow_provider_platform.results.column_names import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Types = Literal["service", "text"]
Kind = Literal["Int64", "Double", "Decimal", "Boolean", "Date", "Timestamp", "String"]
KINDS: tuple[Kind, ...] = ("Int64", "Double", "Decimal", "Boolean", "Date", "Timestamp", "String")

DECIMAL_DIGITS, DECIMAL_SCALE = 38, 18
"""Of every Decimal: the service names no precision, and the schema of a file that is written every
night must not change with its rows."""

_KINDS = {kind.lower(): kind for kind in KINDS}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6})0*)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_MIDNIGHT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]00:00:00(?:\.0+)?Z?", re.ASCII)
_SHOWN = 60


@dataclass(frozen=True)
class Column:
    """A column of a result: `name` as files have it (see `column_names`), `type` as the service
    has it, and `kind`, what values are read as."""

    name: str
    type: str
    kind: Kind

    def read(self, value: Any) -> Any:
        """The typed value. Raises ValueError where it does not fit."""
        return None if value is None else _READERS[self.kind](value)


def read_columns(columns: Sequence[dict[str, str]], types: Types = "service") -> list[Column]:
    """The columns of a result, `{"name", "type"}` each; with `types="text"` all are texts."""
    found = []
    names = file_names([column.get("name") for column in columns])
    for name, column in zip(names, columns, strict=True):
        said = str(column.get("type") or "")
        kind = kind_of(said) if types == "service" else "String"
        found.append(Column(name, said, kind))
    return found


def kind_of(service_type: str) -> Kind:
    """What values of a type of the service are read as; parameters, as in `Decimal(10, 2)`, count
    for nothing."""
    return _KINDS.get(service_type.partition("(")[0].strip().lower(), "String")


def read_rows(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], first: int = 1
) -> list[list[Any]]:
    """Typed values. `first` is the number of the first row. Raises ResultValueError."""
    readers = [(at, _READERS[column.kind]) for at, column in enumerate(columns)]
    typed = []
    for number, row in enumerate(rows, start=first):
        try:
            typed.append([None if row[at] is None else read(row[at]) for at, read in readers])
        except ValueError:
            raise _misfit(columns, row, number) from None
    return typed


def misfit(column: Column, value: Any, row: int) -> ResultValueError:
    """The error of a value that does not fit its column's type."""
    shown = shortened(str(value), _SHOWN)
    return ResultValueError(
        f"Row {row}, column {column.name!r}: {shown!r} is no value of its type {column.type}. "
        'With types="text" values stay as the service sends them.',
        column=column.name,
        row=row,
    )


def plain(value: Any) -> Any:
    """A typed value as plain JSON: a Decimal as its exact text, dates and times in ISO 8601, what
    is no finite number as a text."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, date) else value


def _misfit(columns: Sequence[Column], row: Sequence[Any], number: int) -> ResultValueError:
    for column, value in zip(columns, row, strict=False):
        try:
            column.read(value)
        except ValueError:
            return misfit(column, value, number)
    raise RuntimeError("a row could not be read, and each of its values could")


def _int64(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    if isinstance(value, str) and not (_NUMBER.fullmatch(value) or _NOT_FINITE.fullmatch(value)):
        raise ValueError
    try:
        return float(value)
    except OverflowError:
        raise ValueError from None


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    text = repr(value) if isinstance(value, float) else str(value)
    if not _NUMBER.fullmatch(text):
        raise ValueError
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    if not found:  # of zeros too, pyarrow refuses exponents beyond its digits
        return found.quantize(Decimal(1).scaleb(-_zeros(found)))
    if found.adjusted() >= DECIMAL_DIGITS - DECIMAL_SCALE or _scale(found):
        raise ValueError
    return found


def _zeros(zero: Decimal) -> int:
    """How many digits behind the point a zero has, as far as the scale goes."""
    exponent = zero.as_tuple().exponent
    return min(max(-exponent, 0), DECIMAL_SCALE) if isinstance(exponent, int) else 0


def _scale(value: Decimal) -> bool:
    """Whether a number has digits beyond the scale."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or -exponent <= DECIMAL_SCALE:
        return False
    return any(digits[len(digits) + exponent + DECIMAL_SCALE :]) or -exponent > 1000


def _boolean(value: Any) -> bool:
    said = str(value).lower() if isinstance(value, str | bool | int) else ""
    if said in ("true", "t", "1"):
        return True
    if said in ("false", "f", "0"):
        return False
    raise ValueError


def _date(value: Any) -> date:
    if not isinstance(value, str):
        raise ValueError
    midnight = _MIDNIGHT.fullmatch(value)
    text = midnight[1] if midnight else value
    if not _DAY.fullmatch(text):
        raise ValueError
    return date.fromisoformat(text)


def _timestamp(value: Any) -> datetime:
    """Without a zone, as the service sends it (in the zone that the query was asked in); a time
    that names its zone is turned into UTC."""
    if not isinstance(value, str):
        raise ValueError
    if _DAY.fullmatch(value):
        return datetime.fromisoformat(value)
    found = _TIME.fullmatch(value)
    if found is None:
        raise ValueError
    day, time, fraction, zone = found.groups()
    moment = datetime.fromisoformat(f"{day}T{time}.{(fraction or '0').ljust(6, '0')}{zone or ''}")
    try:
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except OverflowError:
        raise ValueError from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_READERS: dict[Kind, Callable[[Any], Any]] = {
    "Int64": _int64,
    "Double": _double,
    "Decimal": _decimal,
    "Boolean": _boolean,
    "Date": _date,
    "Timestamp": _timestamp,
    "String": _text,
}
