"""Compares two results of queries by the rules of the service's evaluations of agents.

The order of rows never counts. Numbers count to four significant figures. Names of columns do not
count: each expected column must be found, by its values, in a column of its own of the actual
result, and other actual columns are ignored. Rows count as often as they occur.

The service's documentation says no more than this. What this module adds:

- Binary noise is removed first: a number has ten significant digits, or as many as its whole part.
  (A sum of floats depends on the order of its rows.) Numbers around 0, below 1e-10 and of different
  signs, are 0.
- A number is then rounded half up, as a decimal (12345 is 12350). Two numbers are equal if their
  roundings are equal, so equality is transitive, and rows can be counted and hashed.
- NaN and infinity are values of a column of numbers. NaN is equal to NaN.
- A string is a number only in a column that is not declared as text: "00123" is a postal code.
- A day is equal to its midnight: 2020-01-01 and 2020-01-01T00:00:00.000.
- Null is equal to null only.

Each value becomes one string with a mark of its kind, so that True, 1 and "1" differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from hashlib import sha256
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import (
    PlatformTransportError,
    ResultNotComparableError,
)
from airflow_provider_platform.client.redaction import shortened
from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql
from airflow_provider_platform.resources.sql.response import (
    SqlChunk,
    SqlColumns,
    SqlOpenEnd,
    why_open_ended,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

Reason = Literal["row count mismatch", "missing columns", "value mismatch", "unexpected rows"]

MAX_COMPARED_ROWS = 50_000
MAX_BYTES = 200_000_000
"""The largest result that is read to be compared: its rows, and its values in memory."""
SHOWN_CELLS = 5

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[T ]00:00:00(\.0+)?Z?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf(inity)?)", re.ASCII | re.IGNORECASE)
_DIGITS = 10
_SMALLEST = Decimal("1e-10")
_NOISE = Decimal("1e-12")
"""A relative difference that is noise, where it crosses the boundary of a rounding."""
_FOUR = Context(prec=4, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_EXACT = Context(prec=400, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_TEXTS = ("char", "date", "string", "text", "time", "utf8", "varchar")
_BOOLEANS = ("true", "false")
_VALUE_BYTES = 56
_SHOWN = 80

Column = list[str]


@dataclass(frozen=True)
class Result:
    """A result: its columns (`{"name", "type"}` each) and its rows, with values as the service
    sends them. `why_truncated` says why rows may be missing; None if the result is complete."""

    columns: Sequence[Mapping[str, str]]
    rows: Sequence[Sequence[Any]]
    why_truncated: str | None = None
    used_pre_aggregations: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the result has no value: no row, or nothing but nulls."""
        return all(value is None for row in self.rows for value in row)


@dataclass(frozen=True)
class Comparison:
    """What a comparison found; `difference` says in words what differs."""

    verdict: Literal["pass", "fail"]
    reason: Reason | None = None
    difference: str | None = None


def compare(expected: Result, actual: Result) -> Comparison:
    """Return whether the actual result has the expected rows, and what differs. Raises
    ResultNotComparableError if rows of a result may be missing, or if too many of its columns have
    the same values to tell which is which."""
    if actual.why_truncated is not None and len(actual.rows) > len(expected.rows):
        actual = replace(actual, why_truncated=None)  # it is wrong, however many rows are missing
    for side, result in (("expected", expected), ("actual", actual)):
        if result.why_truncated is not None:
            raise ResultNotComparableError(
                f"The results were not compared: the {side} result may be incomplete. "
                f"{result.why_truncated}"
            )
    left, right = _without_noise_around_zero(_columns(expected), _columns(actual))
    count = len(expected.rows)
    if count == len(actual.rows) and _match(left, right, count):
        return Comparison("pass")
    return _difference(expected, actual, left, right)


def digest(result: Result) -> str:
    """Return 16 characters that name the values of a result, in any order of its rows."""
    rows = sorted(zip(*_columns(result), strict=True))
    return sha256(json.dumps([len(result.rows), rows]).encode()).hexdigest()[:16]


def _columns(result: Result) -> list[Column]:
    """Return the columns as comparable strings."""
    kinds = [str(column.get("type") or "").lower() for column in result.columns]
    return [[_comparable(row[at], kind) for row in result.rows] for at, kind in enumerate(kinds)]


def value_of(value: Any, declared: str) -> Any:
    """Return what a value means in a column of a type (in lower case): None, a bool, a Decimal or
    a string."""
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    if declared.startswith("bool") and text.lower() in _BOOLEANS:
        return text.lower() == "true"
    is_text = isinstance(value, str) and declared.startswith(_TEXTS)
    if not is_text and (_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)):
        return _EXACT.create_decimal(text)
    midnight = _MIDNIGHT.fullmatch(text)
    return midnight[1] if midnight else text


