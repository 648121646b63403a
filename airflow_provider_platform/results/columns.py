"""Columns and values: what type the values of a column have, and what each value is.

The service sends values as texts (booleans as JSON booleans), and its declared types are not
always what the values are: 32-bit integers and decimals are both declared `Int32`, a `Date` may
have a time, and a value may not fit at all. So the type of a column is decided by all of its
values: a `TypeFinder` starts with the declared type and goes on to the next type that fits. The
last one is always `String`.

Each type has a *regular* form, the one that the service writes. One pattern checks many values at
once, and texts in this form go into files unchanged. Other forms of a type (`+1`, `1e5`, `T`, a
time with a zone) are read one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.client.formats.service_text import shortened
from airflow_provider_platform.results.column_names import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
"""What values of a type of the service may be, the first that fits all of them; else texts."""

SHORT_DECIMAL, LONG_DECIMAL = 19, 38
"""Digits of a decimal, 38 only if 19 are not enough. 38 are the most that pyarrow's decimal128 and
most databases have, and 19 leave room for a product of two. DuckDB computes with 18 digits or fewer
in 64 bits, where products overflow. Only two precisions: the schema of a file that is written every
night should not change with each new value."""

SEPARATOR, MISSING = "\0", "\x01"
"""Between the values of a joined column, and in place of a missing one."""

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_NOT_ZERO = re.compile(r"[^eE]*[1-9]", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6})0*)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_MIDNIGHT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]00:00:00(?:\.0+)?Z?", re.ASCII)
_FIXED_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)", re.ASCII)
_SHOWN = 60
_MAX_EXPONENT = 1000

_REGULAR_DAY = (
    r"(?!0000)\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_REGULAR: dict[Kind, str] = {
    # Up to 9.2e18, just below 2**63.
    "Int64": r"0|-?(?:[1-9]\d{0,17}|[1-8]\d{18}|9[01]\d{17})",
    "Double": r"-?(?:0|[1-9]\d{0,299})(?:\.\d+)?",
    "Boolean": "true|false",
    "Date": _REGULAR_DAY,
    "Timestamp": _REGULAR_DAY + r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}",
}
"""Forms that the service writes; a 29 February is read by itself. Decimals: `_regular_decimals`."""


@dataclass(frozen=True)
class Column:
    """A column of a result whose type is known.

    `name` as files have it (see `column_names`), `type` as results show it, `kind` as values are
    read. `regular`: all texts have the regular form of their type. `precision` and `scale` are
    those of a `Decimal`; `fraction` is the number of digits of the seconds of a `Timestamp`, the
    same for all values. `note` says why the column is not what was declared or asked for.
    """

    name: str
    type: str
    kind: Kind
    regular: bool = False
    precision: int = SHORT_DECIMAL
    scale: int = 0
    fraction: int = 3
    note: str | None = None

    @property
    def warning(self) -> str | None:
        """The note as a sentence that names the column."""
        return (
            None
            if self.note is None
            else (f"Column {self.name!r} is written as strings: {self.note}.")
        )

    def described(self) -> dict[str, str]:
        """`{"name", "type"}`, with `note` where there is one."""
        description = {"name": self.name, "type": self.type}
        return description if self.note is None else {**description, "note": self.note}

    def values(self, texts: Sequence[str | None]) -> list[Any]:
        """The values of texts: int, float, Decimal, bool, date, datetime or str; None is None."""
        read = _REGULAR_READERS[self.kind] if self.regular else _READERS[self.kind]
        return _mapped(read, texts)

    def plain(self, texts: Sequence[str | None]) -> list[Any]:
        """The values as plain JSON: numbers and booleans as such, anything else as its text. A
        Double that is not a finite number is a text."""
        if self.kind in ("Int64", "Boolean"):
            return self.values(texts)
        if self.kind == "Double":
            return self.values(texts) if self.regular else _mapped(_plain_double, texts)
        return self.texts(texts)

    def texts(self, texts: Sequence[str | None]) -> list[str | None]:
        """The values as texts, one form for each type."""
        if self.kind == "Double":
            return _mapped(_regular_double if self.regular else _double_text, texts)
        if self.kind == "Timestamp" and not (self.regular and self.fraction == 3):
            precision = "milliseconds" if self.fraction == 3 else "microseconds"
            return _mapped(lambda text: _timestamp(text).isoformat(timespec=precision), texts)
        if self.regular or self.kind == "String":
            return texts if isinstance(texts, list) else list(texts)
        return _mapped(_TEXTS[self.kind], texts)

    def json_texts(self, texts: Sequence[str | None]) -> list[str]:
        """The values as JSON."""
        values = self.texts(texts)
        if self.kind in ("Int64", "Boolean") or (self.kind == "Double" and self.regular):
            return ["null" if text is None else text for text in values]
        if self.kind == "Double":
            return ["null" if text is None else _json_double(text) for text in values]
        if self.kind == "String":
            return ["null" if text is None else _quoted(text) for text in values]
        return ["null" if text is None else f'"{text}"' for text in values]


@dataclass(frozen=True)
class ColumnTypes:
    """What an author says of the types of columns.

    `mode`: `service` reads the types that the service declares, and turns a column with a value
    that does not fit into texts; `strict` raises there; `text` leaves all values as they are sent.
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

    def only(self, names: Iterable[str]) -> ColumnTypes:
        """The same without the columns that a result lacks."""
        known = {*names}
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
    """Finds the type of one column while its values come.

    `check` takes the texts of the column piece by piece. When a value does not fit, the finder
    goes on to the next type, which has not seen the pieces before: `unchecked` is their number,
    and they must be given to `check` again before `column` is asked for.
    """

    def __init__(self, name: str, declared: str, types: ColumnTypes) -> None:
        self._name = name
        self._declared = declared
        self._strict = types.mode == "strict"
        asked = types.named.get(name)
        self._asked = asked[0] if asked else None
        self._size = asked[1] if asked else None
        candidates: tuple[Kind, ...] = ()
        if self._asked is not None:
            candidates = (self._asked,)
        elif types.mode != "text":
            candidates = _LADDERS.get(declared.partition("(")[0].strip().lower(), ())
        self._kinds = [*(kind for kind in candidates if kind != "String"), *_LAST]
        self._may_guess = not declared and self._asked is None and types.mode != "text"
        self._note: str | None = None
        self._facts = _Facts(self._kinds[0], self._size)
        self.unchecked = 0

    def guess(self, values: Sequence[Any]) -> None:
        """Start a column without a declared type with that of its first values, if these are JSON
        numbers or booleans. A misfit is not worth a note then: nobody named the type."""
        value_types = {*map(type, values)} - {type(None)}
        if self._may_guess and value_types and value_types <= {bool, int, float}:
            kinds = next((kinds for types, kinds in _GUESSES if value_types <= types), ())
            self._kinds = [*kinds, *_LAST]
            self._facts = _Facts(self.kind, None)

    @property
    def kind(self) -> Kind:
        """The type so far."""
        return self._kinds[0]

    def texts(self, values: Sequence[Any]) -> list[str | None]:
        """JSON values as texts; a whole number stays whole if the column is one of integers."""
        value_types = {*map(type, values)}
        if value_types <= _TEXT_KINDS:
            return list(values)
        if value_types <= _BOOLEANS:
            return [_BOOLEAN_TEXTS[value] for value in values]
        whole = self.kind == "Int64"
        return [_text_of(value, whole=whole) for value in values]

    def check(
        self, texts: Sequence[str | None], joined: str | None, *, piece: int, first: int
    ) -> None:
        """Check a piece of the column. `joined` has its texts between separators, or is None if a
        text has a separator in it. `piece` counts from 0, `first` is the number of its first row.
        Raises ResultValueError for a misfit in strict mode."""
        while (at := self._facts.first_misfit(texts, joined)) is not None:
            self._go_on(str(texts[at]), first + at)
            self.unchecked = 0 if self.kind == "String" else piece

    def column(self) -> Column:
        """The column, once all of its values are checked."""
        chosen, facts = self.kind, self._facts
        has_own_name = chosen == "String" and self._note is None and self._asked is None
        precision, scale = self._size or facts.decimal_size()
        return Column(
            name=self._name,
            type=self._declared if has_own_name else chosen,
            kind=chosen,
            regular=facts.regular,
            precision=precision,
            scale=scale,
            fraction=facts.fraction,
            note=self._note,
        )

    def _go_on(self, text: str, row: int) -> None:
        self._kinds.pop(0)
        if self.kind == "String" and (self._asked or self._declared):
            shown = shortened(text, _SHOWN)
            wanted = self._asked_type() if self._asked else f"type {self._declared}"
            if self._strict:
                raise ResultValueError(
                    f"The value {shown!r} cannot be read as {wanted} "
                    f"(row {row}, column {self._name!r}). "
                    'types="service" writes such a column as strings, with a warning.',
                    column=self._name,
                    row=row,
                )
            who = "types= asks for" if self._asked else "the service declares"
            declared = self._asked_type() if self._asked else self._declared
            self._note = f"{who} {declared}, but row {row} has {shown!r}"
        self._facts = _Facts(self.kind, None)

    def _asked_type(self) -> str:
        digits = f"({self._size[0]}, {self._size[1]})" if self._size else ""
        return f"{self._asked}{digits}"


