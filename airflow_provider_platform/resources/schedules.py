"""Schedules of notifications: their types and parts, and when two cron expressions mean the same.

croniter parses cron expressions. It does not know every form that the service may know (`LW`, `L-3`
and `5L`): such an expression is sent as it is, and the service answers 400 if it does not know it.
Operators check their arguments while a DAG file is parsed, so croniter is imported only for a cron
expression.
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

_COLUMNS = 5
_DAYS_OF_MONTH, _DAYS_OF_WEEK = -3, -1
"""Where these two stand in an expression, also behind a first field of seconds."""
_SERVICE_FORM = re.compile(r"L|LW|L-\d{1,2}|\d{1,2}W|[A-Z0-9]{1,3}(L|#\d)", re.IGNORECASE)
"""Forms of a day that croniter does not know, alone or beside plain days."""
_DRAWN = re.compile(r"\b[HR]\b", re.IGNORECASE)
"""croniter replaces these by random numbers."""
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
    """Return whether two cron expressions mean the same times. Those that croniter does not know
    must be spelled alike, whatever their case and with or without names."""
    try:
        return cron_times(one) == cron_times(other)
    except ValueError:
        return _numbered(one) == _numbered(other)


def cron_times(expression: str) -> tuple[object, ...]:
    """Return the times of a cron expression. Two expressions that mean the same times have equal
    ones. If there are six fields, the first is for seconds. Raises ValueError."""
    from croniter import croniter

    if _DRAWN.search(expression):
        raise ValueError("H and R stand for random numbers")
    text = expression.strip().lower()
    columns, days_of_month = croniter.expand(text, second_at_beginning=True)
    if columns[_COLUMNS:] == [[0]]:
        columns = columns[:_COLUMNS]
    return (*map(tuple, columns), days_of_month)


def check_cron(expression: str) -> str:
    """Return a cron expression of five fields, of six with seconds, or an alias such as `@daily`.
    Days that croniter does not know are left to the service. Raises ValueError."""
    fields = expression.split()
    is_alias = len(fields) == 1 and fields[0].startswith("@")
    if len(fields) not in (_COLUMNS, _COLUMNS + 1) and not is_alias:
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    if not is_alias:
        for at in (_DAYS_OF_MONTH, _DAYS_OF_WEEK):
            known = [part for part in fields[at].split(",") if not _SERVICE_FORM.fullmatch(part)]
            fields[at] = ",".join(known) or "*"
    try:
        cron_times(" ".join(fields))
    except ValueError as error:
        raise ValueError(f"is not a cron expression: {error}") from None
    return expression


def _numbered(expression: str) -> list[str]:
    text = re.sub(r"[A-Z]{3}", lambda name: _NUMBERS.get(name[0], name[0]), expression.upper())
    return text.split()
