"""Schedules of notifications: their types and parts, and cron expressions that are spelled alike.

The service decides which cron expressions it knows: it answers 400 to any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SCHEDULE_TYPES = ("HOURLY", "DAILY", "WEEKLY", "MONTHLY", "CUSTOM")
PARTS_OF: dict[str, frozenset[str]] = {
    "HOURLY": frozenset({"minute"}),
    "DAILY": frozenset({"minute", "hour"}),
    "WEEKLY": frozenset({"minute", "hour", "day_of_week"}),
    "MONTHLY": frozenset({"minute", "hour", "day_of_month"}),
    "CUSTOM": frozenset({"custom_cron"}),
}
RANGES = {"minute": (0, 59), "hour": (0, 23), "day_of_week": (0, 6), "day_of_month": (1, 31)}
"""The values of each part, both ends included; 0 is Sunday."""

_FIELDS = (5, 6)
"""How many fields a cron expression may have: the sixth is for seconds and stands first."""
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_NUMBERS = {
    **{name: str(number) for number, name in enumerate(_DAYS)},
    **{name: str(number) for number, name in enumerate(_MONTHS, 1)},
}


def check_parts(schedule_type: str | None, parts: Mapping[str, object]) -> None:
    """Check that the given parts (those that are not None) go with the schedule type, if that is
    given. Raises ValueError naming the part."""
    if schedule_type is None:
        return
    if schedule_type == "CUSTOM" and parts.get("custom_cron") is None:
        raise ValueError("custom_cron is needed with schedule_type CUSTOM")
    for part, value in parts.items():
        if value is not None and part not in PARTS_OF[schedule_type]:
            raise ValueError(f"{part} cannot be used with schedule_type {schedule_type}")


def same_times(one: str, other: str) -> bool:
    """Return whether two cron expressions are spelled alike, whatever their case, with or without
    names of days and months, and with or without leading zeros."""
    return _numbered(one) == _numbered(other)


def check_cron(expression: str) -> str:
    """Return a cron expression of five fields, of six with seconds, or an alias such as `@daily`.
    Raises ValueError for any other number of fields."""
    fields = expression.split()
    is_alias = len(fields) == 1 and fields[0].startswith("@")
    if len(fields) not in _FIELDS and not is_alias:
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    return expression


def _numbered(expression: str) -> list[str]:
    text = re.sub(r"[A-Z]{3}", lambda name: _NUMBERS.get(name[0], name[0]), expression.upper())
    return re.sub(r"\b0+(?=\d)", "", text).split()