def _comparable(value: Any, declared: str) -> str:
    meant = value_of(value, declared)
    if meant is None:
        return ""
    if isinstance(meant, bool):
        return f"?{meant}"
    if isinstance(meant, Decimal):
        return f"#{_rounded(meant) or 0}"
    return f"'{meant}"


def without_noise(number: Decimal) -> Decimal:
    """Return a number without binary noise: ten significant digits, or as many as its whole part
    has."""
    if not number.is_finite():
        return number
    digits = max(_DIGITS, number.adjusted() + 1)
    return Context(digits, ROUND_HALF_UP, MIN_EMIN, MAX_EMAX, traps=[]).plus(number)


def _rounded(number: Decimal) -> Decimal:
    return _FOUR.plus(without_noise(number)).normalize(_FOUR)


def same_number(one: Decimal, other: Decimal) -> bool:
    """Return whether two numbers differ by binary noise at most. What is the same here is equal in
    `compare` too."""
    if one.is_nan() or other.is_nan():
        return one.is_nan() and other.is_nan()
    if without_noise(one) == without_noise(other):
        return True
    if max(abs(_rounded(one)), abs(_rounded(other))) < _SMALLEST:
        return one.compare(Decimal(0)) != other.compare(Decimal(0))
    if not (one.is_finite() and other.is_finite()) or _rounded(one) != _rounded(other):
        return False
    are_whole = all(value == value.to_integral_value() for value in (one, other))
    return not are_whole and abs(one - other) <= _NOISE * abs(one)


def shown_number(number: Decimal) -> str:
    """Return a number as a person writes it: without binary noise and without an exponent."""
    plain = without_noise(number)
    if not plain.is_finite() or not -20 < plain.adjusted() < 40:
        return str(plain)
    text = f"{plain:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _without_noise_around_zero(
    left: list[Column], right: list[Column]
) -> tuple[list[Column], list[Column]]:
    """Return the columns of both results with 0 for numbers around 0."""
    values = set(chain.from_iterable(map(set, (*left, *right))))
    small = (value for value in values if value == "#0" or (value[:1] == "#" and "E-" in value))
    numbers = {value: Decimal(value[1:]) for value in small}
    zeros = {value for value, number in numbers.items() if abs(number) < _SMALLEST}
    if len({numbers[value].compare(Decimal(0)) for value in zeros}) < 2:
        return left, right
    one, other = (
        [["#0" if value in zeros else value for value in column] for column in side]
        for side in (left, right)
    )
    return one, other


