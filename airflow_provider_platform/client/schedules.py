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
_LAST_DAYS = re.compile(r"(^|,)(L|L-\d+|\d{0,2}LW|\d{1,2}W|\w{1,3}L)(,|$)", re.IGNORECASE)
"""The last days of a month, and the working day next to a day."""


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


def cron_times(expression: str) -> tuple[object, ...]:
    """Return the times of a cron expression. Two expressions that mean the same times have equal
    ones. If there are six fields, the first is for seconds. Raises ValueError."""
    from croniter import croniter

    text = expression.strip().lower()
    columns, days_of_month = croniter.expand(text, second_at_beginning=True)
    if columns[_COLUMNS:] == [[0]]:
        columns = columns[:_COLUMNS]
    return (*map(tuple, columns), days_of_month)


def check_cron(expression: str) -> str:
    """Return a cron expression of five fields, of six with seconds, or an alias such as `@daily`.
    Raises ValueError."""
    fields = expression.split()
    is_alias = len(fields) == 1 and fields[0].startswith("@")
    if len(fields) not in (_COLUMNS, _COLUMNS + 1) and not is_alias:
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    try:
        cron_times(expression)
    except ValueError as error:
        if is_alias or not any(_LAST_DAYS.search(field) for field in fields):
            raise ValueError(f"is not a cron expression: {error}") from None
    return expression
