"""Arguments of operators: what is known when the DAG is parsed, and what rendering made of them.

A template may render a number as text and an absent value as "" or "None": after rendering,
`optional`, `number` and `boolean` give the value that was meant. What holds no template is checked
when the DAG is parsed, so that a mistake shows before the first run.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from airflow_provider_platform._airflow import SET_DURING_EXECUTION
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.formats.input_values import in_seconds, read_boolean
from airflow_provider_platform.client.redaction import CUT, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
T = TypeVar("T")

SHOWN = 60
"""Characters of a wrong value that its error shows."""
LONGEST_SECONDS = 1e9
_UNSAID = object()


def is_template(value: Any) -> bool:
    """Whether the value is known only after rendering: a template, or an output of a task."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, dict):
        return any(map(is_template, (*value.keys(), *value.values())))
    if isinstance(value, list | tuple | set):
        return any(map(is_template, value))
    return hasattr(value, "resolve") or value is SET_DURING_EXECUTION


def optional(value: Any) -> Any:
    """The value, or None where it rendered to nothing."""
    if isinstance(value, str) and value.strip() in ("", "None"):
        return None
    return value


def given(**values: Any) -> dict[str, Any]:
    """Those of the arguments that are given: None counts as absent, and is not sent as null."""
    return {name: value for name, value in values.items() if value is not None}


def or_none(
    check: Callable[Concatenate[str, Any, P], T],
) -> Callable[Concatenate[str, Any, P], T | None]:
    """The same check, and None for what rendered to nothing."""

    def checked(name: str, value: Any, /, *args: P.args, **limits: P.kwargs) -> T | None:
        found = optional(value)
        return None if found is None else check(name, found, *args, **limits)

    return checked


def number(
    name: str, value: Any, *, minimum: float | None = None, above: float | None = None
) -> float:
    """A finite number, rendered or not. Raises PlatformInputError."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError):
        raise _refuse(name, "must be a number", value) from None
    except OverflowError:
        found = float("inf")
    if found != found or found in (float("inf"), float("-inf")):
        raise _refuse(name, "must be a finite number", value)
    if minimum is not None and found < minimum:
        raise _refuse(name, f"must be at least {minimum:g}", value)
    if above is not None and found <= above:
        raise _refuse(name, f"must be above {above:g}", value)
    return found


def whole_number(name: str, value: Any, *, minimum: int, maximum: int | None = None) -> int:
    """A whole number, rendered or not: every digit of it, which a float has not of a large one.
    Raises PlatformInputError."""
    found = number(name, value, minimum=minimum)
    if found != int(found):
        raise _refuse(name, "must be a whole number", value)
    if maximum is not None and found > maximum:
        raise _refuse(name, f"must be at most {maximum}", value)
    try:
        return int(value)
    except ValueError:  # a text like "7.0"
        return int(found)


def boolean(name: str, value: Any) -> bool:
    """True or False, rendered or not. Raises PlatformInputError."""
    try:
        return read_boolean(value)
    except ValueError as error:
        raise _refuse(name, str(error), value) from None


def boolean_or(name: str, value: Any, choices: tuple[str, ...]) -> bool | str:
    """True, False, or one of the choices. Raises PlatformInputError."""
    if str(value) in choices:
        return str(value)
    try:
        return read_boolean(value)
    except ValueError:
        rule = f"must be true, false or {' or '.join(choices)}"
        raise _refuse(name, rule, value) from None


def seconds(name: str, value: Any) -> float:
    """A length of time above 0 in seconds, rendered or not, or a timedelta; at most what a moment
    can still be counted with. Raises PlatformInputError."""
    found = number(name, in_seconds(value), above=0)
    if found > LONGEST_SECONDS:
        raise _refuse(name, f"must be at most {LONGEST_SECONDS:.0f} seconds", value)
    return found


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of the choices. Raises PlatformInputError."""
    if str(value) not in choices:
        raise _refuse(name, f"must be one of {', '.join(choices)}", value)
    return str(value)


def identifier(name: str, value: Any) -> int:
    """A positive whole number. Raises PlatformInputError."""
    return whole_number(name, value, minimum=1)


def text(name: str, value: Any) -> str:
    """A text that says something; a number counts as its digits. Raises PlatformInputError."""
    found = optional(value)
    if found is None or _has_no_text(found) or not str(found).strip():
        raise _refuse(name, "must be a non-empty string", value)
    return str(found)


