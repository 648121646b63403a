"""Schedules: what a cron expression may hold, and whether two of them mean the same times."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)
_PART = re.compile(r"(?:(?P<any>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\d+))?")


def check_timezone(name: str) -> str:
    """The name of an IANA time zone. Raises ValueError for any other text."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("must be an IANA time zone, as in Europe/Berlin") from None
    return name


def cron_times(expression: str) -> tuple[frozenset[int], ...]:
    """What each of the five fields of a cron expression allows; Sunday is 0.

    Raises ValueError naming the field that is wrong.
    """
    texts = expression.split()
    if len(texts) != len(_FIELDS):
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    return tuple(_allowed(text, *field) for text, field in zip(texts, _FIELDS, strict=True))


def check_cron(expression: str) -> str:
    """A cron expression of five fields. Raises ValueError naming the field that is wrong."""
    cron_times(expression)
    return expression


def _allowed(text: str, field: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"has a bad {field} field: {part}")
        step = int(match["step"] or 1)
        if match["any"]:
            first, last = low, high
        else:
            first = _number(match["low"], names)
            last = _number(match["high"], names) if match["high"] else first
            if match["step"] and not match["high"]:
                last = high
        if not low <= first <= last <= high or step < 1:
            raise ValueError(f"has a bad {field} field: {part} is not within {low}-{high}")
        found.update(range(first, last + 1, step))
    return frozenset(number % 7 for number in found) if field == "day of week" else frozenset(found)


def _number(text: str, names: dict[str, int]) -> int:
    if text.upper() in names:
        return names[text.upper()]
    return int(text) if text.isdecimal() else -1
