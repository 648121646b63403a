"""Values as an author, a form or a template writes them: booleans, JSON, times, time zones.

The rules of arguments (`operations.rules`), the fields of the connection and the models read values
with these functions, and add the name of the argument or field to the error.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

T = TypeVar("T")

Seconds = float | timedelta
"""A length of time: seconds, or a timedelta."""

_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def is_absent(value: object) -> bool:
    """Return whether the value is None, or what a template renders for an absent value."""
    return value is None or (isinstance(value, str) and value.strip() in ("", "None"))


def read_json_string(value: Any) -> Any:
    """Return the value; of a string, the value that it contains as JSON. Raises ValueError for a
    string that is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


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