def _has_no_text(value: Any) -> bool:
    """Whether the value is of a kind whose text tells what it is, not what it says: a container, a
    function that was not called, an object."""
    kinds = (bool, dict, list, tuple, set, frozenset, bytes, bytearray)
    is_bare = str(value) == object.__repr__(value)
    return is_bare or callable(value) or isinstance(value, kinds)


optional_boolean = or_none(boolean)
optional_choice = or_none(choice)
optional_id = or_none(identifier)
optional_text = or_none(text)


def mapping(name: str, value: Any) -> dict[str, Any] | None:
    """An object, also as JSON text; None and {} count as absent. Raises PlatformInputError."""
    found = _from_json(name, value, dict, "must be a dict, or a JSON object as a string")
    return found or None


def by_rule(rule: Callable[[str], Any], name: str, value: Any) -> str | None:
    """A text that a rule accepts, or None. The rule raises ValueError, this PlatformInputError."""
    found = optional_text(name, value)
    if found is None:
        return None
    try:
        rule(found)
    except ValueError as error:
        raise _refuse(name, str(error)) from None
    return found


def sequence(name: str, value: Any) -> list[Any] | None:
    """A list, also as JSON text; None counts as absent. Raises PlatformInputError."""
    plain = list(value) if isinstance(value, tuple | set) else value
    return _from_json(name, plain, list, "must be a list, or a JSON list as a string")


def moment(name: str, value: Any) -> str | None:
    """A point in time as ISO 8601, given as a datetime or as text (UTC where it names no zone), or
    None. Raises PlatformInputError."""
    from datetime import UTC, date, datetime

    found = optional(value)
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found.strip())
        except ValueError:
            raise _refuse(name, "must be a date or a time in ISO 8601", value) from None
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime(found.year, found.month, found.day, tzinfo=UTC)
    if found is not None and not isinstance(found, datetime):
        raise _refuse(name, "must be a date or a time in ISO 8601", value)
    if found is None:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()


def session_settings(name: str, value: Any) -> dict[str, Any] | None:
    """Who a chat call acts as; checked as soon as it is known. Raises PlatformInputError."""
    found = mapping(name, value)
    if found is not None and not is_template(found):
        from airflow_provider_platform.client.settings.session_settings import (
            session_settings as check,
        )

        with within(name):
            check(found)
    return found


def column_types(name: str, value: Any) -> str | dict[str, str]:
    """Types of the columns of a result: a mode, or a type for each column that is named, also as
    JSON text. Raises PlatformInputError."""
    from airflow_provider_platform.results.columns import ColumnTypes

    is_object = isinstance(value, dict) or str(value).lstrip().startswith("{")
    found: Any = _from_json(name, value, dict, "must be a dict") if is_object else value
    try:
        ColumnTypes.parse(found)
    except ValueError as error:
        raise _refuse(name, str(error)) from None
    types: str | dict[str, str] = found
    return types


def _from_json(name: str, value: Any, kind: type[T], rule: str) -> T | None:
    """A value of a kind, also as JSON text; None where it rendered to nothing."""
    found = optional(value)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            raise _refuse(name, f"{rule}; the string is not valid JSON") from None
    if found is not None and not isinstance(found, kind):
        raise _refuse(name, f"{rule}; got {type(found).__name__}")
    return found


@contextmanager
def within(name: str) -> Iterator[None]:
    """Errors of a part of an argument name the argument."""
    try:
        yield
    except PlatformInputError as error:
        part = error.reason.removeprefix("Nothing was sent: ")
        raise PlatformInputError(
            f"Nothing was sent: {name}: {part}", field=error.field or name
        ) from None


def shown(value: Any) -> str:
    """A value as an error may show it: one line, and of an object or a list, which may hold
    anything, only that it is one."""
    if isinstance(value, str):
        text = printable(value)
        return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + CUT)
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    return f"a value of type {type(value).__name__}"


def _refuse(name: str, rule: str, value: Any = _UNSAID) -> PlatformInputError:
    given = "" if value is _UNSAID else f", got {shown(value)}"
    return PlatformInputError(f"Nothing was sent: {name} {rule}{given}.", field=name)
