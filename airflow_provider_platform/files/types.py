"""Columns and values: the name and the type of a column, and what each value is.

The service sends values as strings (booleans as JSON booleans), and its declared types are not
always what the values are: integers and decimals are both declared `Int32`, a `Date` may have a
time, and a value may not fit at all. So the values decide: each declared type has a ladder of
types, and the first type that fits all values is the column's type. The last one is always
`String`.

Whatever fits a type of a ladder fits the next one too. So one pass over the values is enough. The
readers below define what fits. `spool` uses pyarrow for the usual strings, with the same results.

A query may give two columns the same name, names that differ in case only, or no name at all. CSV
can hold such names, but its readers cannot tell the columns apart. Parquet's readers refuse them
(Spark, Athena) or rename them in ways of their own (DuckDB), and JSON objects lose all values but
the last. So a file's names differ by more than their case (`file_names`). File, XCom, asset event
and manifest have the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.client.redaction import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


_SHOWN = 60


def file_names(names: Sequence[str | None]) -> list[str]:
    """The names of a result's columns in its file: none is blank, and no two differ in case only.

    The first column with a name keeps it. A later one gets the next free number (`total_2`), which
    is never the name of another column of the result. A column without a name is `column_3`, by
    its place. Characters that Airflow's database cannot store are replaced.
    """
    whole: list[str] = db_safe([name or "" for name in names])
    reserved = {name.casefold() for name in whole}
    kept: set[str] = set()
    unique = []
    for place, name in enumerate(whole, start=1):
        if name.strip() and name.casefold() not in kept:
            kept.add(name.casefold())
            unique.append(name)
            continue
        base = name if name.strip() else f"column_{place}"
        unused, number = base, 1
        while unused.casefold() in reserved:
            number += 1
            unused = f"{base}_{number}"
        reserved.add(unused.casefold())
        unique.append(unused)
    return unique


def describe_renaming(names: Sequence[str | None], written: Sequence[str]) -> str | None:
    """A sentence about the columns whose names were changed, None if all kept theirs."""
    changed = [
        f"column {place} {shortened(name or '', _SHOWN)!r} is now {shortened(new, _SHOWN)!r}"
        for place, (name, new) in enumerate(zip(names, written, strict=True), start=1)
        if name != new
    ]
    if not changed:
        return None
    more = f", and {len(changed) - 5} more" if len(changed) > 5 else ""
    return (
        "Columns were renamed, because their names are empty, are invalid or differ only in "
        f"case: {', '.join(changed[:5])}{more}. To choose the names, use AS in the SQL."
    )


Mode = Literal["service", "strict", "text"]
Types = Mode | Mapping[str, str]
MODES: tuple[Mode, ...] = ("service", "strict", "text")
EVERY_OTHER = "*"
"""The name in a `types` mapping that gives the mode of the columns it does not name."""

Kind = Literal["Int64", "Double", "Decimal", "Boolean", "Date", "Timestamp", "String"]
KINDS: tuple[Kind, ...] = ("Int64", "Double", "Decimal", "Boolean", "Date", "Timestamp", "String")
TYPE_WORDS: dict[str, Kind] = {
    **{kind.lower(): kind for kind in KINDS},
    "integer": "Int64",
    "text": "String",
}
"""Types as an author writes them, in any case."""

_LADDERS: dict[str, tuple[Kind, ...]] = {
    "int8": ("Int64",),
    "int16": ("Int64",),
    "int32": ("Int64", "Decimal"),
    "int64": ("Int64",),
    "double": ("Double",),
    "decimal": ("Decimal",),
    "boolean": ("Boolean",),
    "date": ("Date", "Timestamp"),
    "timestamp": ("Timestamp",),
}
"""The types that values of a declared type may have, before `String`."""
_UNDECLARED: dict[type, tuple[Kind, ...]] = {
    bool: ("Boolean",),
    int: ("Int64", "Double"),
    float: ("Double",),
}
"""The same for a column without a declared type, by the JSON type of its first value."""

SHORT_DECIMAL, LONG_DECIMAL = 19, 38
"""Digits of a decimal, 38 only if 19 are not enough: 38 are the most that Parquet's readers take,
and 19 leave room for a product of two. Only two precisions, so that the schema of a file that is
written every night does not change with each new value."""

_MAX_EXPONENT = 1000
_EXACT = Context(prec=4 * _MAX_EXPONENT)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ]([01]\d|2[0-3])(?::([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6})0*)?)?)?"
    r"(Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_FIXED_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column of a result whose type is known.

    `name` as files have it, `type` as results show it, `kind` as values are read. `precision` and
    `scale` are those of a Decimal. `fraction` is the number of digits of a Timestamp's seconds, 3
    or 6 for all values. `note` says why the column is not what was declared or asked for.
    """

    name: str
    type: str
    kind: Kind
    precision: int = SHORT_DECIMAL
    scale: int = 0
    fraction: int = 3
    note: str | None = None

    @property
    def warning(self) -> str | None:
        """The note as a sentence that names the column."""
        written = f"Column {self.name!r} is written as strings"
        return None if self.note is None else f"{written}: {self.note}."

    def described(self) -> dict[str, str]:
        """`{"name", "type"}`, with `note` where there is one."""
        description = {"name": self.name, "type": self.type}
        return description if self.note is None else {**description, "note": self.note}

    def value(self, text: str | None) -> Any:
        """Return the value of a text that fits: int, float, Decimal, bool, date, datetime or
        str."""
        if text is None:
            return None
        value = READERS[self.kind](text)
        # Arrow's decimals have no -0.
        return round_to(value or Decimal(0), self.scale) if self.kind == "Decimal" else value

    def plain(self, text: str | None) -> Any:
        """Return the value as plain JSON: numbers and booleans as such, anything else as a string.
        A Double that is not a finite number is a string too."""
        value = self.value(text)
        if value is None or self.kind in ("Int64", "Boolean", "String"):
            return value
        if self.kind == "Double":
            return plain_double(value)
        if self.kind == "Decimal":
            return format(value, "f")
        if self.kind == "Timestamp":
            return value.isoformat(
                timespec="milliseconds" if self.fraction == 3 else "microseconds"
            )
        return value.isoformat()


