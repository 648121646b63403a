"""Schedules: their kinds and parts, what a cron expression may hold, when two mean the same times.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from zoneinfo import ZoneInfo

SCHEDULE_TYPES = ("HOURLY", "DAILY", "WEEKLY", "MONTHLY", "CUSTOM")
PARTS_OF: dict[str, frozenset[str]] = {
    "HOURLY": frozenset({"minute"}),
    "DAILY": frozenset({"minute", "hour"}),
    "WEEKLY": frozenset({"minute", "hour", "day_of_week"}),
    "MONTHLY": frozenset({"minute", "hour", "day_of_month"}),
    "CUSTOM": frozenset({"custom_cron"}),
}
RANGES = {"minute": (0, 59), "hour": (0, 23), "day_of_week": (0, 6), "day_of_month": (1, 31)}
"""What each part may be, both ends included; 0 is Sunday."""

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


def check_parts(schedule_type: str | None, parts: Mapping[str, object]) -> None:
    """Whether the parts that are given (not None) go with the schedule type, if that is given.

    Raises ValueError naming the part.
    """
    if schedule_type is None:
        return
    if schedule_type == "CUSTOM" and parts.get("custom_cron") is None:
        raise ValueError("custom_cron is needed with schedule_type CUSTOM")
    for part, value in parts.items():
        if value is not None and part not in PARTS_OF[schedule_type]:
            raise ValueError(f"{part} does not go with schedule_type {schedule_type}")


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
