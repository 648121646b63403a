"""Rules of arguments: which values are allowed, and which arguments need or exclude each other.

These are the rules of arguments that are not fields of a model: arguments of operators, sensors,
hook methods and calls of operations. Bodies, queries and the connection have models, which pydantic
checks. Both read values that an author, a form or a template has written with the functions at the
top: booleans, JSON, digits, time zones.

A rule of one value gets the argument's name and value, and returns the converted value or raises
PlatformInputError. A template may render a number as a string and an absent value as "" or "None",
so the rules parse strings. A rule of several arguments gets the values by name, None for an absent
value, and raises ValueError. Operators declare these rules in `rules`.

This module and its imports need only the standard library, so arguments can be checked while
Airflow parses a DAG file.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.redaction import CUT, printable, quote_service

if TYPE_CHECKING:
    from collections.abc import Iterator


T = TypeVar("T")

Seconds = float | timedelta
"""A length of time: seconds, or a timedelta."""

_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def is_absent(value: object) -> bool:
    """Return whether the value is None, or what a template renders for an absent value."""
    return value is None or (isinstance(value, str) and value.strip() in ("", "None"))


def read_json_string(value: Any) -> Any:
    """Return the value; of a string, the value that it contains as JSON, or the list or dict that
    it contains as Python writes it: a template without `| tojson` renders to that. Raises
    ValueError for any other string."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        if value.strip()[:1] not in ("[", "{"):
            raise
        try:
            return ast.literal_eval(value.strip())
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise error from None


def read_digits(value: object) -> int:
    """Return a whole number, 0 or more, of an int or a string of digits. Raises ValueError."""
    text = str(value).strip()
    if isinstance(value, bool) or not text.isascii() or not text.isdigit():
        raise ValueError("must be a whole number")
    return int(text)


def read_boolean(value: object) -> bool:
    """The truth that is meant, in whatever case. Raises ValueError for any other word."""
    if isinstance(value, bool):
        return value
    boolean = _WORDS.get(str(value).strip().lower())
    if boolean is None:
        raise ValueError("must be true or false")
    return boolean


def in_seconds(value: T | timedelta) -> T | float:
    """A timedelta as seconds; anything else as it is."""
    return value.total_seconds() if isinstance(value, timedelta) else value


def check_timezone(name: str) -> str:
    """The name of an IANA time zone. Raises ValueError for any other text."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("must be an IANA time zone, for example Europe/Berlin") from None
    return name


C = TypeVar("C", bound=str)
P = ParamSpec("P")

SHOWN = 60
"""How many characters of a wrong value its error shows."""
LONGEST_SECONDS = 1e9
_UNSAID = object()


# One argument


def given(**values: Any) -> dict[str, Any]:
    """Return the arguments that are not None: None counts as absent, and is not sent as null."""
    return {name: value for name, value in values.items() if value is not None}


def optional(value: Any) -> Any:
    """Return the value, or None if it rendered to nothing."""
    return None if is_absent(value) else value


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that rendered to something."""
    return {name: value for name, value in values.items() if not is_absent(value)}


def or_none(
    check: Callable[Concatenate[str, Any, P], T],
) -> Callable[Concatenate[str, Any, P], T | None]:
    """Return the same check, with None for a value that rendered to nothing."""

    def checked(name: str, value: Any, /, *args: P.args, **limits: P.kwargs) -> T | None:
        present = optional(value)
        return None if present is None else check(name, present, *args, **limits)

    return checked


def number(
    name: str,
    value: Any,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
) -> float:
    """Return a finite number, also from a string. Raises PlatformInputError."""
    try:
        if isinstance(value, bool):
            raise TypeError
        parsed = float(value)
    except (TypeError, ValueError):
        raise refuse(name, "must be a number", value) from None
    except OverflowError:
        parsed = float("inf")
    if parsed != parsed or parsed in (float("inf"), float("-inf")):
        raise refuse(name, "must be a finite number", value)
    if minimum is not None and parsed < minimum:
        raise refuse(name, f"must be at least {minimum:g}", value)
    if above is not None and parsed <= above:
        raise refuse(name, f"must be above {above:g}", value)
    if maximum is not None and parsed > maximum:
        raise refuse(name, f"must be at most {maximum:g}", value)
    return parsed


def whole_number(name: str, value: Any, *, minimum: int, maximum: int | None = None) -> int:
    """Return a whole number, also from a string, with all its digits, which a float would lose.
    Raises PlatformInputError."""
    parsed = number(name, value, minimum=minimum, maximum=maximum)
    if parsed != int(parsed):
        raise refuse(name, "must be a whole number", value)
    try:
        return int(value)
    except ValueError:  # a string like "7.0"
        return int(parsed)


def integer(name: str, value: Any, *, minimum: int) -> int:
    """Return an int; a string is refused. Raises PlatformInputError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise refuse(name, f"must be a whole number, {minimum} or more", value)
    return value


def boolean(name: str, value: Any) -> bool:
    """Return True or False, also from a string. Raises PlatformInputError."""
    try:
        return read_boolean(value)
    except ValueError as error:
        raise refuse(name, str(error), value) from None


def boolean_or(name: str, value: Any, choices: tuple[str, ...]) -> bool | str:
    """Return True, False, or one of the choices. Raises PlatformInputError."""
    if str(value) in choices:
        return str(value)
    try:
        return read_boolean(value)
    except ValueError:
        rule = f"must be true, false or {' or '.join(choices)}"
        raise refuse(name, rule, value) from None


def seconds(name: str, value: Any) -> float:
    """Return a duration above 0 in seconds, from a number, a string or a timedelta. It must be
    small enough for date arithmetic. Raises PlatformInputError."""
    parsed = number(name, in_seconds(value), above=0)
    if parsed > LONGEST_SECONDS:
        raise refuse(name, f"must be at most {LONGEST_SECONDS:.0f} seconds", value)
    return parsed


def choice(name: str, value: Any, choices: tuple[C, ...]) -> C:
    """Return one of the choices. Raises PlatformInputError."""
    for known in choices:
        if known == str(value):
            return known
    raise refuse(name, f"must be one of {', '.join(choices)}", value)


def identifier(name: str, value: Any) -> int:
    """Return a positive whole number. Raises PlatformInputError."""
    return whole_number(name, value, minimum=1)


def text(name: str, value: Any) -> str:
    """Return a non-empty string; a number counts as its digits. Raises PlatformInputError."""
    present = optional(value)
    if present is None or _has_no_text(present) or not str(present).strip():
        raise refuse(name, "must be a non-empty string", value)
    return str(present)


def _has_no_text(value: Any) -> bool:
    """Return whether the string of a value would only describe the object: a container, a function
    that was not called, an object."""
    types = (bool, dict, list, tuple, set, frozenset, bytes, bytearray)
    is_bare = str(value) == object.__repr__(value)
    return is_bare or callable(value) or isinstance(value, types)


_NOT_IN_BRANCHES = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
_TIME_OF_RUN = re.compile(r"\d\d:\d\d")


def check_branch_name(name: str, field: str = "branch_name") -> str:
    """Return the name. Raises PlatformInputError, with the rule, if Git refuses the name. It is a
    segment of the branch's data API address, where `..` would name production."""
    problem = _problem_of_branch(name)
    if problem is None:
        return name
    raise PlatformInputError(
        f"Nothing was sent: {quote_service(name)!r} cannot be a branch name: {problem}.",
        field=field,
    )


def _problem_of_branch(name: str) -> str | None:
    refused = _NOT_IN_BRANCHES.search(name)
    if refused is not None:
        step = (
            ". A run_id has such characters: use `ts_nodash` instead, for example "
            "'feature-{{ dag_run.run_after | ts_nodash }}'"
            if _TIME_OF_RUN.search(name)
            else ""
        )
        return f"the character {refused[0]!r} is not allowed{step}"
    if not name.isprintable():
        return "it has a character that cannot be printed"
    segments = name.split("/")
    if "" in segments:
        return "it begins or ends with a slash, has two slashes in a row, or is empty"
    if any(segment.startswith(".") or segment.endswith((".", ".lock")) for segment in segments):
        return "no part between slashes may begin or end with a dot, or end with .lock"
    if ".." in name or "@{" in name or name == "@" or name.startswith("-"):
        return "it may not contain '..' or '@{', begin with '-', or be '@'"
    return None


def branch(name: str, value: Any) -> str:
    """Return the name of a branch. Raises PlatformInputError."""
    return check_branch_name(text(name, value), name)


_AGENT_ID = re.compile(r"[A-Za-z0-9_-]+")


def check_agent_id(agent_id: int | str, field: str = "agent_id") -> str:
    """Return the id. Raises PlatformInputError if it cannot be one part of an address."""
    if isinstance(agent_id, bool) or _AGENT_ID.fullmatch(str(agent_id)) is None:
        raise PlatformInputError(
            f"Nothing was sent: {field} must be the id of an agent (letters, digits, - and _), as "
            f"in its address …/agents/{{id}}, got {quote_service(agent_id)!r}.",
            field=field,
        )
    return str(agent_id)


def agent(name: str, value: Any) -> str:
    """Return the id of an agent. Raises PlatformInputError."""
    return check_agent_id(text(name, value), name)


def has_relative_steps(path: str) -> bool:
    """Whether a path (without its outer slashes) has an empty segment or leads elsewhere by `.`
    or `..`, encoded ones included."""
    return any(
        not segment or any(part in (".", "..") for part in re.split(r"[/\\]", unquote(segment)))
        for segment in path.split("/")
    )


DEPLOYMENT = "deploymentId"
"""The path parameter that the configuration fills in if no deployment is given."""

PARAMETER = re.compile(r"\{(\w+)\}")
"""A parameter of a path, named as the service spells it."""


def check_path(path: str) -> str:
    """Return a caller's path below the management address, with a leading `/`.

    A trailing `/` is kept (one described operation has it), and so is `{deploymentId}`. Raises
    PlatformInputError.
    """
    if not isinstance(path, str):
        raise refuse("path", f"must be text, not of type {type(path).__name__}")
    text = re.sub(r"^/?api/(?=v1/)", "/", path.strip())  # as the service's documents write it
    unknown = [name for name in PARAMETER.findall(text) if name != DEPLOYMENT]
    if "://" in text or text.startswith("//"):
        problem = "must be a path below the management address, not a full URL"
    elif any(character in text for character in "?#\\") or not text.isprintable() or " " in text:
        problem = "must not contain a query, a fragment, a backslash or white space"
    elif not text.strip("/"):
        problem = "must not be empty"
    elif unknown:
        problem = (
            f"has the placeholder {{{unknown[0]}}}. Replace it with the id. The task fills in "
            f"only {{{DEPLOYMENT}}}, from the connection"
        )
    elif text.removeprefix("/").startswith("api/"):
        problem = "must begin with /v1 or /build/api, such as /v1/reports"
    else:
        if not has_relative_steps(text.removeprefix("/").removesuffix("/")):
            return "/" + text.removeprefix("/")
        problem = "must not contain empty or relative segments"
    raise refuse("path", problem)


def check_deployment_id(value: object) -> int | None:
    """Return a deployment's id as a number; None if it is not given. Raises PlatformInputError."""
    if value is None:
        return None
    with suppress(ValueError):
        if number := read_digits(value):
            return number
    raise refuse("deployment_id", "must be a positive whole number", value)


optional_agent = or_none(agent)
optional_boolean = or_none(boolean)
optional_branch = or_none(branch)
optional_choice = or_none(choice)
optional_id = or_none(identifier)
optional_text = or_none(text)


def mapping(name: str, value: Any) -> dict[str, Any] | None:
    """Return an object, also from a JSON string; None and {} count as absent. Raises
    PlatformInputError."""
    parsed = from_json(name, value, dict, "must be a dict, or a JSON object as a string")
    return parsed or None


def by_rule(rule: Callable[[str], Any], name: str, value: Any) -> str | None:
    """Return a string that a rule accepts, or None. Raises PlatformInputError if the rule raises
    ValueError."""
    present = optional_text(name, value)
    if present is None:
        return None
    try:
        rule(present)
    except ValueError as error:
        raise refuse(name, str(error)) from None
    return present


def sequence(name: str, value: Any) -> list[Any] | None:
    """Return a list, also from a JSON string; None counts as absent. Raises PlatformInputError."""
    plain = list(value) if isinstance(value, tuple | set) else value
    return from_json(name, plain, list, "must be a list, or a JSON list as a string")


def names(name: str, value: Any) -> list[str] | None:
    """Return a list of names, from a list, one name or a JSON string; None for an empty list.
    Raises PlatformInputError."""
    one = isinstance(value, str) and not is_absent(value) and not value.lstrip().startswith("[")
    items = sequence(name, [value] if one else value)
    if items is not None and not all(isinstance(item, str) and item.strip() for item in items):
        raise refuse(name, "must be a list of names")
    return items or None


def moment(name: str, value: Any) -> str | None:
    """Return a time in ISO 8601, from a datetime or a string (UTC if it has no zone), or None.
    Raises PlatformInputError."""
    from datetime import UTC, date, datetime

    parsed = optional(value)
    if isinstance(parsed, str):
        try:
            parsed = datetime.fromisoformat(parsed.strip())
        except ValueError:
            raise refuse(name, "must be a date or a time in ISO 8601", value) from None
    if isinstance(parsed, date) and not isinstance(parsed, datetime):
        parsed = datetime(parsed.year, parsed.month, parsed.day, tzinfo=UTC)
    if parsed is not None and not isinstance(parsed, datetime):
        raise refuse(name, "must be a date or a time in ISO 8601", value)
    if parsed is None:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).isoformat()


# Several arguments

Rule: TypeAlias = tuple[tuple[str, ...], Callable[..., None]]
"""Names of arguments (first the name that an error uses), and the function that checks their
values."""


def required(**values: Any) -> None:
    """Check that all of them are given."""
    for name, value in values.items():
        if value is None:
            raise ValueError(f"{name} must be given")


def exactly_one(**values: Any) -> None:
    """Check that exactly one of them is given."""
    if sum(value is not None for value in values.values()) != 1:
        raise ValueError(f"give exactly one of {' and '.join(values)}")


def at_most_one(**values: Any) -> None:
    """Check that at most one of them is given."""
    if sum(value is not None for value in values.values()) > 1:
        raise ValueError(f"give only one of {' and '.join(values)}")


def together(**values: Any) -> None:
    """Check that all of them or none of them are given."""
    if len({value is None for value in values.values()}) > 1:
        raise ValueError(f"give both {' and '.join(values)}, or neither")


# Errors


@contextmanager
def within(name: str) -> Iterator[None]:
    """Make errors about a part of an argument name the argument."""
    try:
        yield
    except PlatformInputError as error:
        part = error.reason.removeprefix("Nothing was sent: ")
        raise PlatformInputError(
            f"Nothing was sent: {name}: {part}", field=error.field or name
        ) from None


def shown(value: Any) -> str:
    """Return a value as an error may show it: one line. For an object or a list, which may contain
    anything, return only its kind."""
    if isinstance(value, str):
        text = printable(value)
        return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + CUT)
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    return f"a value of type {type(value).__name__}"


def refuse(name: str, rule: str, value: Any = _UNSAID) -> PlatformInputError:
    """Return the error of an argument that breaks a rule, with the wrong value if it is given."""
    got = "" if value is _UNSAID else f", got {shown(value)}"
    return PlatformInputError(f"Nothing was sent: {name} {rule}{got}.", field=name)


def from_json(name: str, value: Any, type_: type[T], rule: str) -> T | None:
    """Return a value of a type, also from a JSON string; None if it rendered to nothing."""
    try:
        parsed = read_json_string(optional(value))
    except ValueError:
        raise refuse(name, f"{rule}; the string is not valid JSON") from None
    if parsed is not None and not isinstance(parsed, type_):
        raise refuse(name, f"{rule}; got {type(parsed).__name__}")
    return parsed