class _Facts:
    """What the values of a column have in common, as values of one type."""

    def __init__(self, kind: Kind, size: tuple[int, int] | None) -> None:
        self._kind = kind
        self._limits = size
        self.regular = True
        self.fraction = 3
        self._whole, self._scale = 1, 0

    def decimal_size(self) -> tuple[int, int]:
        """Precision and scale that the decimals need."""
        digits = self._whole + self._scale
        return (SHORT_DECIMAL if digits <= SHORT_DECIMAL else LONG_DECIMAL), self._scale

    def first_misfit(self, texts: Sequence[str | None], joined: str | None) -> int | None:
        """The index of the first text that does not fit the type, None if all do."""
        if self._kind == "String":
            return None
        single, many = _patterns(self._kind, self._whole, self._scale)
        if joined is not None and many.fullmatch(joined):
            return None
        for at, text in enumerate(texts):
            if text is None or single.fullmatch(text):
                continue
            try:
                self._add(text)
            except ValueError:
                return at
        return None

    def _add(self, text: str) -> None:
        """Take a text that has not the regular form, or more digits than those before. Raises
        ValueError."""
        value = _READERS[self._kind](text)
        if self._kind == "Decimal":
            self._add_decimal(value)
            if _REGULAR_DECIMAL.fullmatch(text):
                return
        if self._kind == "Timestamp" and value.microsecond % 1000:
            self.fraction = 6
        if not (self._kind == "Double" and _REGULAR_DOUBLE.fullmatch(text)):
            self.regular = False

    def _add_decimal(self, value: Decimal) -> None:
        before, behind = _digits(value)
        whole, scale = max(self._whole, before), max(self._scale, behind)
        if self._limits is None:
            fits = whole + scale <= LONG_DECIMAL
        else:
            precision, limit = self._limits
            fits = before <= precision - limit and value == round_to(value, limit)
        if not fits:
            raise ValueError
        self._whole, self._scale = whole, scale


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


