"""Schedules of notifications: from their parts to a cron expression and to words."""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import ZoneInfo

from airflow_provider_platform.sandbox.http import checks

TYPES = ("HOURLY", "DAILY", "WEEKLY", "MONTHLY", "CUSTOM")
_BOUNDS = ((0, 59, False), (0, 23, False), (1, 31, False), (1, 12, True), (0, 7, True))
"""The least and the most number of each field, and whether a range may run past its end."""
_NAMES = ("jan feb mar apr may jun jul aug sep oct nov dec", "sun mon tue wed thu fri sat")
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_DEFAULTS = {"minute": 0, "hour": 9, "dayOfWeek": 1, "dayOfMonth": 1}
"""For parts that are left out, which the contract allows and does not explain."""


def _time_zone(value: str, name: str) -> list[str]:
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        return [f"{name} must be an IANA time zone"]
    return []


def _cron(value: str, name: str) -> list[str]:
    fields = value.split()
    good = len(fields) == len(_BOUNDS) and all(
        _cron_part(part, *bounds)
        for field, bounds in zip(_numbered(fields), _BOUNDS, strict=True)
        for part in field.split(",")
    )
    return [] if good else [f"{name} must be a cron expression of five fields"]


TIME_ZONE = checks.string().also(_time_zone)
PARTS: checks.Fields = {
    "scheduleType": checks.string(one_of=TYPES),
    "customCron": checks.string().also(_cron),
    "dayOfMonth": checks.integer(minimum=1, maximum=31),
    "dayOfWeek": checks.integer(minimum=0, maximum=6),
    "hour": checks.integer(minimum=0, maximum=23),
    "minute": checks.integer(minimum=0, maximum=59),
    "timezone": TIME_ZONE,
}


def broken_rules(parts: dict[str, Any]) -> list[str]:
    """What is wrong with the parts taken together."""
    if parts["scheduleType"] == "CUSTOM" and "customCron" not in parts:
        return ["customCron is required when scheduleType is CUSTOM"]
    return []


def expression(parts: dict[str, Any]) -> str:
    """The cron expression, in the notification's own time zone."""
    known = {**_DEFAULTS, **parts}
    minute, hour = known["minute"], known["hour"]
    return {
        "HOURLY": f"{minute} * * * *",
        "DAILY": f"{minute} {hour} * * *",
        "WEEKLY": f"{minute} {hour} * * {known['dayOfWeek']}",
        "MONTHLY": f"{minute} {hour} {known['dayOfMonth']} * *",
        "CUSTOM": " ".join(known.get("customCron", "").split()),
    }[parts["scheduleType"]]


def words(parts: dict[str, Any]) -> str:
    """The schedule for people."""
    known = {**_DEFAULTS, **parts}
    at = f"at {known['hour']:02d}:{known['minute']:02d}"
    return {
        "HOURLY": f"Every hour at minute {known['minute']}",
        "DAILY": f"Every day {at}",
        "WEEKLY": f"Every {_DAYS[known['dayOfWeek']]} {at}",
        "MONTHLY": f"On day {known['dayOfMonth']} of every month {at}",
        "CUSTOM": f"Custom: {known.get('customCron')}",
    }[parts["scheduleType"]]


def _numbered(fields: list[str]) -> list[str]:
    """The fields with the names of months and weekdays written as numbers."""
    named = [field.lower() for field in fields]
    for index, names, base in ((3, _NAMES[0], 1), (4, _NAMES[1], 0)):
        for number, name in enumerate(names.split(), start=base):
            named[index] = re.sub(rf"\b{name}\b", str(number), named[index])
    return named


def _cron_part(part: str, least: int, most: int, goes_round: bool) -> bool:
    found = re.fullmatch(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/([1-9]\d?))?", part)
    if found is None:
        return False
    numbers = [int(text) for text in found.groups()[:2] if text is not None]
    inside = all(least <= number <= most for number in numbers)
    return inside and (goes_round or numbers == sorted(numbers))
