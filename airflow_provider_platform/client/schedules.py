"""Schedules: their kinds and parts, what a cron expression may hold, and when two mean the same
times.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
croniter, which Airflow brings, reads another language: it refuses `LW`, `L-3` and `L` as a day of
the week, which the service may know, and accepts `30-10` as minutes and a seventh field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True)
class _Field:
    """A field of a cron expression: its numbers, and how many they are where a range may go on at
    their beginning, as FRI-MON does. `special` are further forms, which not every service knows."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)
    cycle: int | None = None
    special: re.Pattern[str] = re.compile(r"(?!)")


_SECOND = _Field("second", 0, 59)
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field(
        "day of month",
        1,
        31,
        special=re.compile(r"\?|L|LW|L-(?:[1-9]|[12]\d|30)|(?:[1-9]|[12]\d|3[01])W"),
    ),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}, cycle=12),
    _Field(
        "day of week",
        0,
        7,
        {name: number for number, name in enumerate(_DAYS)},
        cycle=7,
        special=re.compile(rf"\?|L|(?:[0-7]|{'|'.join(_DAYS)})(?:L|#[1-5])"),
    ),
)
_PART = re.compile(r"(?:(?P<any>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)
_MACROS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}


def cron_times(expression: str) -> tuple[frozenset[int | str], ...]:
    """What each of the five fields of a cron expression allows: numbers (Sunday is 0), and forms
    that no list of numbers expresses, as `5#2`, `L`. A sixth field, of the seconds, comes first
    unless it says 0.

    Raises ValueError naming the field that is wrong.
    """
    texts = _MACROS.get(expression.strip().upper(), expression).split()
    fields = (_SECOND, *_FIELDS) if len(texts) == len(_FIELDS) + 1 else _FIELDS
    if len(texts) != len(fields):
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    times = tuple(_allowed(text, field) for text, field in zip(texts, fields, strict=True))
    return times[1:] if len(times) > len(_FIELDS) and times[0] == {0} else times


def check_cron(expression: str) -> str:
    """A cron expression. Raises ValueError naming the field that is wrong."""
    cron_times(expression)
    return expression


def cron_doubt(expression: str) -> str | None:
    """Why a service that knows plain cron only may refuse an expression that passes `check_cron`;
    None for one of five plain fields."""
    texts = expression.split()
    if len(texts) == 1:
        return f"{texts[0]} is an alias, not a cron expression"
    if len(texts) > len(_FIELDS):
        return "it has six fields (the first for seconds)"
    for text, known in zip(texts, _FIELDS, strict=True):
        for part in text.upper().split(","):
            if known.special.fullmatch(part):
                return f"{part} in the {known.name} field is not standard cron syntax"
    return None


def _allowed(text: str, field: _Field) -> frozenset[int | str]:
    if not text.isascii():
        raise ValueError(f"has a bad {field.name} field: {text}")
    values: set[int | str] = set()
    for part in text.upper().split(","):
        if field.special.fullmatch(part):
            values.update(_every(field) if part == "?" else {_numbered(part, field)})
        else:
            values.update(_numbers(part, field))
    return frozenset(values)


def _numbers(part: str, field: _Field) -> set[int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"has a bad {field.name} field: {part}")
    step = int(match["step"] or 1)
    if match["any"]:
        first, last = field.low, field.high
    else:
        first = _number(match["low"], field)
        last = _number(match["high"], field) if match["high"] else first
        if match["step"] and not match["high"]:
            last = field.high
    inside = field.low <= first <= field.high and field.low <= last <= field.high
    if inside and last < first and field.cycle is not None:
        last += field.cycle
    if not inside or last < first or step < 1:
        raise ValueError(
            f"has a bad {field.name} field: {part} is not within {field.low}-{field.high}"
        )
    return {_in_cycle(number, field) for number in range(first, last + 1, step)}


def _every(field: _Field) -> set[int]:
    return {_in_cycle(number, field) for number in range(field.low, field.high + 1)}


def _in_cycle(number: int, field: _Field) -> int:
    if field.cycle is None:
        return number
    return (number - field.low) % field.cycle + field.low


def _numbered(part: str, field: _Field) -> str:
    """A special form with numbers for names, and one for Sunday."""
    for name, number in field.names.items():
        part = part.replace(name, str(number))
    return "0" + part[1:] if field.cycle and part[0] == "7" else part


def _number(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names[text]
    return int(text) if text.isdecimal() else -1