def _mapped(read: Callable[[str], Any], texts: Sequence[str | None]) -> list[Any]:
    if None in texts:
        return [None if text is None else read(text) for text in texts]
    return list(map(read, texts))  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _patterns(kind: Kind, whole: int, scale: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a text in the regular form, and of many between separators. Decimals have at most
    so many digits before and behind the point."""
    form = _REGULAR.get(kind) or _regular_decimals(whole, scale)
    each = f"(?:{form}|{MISSING})"
    single = re.compile(form, re.ASCII)
    return single, re.compile(f"(?:{each}{SEPARATOR})*+{each}", re.ASCII)


def _regular_decimals(whole: int, scale: int) -> str:
    behind = rf"(?:\.\d{{1,{scale}}})?" if scale else ""
    return rf"-?(?:0|[1-9]\d{{0,{whole - 1}}}){behind}"


def _text_of(value: Any, *, whole: bool) -> str | None:
    if value is None or isinstance(value, str):
        return value
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
    if not isfinite(value) or (not value and _NOT_ZERO.match(text)):
        raise ValueError  # too large or too small: it must not look like infinity, or zero
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


def _digits(value: Decimal) -> tuple[int, int]:
    """How many digits are before the point, and how many behind it."""
    exponent = value.as_tuple().exponent
    behind = max(-exponent, 0) if isinstance(exponent, int) else 0
    return (max(value.adjusted() + 1, 0) if value else 0), behind


def round_to(value: Decimal, scale: int) -> Decimal:
    """The value with so many digits behind the point, however many are before it."""
    return value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _decimal_text(text: str) -> str:
    return format(_decimal(text), "f")


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "t", "1"):
        return True
    if lowered in ("false", "f", "0"):
        return False
    raise ValueError


def _date(text: str) -> date:
    midnight = _MIDNIGHT.fullmatch(text)
    day = midnight[1] if midnight else text
    if not _DAY.fullmatch(day):
        raise ValueError
    return date.fromisoformat(day)


def _timestamp(text: str) -> datetime:
    """Without a zone, as the service sends it (in the zone that the query was asked in); a time
    that names its zone is turned into UTC."""
    if _DAY.fullmatch(text):
        return datetime.fromisoformat(text)
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError
    day, time, fraction, zone = match.groups()
    moment = datetime.fromisoformat(f"{day}T{time}.{(fraction or '0').ljust(6, '0')}{zone or ''}")
    try:
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except OverflowError:
        raise ValueError from None


def _double_name(value: float) -> str:
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def _plain_double(text: str) -> float | str:
    value = _double(text)
    return value if isfinite(value) else _double_name(value)


def _double_text(text: str) -> str:
    if _REGULAR_DOUBLE.fullmatch(text):
        return _regular_double(text)
    value = _double(text)
    return repr(value) if isfinite(value) else _double_name(value)


def _regular_double(text: str) -> str:
    return text if "." in text else f"{text}.0"


def _json_double(text: str) -> str:
    return f'"{text}"' if text in ("NaN", "Infinity", "-Infinity") else text


def _is_true(text: str) -> bool:
    return text == "true"


_GUESSES: tuple[tuple[set[type], tuple[Kind, ...]], ...] = (
    ({bool}, ("Boolean",)),
    ({int}, ("Int64", "Double")),
    ({int, float}, ("Double",)),
)
_TEXT_KINDS = {str, type(None)}
_EXACT = Context(prec=4 * _MAX_EXPONENT)
_quoted = json.encoder.encode_basestring
_LAST: tuple[Kind, ...] = ("String",)
_REGULAR_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_REGULAR_DOUBLE = re.compile(_REGULAR["Double"], re.ASCII)
_BOOLEANS = {bool, type(None)}
_BOOLEAN_TEXTS = {True: "true", False: "false", None: None}
_READERS: dict[Kind, Callable[[str], Any]] = {
    "Int64": _int64,
    "Double": _double,
    "Decimal": _decimal,
    "Boolean": _boolean,
    "Date": _date,
    "Timestamp": _timestamp,
    "String": str,
}
_REGULAR_READERS: dict[Kind, Callable[[str], Any]] = {
    "Int64": int,
    "Double": float,
    "Decimal": Decimal,
    "Boolean": _is_true,
    "Date": date.fromisoformat,
    "Timestamp": datetime.fromisoformat,
    "String": str,
}
_TEXTS: dict[Kind, Callable[[str], str]] = {
    "Int64": lambda text: str(_int64(text)),
    "Decimal": _decimal_text,
    "Boolean": lambda text: "true" if _boolean(text) else "false",
    "Date": lambda text: _date(text).isoformat(),
}
