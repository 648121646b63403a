"""The rows of a result as the objects that Vega reads, each value in the form that its use needs.

The service sends numbers as texts, JavaScript has no whole numbers beyond 2^53, and Vega sorts and
compares texts as texts. So a value's form follows from its column's type and from what the chart
reads the column as (`fields.Uses`):

- a column of numbers becomes numbers; one of texts too where the chart draws it on a scale of
  numbers and its texts are numbers;
- whole numbers beyond 2^53 stay texts where they are labels: two ids would become one;
- dates and times that are labels only are shortened to the day, or to the minute, where nothing
  but zeros is lost; on scales of time all are local times, so that a page shows the same day in
  every time zone;
- whole numbers from 1000 to 3000 on a scale of time are years, not milliseconds of 1970 (`fields`
  adds a transform for them).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from airflow_provider_platform.client.formats.service_text import quote_service, shortened
from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.fields import Uses
from airflow_provider_platform.results.readable_dates import short_moments

Json = dict[str, Any]

EXACT = 2**53 - 1
"""The largest number up to which JavaScript has every whole number."""

_NUMERIC_TYPE = re.compile(
    r"u?(tiny|small|medium|big|long)?int(eger)?\d*\b|double|float|decimal|numeric|number|real\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_PADDED = re.compile(r"\s*[+-]?0\d", re.ASCII)


def unique_names(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns' names as files have them: of two that are the same the second is `name_2`."""
    names: list[str] = []
    for number, column in enumerate(columns, start=1):
        name = wanted = str(column.get("name") or f"column_{number}")
        count = 1
        while name in names:
            count += 1
            name = f"{wanted}_{count}"
        names.append(name)
    return names


def structured(
    names: Sequence[str], rows: Sequence[Sequence[Any]], read: AbstractSet[str]
) -> set[str]:
    """Those of the columns `read` with objects or lists among their values."""
    return {
        name
        for at, name in enumerate(names)
        if name in read
        and any(at < len(row) and isinstance(row[at], (dict, list, tuple)) for row in rows)
    }


def years(
    columns: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    read: AbstractSet[str],
) -> set[str]:
    """Those of the columns `read` that are numbers, and all of them years."""
    year_columns = set()
    for at, (name, column) in enumerate(zip(names, columns, strict=True)):
        if name not in read:
            continue
        values = [row[at] for row in rows if at < len(row) and row[at] is not None]
        if values and _is_numeric(column, values) and all(map(_is_year, values)):
            year_columns.add(name)
    return year_columns


def ranks(values: Sequence[Any]) -> list[int | None] | None:
    """The places of whole numbers that are texts in their order as numbers; None where texts sort
    alike, and where they are no such numbers."""
    texts = {value for value in values if value is not None}
    if not all(isinstance(text, str) and _WHOLE.fullmatch(text) for text in texts):
        return None
    ordered = sorted(texts, key=int)
    if ordered == sorted(texts):
        return None
    places = {text: place for place, text in enumerate(ordered)}
    return [None if value is None else places[value] for value in values]


