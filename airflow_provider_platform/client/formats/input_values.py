"""Values as an author, a form or a template writes them: booleans, lengths of time, time zones.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

T = TypeVar("T")

Seconds = float | timedelta
"""A length of time: seconds, or a timedelta."""

_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


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
