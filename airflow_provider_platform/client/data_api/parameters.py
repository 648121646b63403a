"""Values in SQL: placeholders become literals that read as exactly those values.

The data API takes SQL and no parameters beside it, so the values have to be written into the text.
Two rules make that safe. A placeholder counts only in code: one inside a string, or inside a quoted
name, is refused, because a value there could end the string. And a literal is a token of its own: a
space goes between it and a neighbour that it could grow together with.

Placeholders are those of DB-API drivers: `%s` for a list of values, `%(name)s` for a mapping; with
parameters, `%%` is a percent sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from re import compile as pattern
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from airflow_provider_platform.client.data_api.sql_tokens import read_tokens
from airflow_provider_platform.client.errors import PlatformInputError

if TYPE_CHECKING:
    from re import Match

    from airflow_provider_platform.client.data_api.sql_tokens import Token

Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]

LONGEST_NUMBER = 400
"""Digits of a number's literal, enough for every float."""

_PLACEHOLDER = pattern(r"%(?:(?P<percent>%)|s(?!\w)|\((?P<name>\w+)\)s(?!\w))")
_STANDS_ALONE_BEFORE = frozenset(" \t\r\n(,=<>[")
_STANDS_ALONE_AFTER = frozenset(" \t\r\n),;=<>:]")


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
    return _Binding(sql, parameters, timezone).bound()


class _Binding:
    """One text with its values, read from left to right."""

    def __init__(self, sql: str, parameters: Parameters, timezone: str | None) -> None:
        self._sql = sql
        self._tokens = list(read_tokens(sql))
        self._parameters = parameters
        self._timezone = timezone
        self._taken = 0
        self._parts: list[str] = []

    def bound(self) -> str:
        end = 0
        code: list[Token] = []
        for token in self._tokens:
            if token.start < end:
                continue  # a part of the placeholder before
            if token.text == "%":
                placeholder = self._placeholder(token.start)
                end = placeholder.end()
                self._parts.append(
                    "%" if placeholder["percent"] else self._value(placeholder, code)
                )
            elif token.kind in ("string", "name"):
                self._parts.append(_without_placeholders(token.text))
            else:
                self._parts.append(token.text)
            if token.is_code:
                code = [*code[-1:], token]
        if not isinstance(self._parameters, Mapping) and self._taken != len(self._parameters):
            _refuse(
                f"the SQL has {self._taken} placeholders for {len(self._parameters)} parameters"
            )
        return "".join(self._parts)

    def _placeholder(self, start: int) -> Match[str]:
        match = _PLACEHOLDER.match(self._sql, start)
        if match is None:
            _refuse_percent(self._sql[start:])
        return match

    def _value(self, placeholder: Match[str], code: list[Token]) -> str:
        """The literal of a placeholder; `code` are the one or two tokens before it."""
        value = self._lookup(placeholder)
        after = self._sql[placeholder.end() : placeholder.end() + 1]
        before = self._sql[: placeholder.start()][-1:]
        words = [token.text.lower() for token in code]
        in_list = words[-1:] == ["in"]
        in_open_list = words == ["in", "("]
        place = f"parameter {placeholder[0] if placeholder['name'] else self._taken}"
        if isinstance(value, list | tuple | AbstractSet):
            closed = in_open_list and self._next_code(placeholder.end()) == ")"
            if not (in_list or closed):
                _refuse(f"{place} is a list, and a list is allowed only after IN")
            literals = self._literals(value, place)
            literal = literals if closed else f"({literals})"
        elif in_list:
            _refuse(f"{place} follows IN and must be a list, but is {_type_name(value)}")
        else:
            literal = self._literal(value, place)
        space_before = before and before not in _STANDS_ALONE_BEFORE
        if literal.startswith("-") and before and not before.isspace():
            space_before = True
        return (
            f"{' ' if space_before else ''}{literal}"
            f"{' ' if after and after not in _STANDS_ALONE_AFTER else ''}"
        )

    def _next_code(self, start: int) -> str:
        after = (token for token in self._tokens if token.start >= start and token.is_code)
        return next((token.text for token in after), "")

    def _lookup(self, placeholder: Match[str]) -> Any:
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
        self._taken += 1
        if self._taken > len(self._parameters):
            _refuse(f"the SQL has more placeholders than {len(self._parameters)} parameters")
        return self._parameters[self._taken - 1]

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
        if isinstance(value, str):
            return _string(str.__str__(value), place)
        if isinstance(value, int | float | Decimal):
            return _number(value, place)
        if isinstance(value, datetime):
            return _string(self._moment(value, place), place)
        if isinstance(value, date):
            return _string(value.isoformat(), place)
        if not isinstance(value, UUID):
            _refuse(
                f"{place} is {_type_name(value)}; it must be a str, int, float, Decimal, bool, "
                "None, date, datetime or UUID, or (after IN) a list of these"
            )
        return _string(str(value), place)

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
        if self._timezone is None:
            return UTC
        try:
            return ZoneInfo(self._timezone)
        except (KeyError, ValueError, OSError):
            _refuse(
                f"{place} has a time zone, but this machine does not know the query's time zone "
                f"{self._timezone!r} and cannot convert to it"
            )


def _without_placeholders(text: str) -> str:
    """A string or a quoted name with `%%` as `%`."""
    for match in _PLACEHOLDER.finditer(text):
        if not match["percent"]:
            _refuse(
                f"the SQL has {match[0]} inside quotes; remove the quotes, because they are added "
                "with the value"
            )
    if "%" in (left := text.replace("%%", "")):
        _refuse_percent(left[left.index("%") :])
    return text.replace("%%", "%")


def _string(text: str, place: str) -> str:
    if "\0" in text:
        _refuse(f"{place} contains a NUL character, which the service's strings cannot contain")
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(f"{place} contains a broken Unicode character (half of a surrogate pair)")
    return "'" + text.replace("'", "''") + "'"


def _number(value: float | Decimal, place: str) -> str:
    """All digits, and no exponent: the service may read `1e5` as the number 1 with the name e5."""
    exact = Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int):
        _refuse(f"{place} is {exact}, which SQL cannot express; use None for NULL")
    if max(exact.adjusted(), -exponent) > LONGEST_NUMBER:
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
