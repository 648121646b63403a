"""Values in SQL: placeholders become literals that read as exactly those values.

The data API takes SQL and no parameters beside it, so the values have to be written into the text.
A placeholder counts only in code: one inside a string or a quoted name is refused, because a value
there could end the string. Placeholders are those of DB-API drivers: `%s` for a list of values,
`%(name)s` for a mapping; with parameters, `%%` is a percent sign.

Only where strings and comments begin and end matters here, so one regular expression reads the
text. Operators check their parameters while a DAG is parsed, and loading sqlglot takes too long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from airflow_provider_platform.client.errors import PlatformInputError

Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]

LONGEST_NUMBER = 400
"""Digits of a number's literal, enough for every float."""

_PLACEHOLDER = r"%(?:(?P<percent>%)|s(?!\w)|\((?P<name>\w+)\)s(?!\w))"
_PIECE = re.compile(
    rf"""
      (?P<comment> --[^\n]* | /\*(?:(?!/\*).)*?\*/ )
    | (?P<quoted> \b[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*`
        | (?<!\w)\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$ )
    | (?P<placeholder> {_PLACEHOLDER} )
    | (?P<wrong> % | ['"`] | /\* )
    """,
    re.VERBOSE | re.DOTALL,
)
"""What may hold a percent sign. A nested comment and a string that is not closed are `wrong`."""
_IN, _IN_OPEN = re.compile(r"\bin\s*$", re.IGNORECASE), re.compile(r"\bin\s*\(\s*$", re.IGNORECASE)
_CLOSED = re.compile(r"\s*\)")
_ALONE_BEFORE, _ALONE_AFTER = " \t\r\n(,=<>[", " \t\r\n),;=<>:]"


def bind_parameters(sql: str, parameters: Parameters | None, timezone: str | None = None) -> str:
    """Return the SQL with its placeholders replaced by literals; None leaves the SQL as it is.

    Values are str, int, float, Decimal, bool, None, date, datetime and UUID; after `IN`, a list, a
    tuple or a set of them. A datetime that has a zone is given in `timezone`, the zone of the
    query (default UTC), because the service's timestamps have none. Raises PlatformInputError.
    """
    if parameters is None:
        return sql
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Mapping | Sequence):
        _refuse(
            "parameters must be a list (for %s) or a mapping (for %(name)s), "
            f"not a value of type {type(parameters).__name__}"
        )
    binding = _Binding(parameters, timezone)
    bound = _PIECE.sub(binding.piece, sql)
    if not isinstance(parameters, Mapping) and binding.taken != len(parameters):
        _refuse(f"the SQL has {binding.taken} placeholders for {len(parameters)} parameters")
    return bound


