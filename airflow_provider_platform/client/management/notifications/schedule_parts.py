"""Schedules: their kinds, their parts, and which parts go with which kind.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
"""

from __future__ import annotations

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
"""What each part may be, both ends included; 0 is Sunday."""


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
            raise ValueError(f"{part} cannot be used with schedule_type {schedule_type}")