@dataclass(frozen=True)
class ColumnTypes:
    """What an author says of the types of columns.

    `mode`: `service` reads the types that the service declares, and turns a column with a value
    that does not fit into texts; `strict` raises there; `text` makes all values texts, but null.
    `named` has a type for single columns: a kind, and for a decimal perhaps (precision, scale).
    """

    mode: Mode = "service"
    named: Mapping[str, tuple[Kind, tuple[int, int] | None]] = field(default_factory=dict)

    @classmethod
    def parse(cls, types: Types | ColumnTypes) -> Self | ColumnTypes:
        """From a mode, or a type for each column that it names; `*` names all others, which it
        gives a mode. Raises ValueError."""
        if isinstance(types, ColumnTypes):
            return types
        if isinstance(types, str):
            return cls(_mode(types))
        if not isinstance(types, Mapping):
            raise ValueError(
                f"must be one of {', '.join(MODES)}, or a dict of column names and types, as "
                f'{{"at": "timestamp"}}, not {types!r}'
            )
        named = {}
        for name, type_text in types.items():
            if {type(name), type(type_text)} != {str}:
                raise ValueError(
                    f"must map column names to types (both strings), got {name!r}: {type_text!r}"
                )
            if name != EVERY_OTHER:
                named[name] = _named_type(name, type_text)
        return cls(_mode(types.get(EVERY_OTHER, "service")), named)

    def only(self, columns: Sequence[Mapping[str, str]]) -> ColumnTypes:
        """The same without the columns that a query lacks: another query has them."""
        if not self.named:
            return self
        known = {*file_names([column["name"] for column in columns])}
        named = {name: asked for name, asked in self.named.items() if name in known}
        return replace(self, named=named)

    def check_names(self, names: Sequence[str]) -> None:
        """Check that the result has all columns that are named. Raises ResultValueError."""
        missing = [name for name in self.named if name not in names]
        if missing:
            raise ResultValueError(
                f"types contains the column {missing[0]!r}, which the result does not have. The "
                f"result's columns are {', '.join(map(repr, names))}.",
                column=missing[0],
            )