def _match(left: list[Column], right: list[Column], count: int) -> bool:
    """Return whether columns of `right` have the rows of `left`. Columns are chosen one after
    another, and the rows of the columns so far must agree. Rows are numbered, so that each step
    looks at one more column only."""
    tries = iter(range(max(100, 2_000_000 // max(1, count))))
    counts = {at: Counter(column) for at, column in enumerate(right)}
    # First the columns that few others can be.
    left = sorted(left, key=lambda column: [*counts.values()].count(Counter(column)))

    def choose(wanted: list[Column], free: list[int], here: list[int], there: list[int]) -> bool:
        if not wanted:
            return True
        values, tried = Counter(wanted[0]), list[Column]()
        for at in free:
            if counts[at] != values or right[at] in tried:
                continue
            tried.append(right[at])
            if next(tries, None) is None:
                raise ResultNotComparableError(
                    "The results were not compared: too many of their columns have the same "
                    "values, so it is not clear which column is which. Select fewer columns."
                )
            seen: dict[tuple[int, str], int] = {}
            one, two = _numbered(here, wanted[0], seen), _numbered(there, right[at], seen)
            others = [other for other in free if other != at]
            if Counter(one) == Counter(two) and choose(wanted[1:], others, one, two):
                return True
        return False

    return choose(left, [*counts], [0] * count, [0] * count)


def _numbered(rows: list[int], column: Column, seen: dict[tuple[int, str], int]) -> list[int]:
    return [seen.setdefault(pair, len(seen)) for pair in zip(rows, column, strict=True)]


def _difference(
    expected: Result, actual: Result, left: list[Column], right: list[Column]
) -> Comparison:
    """Describe how results differ that do not match. A row that differs only in numbers counts as
    changed, not as missing and unexpected."""
    names, others = (
        [shortened(str(column.get("name") or ""), _SHOWN) for column in result.columns]
        for result in (expected, actual)
    )
    places = _likely_places(left, right, names, others)
    mine = list(zip(*(left[i] for i, _ in places), strict=True))
    theirs = list(zip(*(right[j] for _, j in places), strict=True))
    missing, more = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
    texts = [at for at, (i, _) in enumerate(places) if not any(v[:1] == "#" for v in left[i])]
    waiting: defaultdict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for row in sorted(more.elements(), reverse=True):
        waiting[tuple(row[at] for at in texts)].append(row)
    changed = [
        (row, same.pop())  # the texts of both rows are the same
        for row in sorted(missing.elements())
        if (same := waiting[tuple(row[at] for at in texts)])
    ]
    found = {i for i, _ in places}
    absent = tuple(name for i, name in enumerate(names) if i not in found)
    reason: Reason = "value mismatch" if len(mine) == len(theirs) else "row count mismatch"
    if absent or not missing:
        reason = "missing columns" if absent else "unexpected rows"
    cells = []
    for one, two in changed[:SHOWN_CELLS]:
        before, after = expected.rows[mine.index(one)], actual.rows[theirs.index(two)]
        same_values = [places[at][0] for at in range(len(one)) if one[at] == two[at]]
        shown = ", ".join(f"{names[i]}={_shown(expected, before, i)}" for i in same_values[:3])
        cells += [
            f"{names[i]}{' of ' if shown else ''}{shown} is {_shown(actual, after, j)}, "
            f"expected {_shown(expected, before, i)}"
            for (i, j), old, new in zip(places, one, two, strict=True)
            if old != new
        ]
    said = [f"These expected columns were not found: {', '.join(absent)}."] if absent else []
    counts = {
        "missing": missing.total() - len(changed),
        "different": len(changed),
        "unexpected": more.total() - len(changed),
    }
    if parts := [f", {count} {word}" for word, count in counts.items() if count]:
        said.append(f"Rows: {len(expected.rows)} expected{''.join(parts)}.")
    if cells:
        said.append("; ".join(cells[:SHOWN_CELLS]) + ".")
    return Comparison("fail", reason, " ".join(said))


def _likely_places(
    left: list[Column], right: list[Column], names: list[str], others: list[str]
) -> list[tuple[int, int]]:
    """Return the place of each column of `left` with that of the column of `right` that is probably
    meant by it: one of its kind with the same values, else with the same name, else with most of
    its values. A column may have none."""
    mine, theirs = [*map(Counter, left)], [*map(Counter, right)]
    kinds, other_kinds = ([{v[0] for v in one if v} for one in side] for side in (mine, theirs))

    def closeness(place: tuple[int, int]) -> tuple[bool, bool, int]:
        i, j = place
        return mine[i] == theirs[j], names[i] == others[j], len(mine[i].keys() & theirs[j].keys())

    pairs: dict[int, int] = {}
    every = product(range(len(left)), range(len(right)))
    for i, j in sorted(every, key=closeness, reverse=True):
        alike = bool(kinds[i] & other_kinds[j]) or not (kinds[i] and other_kinds[j])
        if alike and i not in pairs and j not in pairs.values():
            pairs[i] = j
    return sorted(pairs.items())


def _shown(result: Result, row: Sequence[Any], at: int) -> str:
    if row[at] is None:
        return "null"
    meant = value_of(row[at], str(result.columns[at].get("type") or "").lower())
    said = shown_number(meant) if isinstance(meant, Decimal) else str(row[at])
    return shortened(said, _SHOWN)


async def read_result(api: Api, query: SqlQuery) -> Result:
    """Return the whole result of a query. Raises ResultNotComparableError if it is too large to be
    compared, and what `run_sql` raises."""
    from airflow_provider_platform.resources.sql.statements import known_limits

    columns: list[SqlColumns] = []
    rows: list[list[Any]] = []
    size, open_ended, has_rows = 0, False, False

    async def hear(event: object) -> None:
        nonlocal size, open_ended, has_rows
        if isinstance(event, SqlColumns):
            columns.append(event)
        elif isinstance(event, SqlChunk):
            has_rows = True  # the service sends a line of rows also for an empty result
            rows.extend(event.rows)
            values = [*chain.from_iterable(event.rows)]
            size += len(values) * _VALUE_BYTES
            size += sum(len(value) for value in values if isinstance(value, str))
            if len(rows) > MAX_COMPARED_ROWS or size > MAX_BYTES:
                raise ResultNotComparableError(
                    f"The result was not compared: it has more than {MAX_COMPARED_ROWS} rows or "
                    f"{MAX_BYTES // 10**6} MB. Aggregate in the query, or select fewer columns.",
                    where=query.where,
                )
        elif isinstance(event, SqlOpenEnd):
            open_ended = True

    await run_sql(api.hearing(hear), query)
    if not has_rows:
        raise PlatformTransportError(
            "The data API's response ended before its rows. Run the query again.",
            where=query.where,
        )
    why = why_open_ended(len(rows)) if open_ended else None
    return Result(
        columns[0].columns,
        rows,
        why or known_limits(api.config).why_cut(query.sql, len(rows)),
        columns[0].used_pre_aggregations,
    )