def duplicates(
    columns: Sequence[Mapping[str, Any]], names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> list[str]:
    """A note for each name that columns with different values share."""
    all_names = [str(column.get("name") or "") for column in columns]
    notes = []
    for name in dict.fromkeys(all_names):
        places = [at for at, other in enumerate(all_names) if other == name]
        if name and len(places) > 1 and any(len({str(row[at]) for at in places}) > 1
                                            for row in rows if max(places) < len(row)):  # fmt: skip
            others = ", ".join(repr(names[at]) for at in places[1:])
            notes.append(
                f"The result has {len(places)} columns named '{quote_service(name)}' with "
                f"different values. The chart shows the first; the others are named {others}."
            )
    return notes


def records_of(
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    uses: Uses | None = None,
    keys: Mapping[str, str] | None = None,
    notes: list[str] | None = None,
    read: AbstractSet[str] | None = None,
) -> list[Json]:
    """The rows as objects of plain JSON.

    A column `orders.count` can also be reached as the field `count` of `orders`, which is what an
    expression `datum.orders.count` means.

    :param uses: what the chart reads the columns as
    :param keys: columns that are there under another key too
    :param read: the columns that the chart reads; all without it. A chart of some columns of many
        would need the memory of all
    :param notes: takes what a person has to know of the values
    :raises ChartError: no value of a column on a scale of numbers is a number
    """
    uses, notes = uses or Uses(), notes if notes is not None else []
    names, values = [], []
    for at, (name, column) in enumerate(zip(unique_names(columns), columns, strict=True)):
        if read is None or name in read:
            cells = [row[at] if at < len(row) else None for row in rows]
            names.append(name)
            values.append(_column(name, column, cells, uses, notes))
    records: list[Json] = []
    for row in zip(*values, strict=True) if values else ((),) * len(rows):
        record: Json = dict(zip(names, row, strict=True))
        for name, key in (keys or {}).items():
            record[key] = record[name]
        for name in names:
            _nest(record, name, names)
        records.append(record)
    return records


def plain(value: Any) -> Any:
    """A value as JSON has it; a number that JSON lacks is no value."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def _column(
    name: str, column: Mapping[str, Any], values: list[Any], uses: Uses, notes: list[str]
) -> list[Any]:
    """The values of one column in the form that its uses need."""
    if name in uses.parsed:
        return [_exact(plain(value)) for value in values]
    declared_type = str(column.get("type") or "")
    declared = _is_numeric(column, values)
    is_number = name in uses.numbers
    if declared or is_number or name in uses.computed:
        numbers = _numbers(name, values, uses, declared, notes)
        if numbers is not None:
            return numbers
    if declared_type.lower().startswith("bool"):
        words = {"true": True, "false": False}
        values = [
            words.get(item.lower(), item) if isinstance(item, str) else item for item in values
        ]
    if name in uses.times and name not in uses.compared:
        return [_local(plain(value)) for value in values]
    if name in uses.labels and name not in uses.compared:
        short = short_moments([plain(value) for value in values])
        if short is not None:
            return short
    return [_exact(plain(value)) for value in values]


def _is_numeric(column: Mapping[str, Any], values: Sequence[Any]) -> bool:
    """Whether a column is declared as one of numbers, or has some that are no texts."""
    return _NUMERIC_TYPE.match(str(column.get("type") or "")) is not None or any(
        isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) for value in values
    )


def _numbers(
    name: str, values: list[Any], uses: Uses, declared: bool, notes: list[str]
) -> list[Any] | None:
    """The values as numbers; None where they have to stay as they are."""
    is_number = name in uses.numbers
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present):
        return None  # which JavaScript adds up as 0 and 1
    misfits = [value for value in present if _number(value) is None]
    if is_number and present and len(misfits) == len(present):
        raise ChartError(
            f"The chart draws '{quote_service(name)}' on a numeric scale, but none of its "
            f"{len(present):,} values is a number (the first: {_shown(misfits[0])})."
        )
    texts = [value for value in present if isinstance(value, str)]
    if not (declared or is_number) and (misfits or any(map(_is_padded, texts))):
        return None
    parsed = [_number(value) for value in values]
    if name in uses.labels and any(
        parsed_value is not None and abs(parsed_value) > EXACT for parsed_value in parsed
    ):
        return [None if value is None else _digits(value) for value in values]
    finite = [
        parsed_value if parsed_value is None or math.isfinite(parsed_value) else None
        for parsed_value in parsed
    ]
    lost = sum(
        parsed_value is not None and not math.isfinite(parsed_value) for parsed_value in parsed
    )
    if is_number and misfits:
        notes.append(
            f"The chart leaves out {len(misfits):,} of {len(values):,} values of "
            f"'{quote_service(name)}', because they are not numbers (the first: "
            f"{_shown(misfits[0])})."
        )
    if lost:
        notes.append(
            f"The chart leaves out {lost:,} of {len(values):,} values of '{quote_service(name)}', "
            "because they are infinite or too large."
        )
    return [
        plain(value)
        if parsed_value is None and value is not None and not _is_infinite(value)
        else parsed_value
        for value, parsed_value in zip(values, _compact(finite), strict=True)
    ]


def _compact(values: Iterable[float | None]) -> list[float | int | None]:
    """Whole numbers as integers, which JSON writes shorter."""
    return [
        int(value) if value is not None and value.is_integer() and abs(value) <= EXACT else value
        for value in values
    ]


def _number(value: Any) -> float | None:
    """The number that a value is, infinite for one beyond a double; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    if isinstance(value, str) and not (_NUMBER.fullmatch(value) or _is_infinite(value)):
        return None
    try:
        parsed = float(value)
    except OverflowError:
        return math.inf
    return math.inf if parsed != parsed else parsed


def _is_infinite(value: Any) -> bool:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?(nan|inf|infinity)", value.strip(), re.IGNORECASE):
            return True
        return _NUMBER.fullmatch(value) is not None and math.isinf(float(value))
    if isinstance(value, Decimal):
        return not value.is_finite() or math.isinf(float(value))
    return isinstance(value, float) and not math.isfinite(value)


def _is_year(value: Any) -> bool:
    parsed = _number(value)
    return parsed is not None and 1000 <= parsed <= 3000 and parsed.is_integer()


def _is_padded(text: str) -> bool:
    """Whether a text of digits begins with a zero, as a code does and a number does not."""
    return _PADDED.match(text) is not None


def _digits(value: Any) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _exact(value: Any) -> Any:
    """A whole number that JavaScript would round, as its text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        return str(value)
    return value


def _local(value: Any) -> Any:
    """A day as its first moment: JavaScript takes a day alone for one in UTC."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        return f"{value}T00:00:00"
    if isinstance(value, str) and re.fullmatch(r"\d{4}", value, re.ASCII):
        return f"{value}-01-01T00:00:00"
    return value


def _shown(value: Any) -> str:
    return f"'{quote_service(shortened(str(value), 40))}'"


def _nest(record: Json, name: str, names: Sequence[str]) -> None:
    path = name.split(".")
    if len(path) < 2 or path[0] in names:
        return
    at = record
    for part in path[:-1]:
        deeper = at.setdefault(part, {})
        if not isinstance(deeper, dict):
            return
        at = deeper
    at.setdefault(path[-1], record[name])