class TypeFinder:
    """Finds the type of one column while its values come: `take` all values, then `column`."""

    def __init__(self, name: str, declared: str, types: ColumnTypes) -> None:
        self._name = name
        self._declared = declared
        self._strict = types.mode == "strict"
        asked = types.named.get(name)
        self._asked = asked[0] if asked else None
        self.size = asked[1] if asked else None
        steps: tuple[Kind, ...] = ()
        if self._asked is not None:
            steps = (self._asked,)
        elif types.mode != "text":
            steps = _LADDERS.get(declared.partition("(")[0].strip().lower(), ())
        self._steps: list[Kind] = [*(kind for kind in steps if kind != "String"), "String"]
        self._may_guess = not declared and self._asked is None and types.mode != "text"
        self._is_whole = self.kind == "Int64"
        self._note: str | None = None
        self._whole, self._scale = 1, 0
        self._fraction = 3

    @property
    def kind(self) -> Kind:
        """The type so far."""
        return self._steps[0]

    def texts(self, values: Sequence[Any]) -> list[str | None]:
        """JSON values as texts; a whole number stays whole if the column is one of integers."""
        if self._may_guess and any(value is not None for value in values):
            first = next(value for value in values if value is not None)
            self._steps = [*_UNDECLARED.get(type(first), ()), "String"]
            self._is_whole = self.kind == "Int64"
            self._may_guess = False
        return [_text_of(value, whole=self._is_whole) for value in values]

    def take(self, texts: Sequence[str | None], first: int) -> None:
        """Take values of the column; `first` is the number of the first row. Raises
        ResultValueError for a value that does not fit in strict mode."""
        for row, text in enumerate(texts, start=first):
            while self.kind != "String" and text is not None and not self._fits(text):
                self._go_on(text, row)

    def take_digits(self, whole: int, scale: int) -> bool:
        """Take numbers with at most so many digits before and after the point. Return False,
        without a change, if the column cannot have as many."""
        whole, scale = max(self._whole, whole), max(self._scale, scale)
        if self.size is None and self.kind == "Decimal" and whole + scale > LONG_DECIMAL:
            return False
        self._whole, self._scale = whole, scale
        return True

    def take_microseconds(self) -> None:
        """Note that a timestamp needs more than milliseconds."""
        self._fraction = 6

    def column(self) -> Column:
        """The column, once all of its values were taken."""
        has_own_name = self.kind == "String" and self._note is None and self._asked is None
        digits = self._whole + self._scale
        needed = (SHORT_DECIMAL if digits <= SHORT_DECIMAL else LONG_DECIMAL), self._scale
        precision, scale = self.size or needed
        return Column(
            name=self._name,
            type=self._declared if has_own_name else self.kind,
            kind=self.kind,
            precision=precision,
            scale=scale,
            fraction=self._fraction,
            note=self._note,
        )

    def _fits(self, text: str) -> bool:
        try:
            value = READERS[self.kind](text)
        except ValueError:
            return False
        if self.kind == "Int64":  # which may still become a Decimal
            return self.take_digits(len(str(abs(value))), 0)
        if self.kind == "Decimal":
            before, behind = digits_of(value)
            if self.size is not None:
                precision, scale = self.size
                return before <= precision - scale and value == round_to(value, scale)
            return self.take_digits(before, behind)
        if self.kind == "Timestamp" and value.microsecond % 1000:
            self.take_microseconds()
        return True

    def _go_on(self, text: str, row: int) -> None:
        self._steps.pop(0)
        if self.kind != "String" or not (self._asked or self._declared):
            return
        shown = shortened(text, _SHOWN)
        asked = f"{self._asked}({self.size[0]}, {self.size[1]})" if self.size else self._asked
        if self._strict:
            raise ResultValueError(
                f"The value {shown!r} cannot be read as {asked or f'type {self._declared}'} "
                f"(row {row}, column {self._name!r}). "
                'types="service" writes such a column as strings, with a warning.',
                column=self._name,
                row=row,
            )
        who = f"types= asks for {asked}" if asked else f"the service declares {self._declared}"
        self._note = f"{who}, but row {row} has {shown!r}"