class _Binding:
    """Replaces the placeholders of a text from left to right."""

    def __init__(self, parameters: Parameters, timezone: str | None) -> None:
        self._parameters = parameters
        self._timezone = timezone
        self.taken = 0

    def piece(self, match: re.Match[str]) -> str:
        """Return what stands for a piece of the text."""
        text = match[0]
        if match["comment"]:
            return text
        if match["quoted"]:
            return _without_placeholders(text)
        if match["wrong"] == "%":
            _refuse_percent(match.string[match.start() :])
        if match["wrong"]:
            _refuse(f"the SQL has {text} with no end, or a comment inside a comment")
        return "%" if match["percent"] else self._value(match)

    def _value(self, match: re.Match[str]) -> str:
        value = self._lookup(match)
        place = f"parameter {match[0] if match['name'] else self.taken}"
        before, after = match.string[: match.start()], match.string[match.end() :]
        is_list = isinstance(value, list | tuple | AbstractSet)
        follows_in = _IN.search(before[-99:]) is not None
        if is_list:
            closed = _IN_OPEN.search(before[-99:]) and _CLOSED.match(after)
            if not (follows_in or closed):
                _refuse(f"{place} is a list, and a list is allowed only after IN")
            literals = self._literals(value, place)
            literal = literals if closed else f"({literals})"
        elif follows_in:
            _refuse(f"{place} follows IN and must be a list, but is {_type_name(value)}")
        else:
            literal = self._literal(value, place)
        # Spaces where the literal could grow together with its neighbour, as in -%s or %s%s.
        alone = _ALONE_BEFORE[: 4 if literal.startswith("-") else None]
        return (
            f"{' ' if before[-1:].strip(alone) else ''}{literal}"
            f"{' ' if after[:1].strip(_ALONE_AFTER) else ''}"
        )

    def _lookup(self, placeholder: re.Match[str]) -> Any:
        name = placeholder["name"]
        if isinstance(self._parameters, Mapping):
            if name is None:
                _refuse(
                    "parameters are a mapping, so placeholders must be %(name)s, but the SQL has %s"
                )
            if name not in self._parameters:
                _refuse(f"the SQL has %({name})s, but parameters have no {name!r}")
            return self._parameters[name]
        if name is not None:
            _refuse(
                f"parameters are a list, so placeholders must be %s, but the SQL has %({name})s"
            )
        self.taken += 1
        if self.taken > len(self._parameters):
            _refuse(f"the SQL has more placeholders than {len(self._parameters)} parameters")
        return self._parameters[self.taken - 1]

    def _literals(self, values: Any, place: str) -> str:
        """What stands in the parentheses of IN; a set in an order that is always the same."""
        if not values:
            _refuse(f"{place} is an empty list, and IN () is not valid SQL")
        if any(value is None for value in values):
            _refuse(
                f"{place} contains None, and IN never matches NULL: add OR ... IS NULL to the SQL"
            )
        literals = [self._literal(value, f"an entry of {place}") for value in values]
        return ", ".join(sorted(literals) if isinstance(values, AbstractSet) else literals)

    def _literal(self, value: Any, place: str) -> str:
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            value = value.item()
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int | float | Decimal):
            return _number(value, place)
        if isinstance(value, datetime):
            return _string(self._moment(value, place), place)
        if isinstance(value, date):
            return _string(value.isoformat(), place)
        if not isinstance(value, str | UUID):
            _refuse(
                f"{place} is {_type_name(value)}; it must be a str, int, float, Decimal, bool, "
                "None, date, datetime or UUID, or (after IN) a list of these"
            )
        return _string(str.__str__(value) if isinstance(value, str) else str(value), place)

    def _moment(self, value: datetime, place: str) -> str:
        """In the form that the service gives timestamps in: no zone, and at least milliseconds."""
        if value != value:  # pandas' NaT, which is a datetime
            _refuse(f"{place} is not a point in time (NaT); use None for NULL")
        if value.tzinfo is not None:
            try:
                value = value.astimezone(self._zone(place))
            except OverflowError:
                _refuse(f"{place} is before year 1 or after year 9999 in the query's time zone")
        plain = value.replace(tzinfo=None)
        precision = "microseconds" if plain.microsecond % 1000 else "milliseconds"
        return datetime.isoformat(plain, timespec=precision)

    def _zone(self, place: str) -> tzinfo:
        try:
            return UTC if self._timezone is None else ZoneInfo(self._timezone)
        except (KeyError, ValueError, OSError):
            _refuse(
                f"{place} has a time zone, but this machine does not know the query's time zone "
                f"{self._timezone!r} and cannot convert to it"
            )


def _without_placeholders(text: str) -> str:
    """A string or a quoted name with `%%` as `%`."""
    for match in re.finditer(_PLACEHOLDER, text):
        if not match["percent"]:
            _refuse(
                f"the SQL has {match[0]} inside quotes; remove the quotes, because they are added "
                "with the value"
            )
    if "%" in (left := text.replace("%%", "")):
        _refuse_percent(left[left.index("%") :])
    return text.replace("%%", "%")


def _string(text: str, place: str) -> str:
    if re.search("[\0\ud800-\udfff]", text):
        _refuse(f"{place} contains a NUL character, or half of a surrogate pair")
    return "'" + text.replace("'", "''") + "'"


def _number(value: float | Decimal, place: str) -> str:
    """All digits, and no exponent: the service may read `1e5` as the number 1 with the name e5."""
    exact = Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        _refuse(f"{place} is {exact}, which SQL cannot express; use None for NULL")
    if abs(exact.adjusted()) > LONGEST_NUMBER:
        _refuse(f"{place} has more than {LONGEST_NUMBER} digits")
    return format(exact, "f")


def _type_name(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _refuse_percent(text: str) -> NoReturn:
    _refuse(
        f"the SQL has {text[:20]!r}, which is not a placeholder (%s or %(name)s); with parameters, "
        "write a percent sign as %%"
    )


def _refuse(problem: str) -> NoReturn:
    raise PlatformInputError(f"Nothing was sent: {problem}.", field="parameters")