class TypedRows:
    """The first rows of a result with the types that all rows decide, in plain Python.

    `columns` are `{"name", "type"}` each, as the service declares them. `add` takes rows as the
    service sends them, then `finish` gives the columns. `keep` rows stay in memory, None: all.
    """

    def __init__(
        self,
        columns: Sequence[Mapping[str, str]],
        types: Types | ColumnTypes = "service",
        *,
        keep: int | None = None,
    ) -> None:
        self._finders = type_finders(columns, types)
        self._keep = keep
        self._kept: list[tuple[str | None, ...]] = []
        self.row_count = 0

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows. Raises ResultValueError for a value that does not fit in strict mode."""
        if not rows:
            return
        columns = []
        for finder, values in zip(self._finders, zip(*rows, strict=True), strict=True):
            texts = finder.texts(values)
            finder.take(texts, self.row_count + 1)
            columns.append(texts)
        wanted = None if self._keep is None else max(0, self._keep - len(self._kept))
        self._kept += zip(*(texts[:wanted] for texts in columns), strict=True)
        self.row_count += len(rows)

    def finish(self) -> list[Column]:
        """The columns, after the last row."""
        return [finder.column() for finder in self._finders]

    def first_rows(self, columns: Sequence[Column], rows: int) -> list[list[Any]]:
        """The first so many rows as plain JSON."""
        return plain_rows(columns, self._kept[:rows])

    def values(self, columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
        """The rows that were kept, as Python values."""
        for row in self._kept:
            yield tuple(column.value(text) for column, text in zip(columns, row, strict=True))


def plain_rows(columns: Sequence[Column], rows: Iterable[Sequence[str | None]]) -> list[list[Any]]:
    """Rows of texts as plain JSON."""
    return [[column.plain(text) for column, text in zip(columns, row, strict=True)] for row in rows]


def type_finders(
    columns: Sequence[Mapping[str, str]], types: Types | ColumnTypes = "service"
) -> list[TypeFinder]:
    """A finder for each column of a result, `{"name", "type"}` each. Raises ValueError for bad
    `types`, and ResultValueError if they name a column that the result lacks."""
    wanted = ColumnTypes.parse(types)
    names = file_names([column.get("name") for column in columns])
    wanted.check_names(names)
    return [
        TypeFinder(name, str(column.get("type") or ""), wanted)
        for name, column in zip(names, columns, strict=True)
    ]


def digits_of(value: Decimal) -> tuple[int, int]:
    """How many digits are before the point, and how many after it."""
    exponent = value.as_tuple().exponent
    behind = max(-exponent, 0) if isinstance(exponent, int) else 0
    return (max(value.adjusted() + 1, 0) if value else 0), behind


def round_to(value: Decimal, scale: int) -> Decimal:
    """The value with so many digits after the point, however many are before it."""
    return value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def plain_double(value: float | None) -> float | str | None:
    """The number, or its name if it is not finite: JSON has neither NaN nor infinity."""
    if value is None or isfinite(value):
        return value
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def _mode(text: Any) -> Mode:
    for mode in MODES:
        if text == mode:
            return mode
    raise ValueError(f"must be one of {', '.join(MODES)}, not {text!r}")


def _named_type(name: str, text: str) -> tuple[Kind, tuple[int, int] | None]:
    word = text.strip().lower()
    sized = _FIXED_DECIMAL.fullmatch(word)
    if sized:
        precision, scale = int(sized[1]), int(sized[2] or 0)
        if 1 <= precision <= LONG_DECIMAL and scale <= precision:
            return "Decimal", (precision, scale)
        raise ValueError(
            f"gives {name!r} the type {text!r}, but a decimal has a precision of 1 to "
            f"{LONG_DECIMAL} and a scale up to its precision"
        )
    if word not in TYPE_WORDS:
        raise ValueError(
            f"gives {name!r} the unknown type {text!r}; the types are {', '.join(TYPE_WORDS)} and "
            "decimal(precision, scale)"
        )
    return TYPE_WORDS[word], None


def _text_of(value: Any, *, whole: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):  # half a character fits into no file
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if whole and isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _int64(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _double(text: str) -> float:
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError
    value = float(text)
    if not isfinite(value):
        raise ValueError  # too large: it must not look like infinity
    return value


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _MAX_EXPONENT:
        raise ValueError
    return value


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "t", "1"):
        return True
    if lowered in ("false", "f", "0"):
        return False
    raise ValueError


def _date(text: str) -> date:
    moment = _timestamp(text)
    if moment.time() != time.min:
        raise ValueError
    return moment.date()


def _timestamp(text: str) -> datetime:
    """Without a zone, as the service sends it (in the zone that the query was asked in); a time
    that names its zone is turned into UTC."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError
    day, hour, minute, second, fraction, zone = match.groups()
    clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}.{(fraction or '').ljust(6, '0')}"
    moment = datetime.fromisoformat(f"{day}T{clock}{zone or ''}")
    try:
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except OverflowError:
        raise ValueError from None


READERS: dict[Kind, Callable[[str], Any]] = {
    "Int64": _int64,
    "Double": _double,
    "Decimal": _decimal,
    "Boolean": _boolean,
    "Date": _date,
    "Timestamp": _timestamp,
    "String": str,
}
"""The value of a text of each type. They raise ValueError for a text that does not fit."""
