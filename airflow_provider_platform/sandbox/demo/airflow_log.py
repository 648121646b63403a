"""Reads Airflow's JSON log lines: which the demo shows, and how its log file words them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_OURS = "airflow_provider_platform"
_STARTING = "[DAG TEST] starting task_id="
_FAILED = "Task failed with exception"
_FIELDS = {
    "event",
    "exception",
    "timestamp",
    "level",
    "logger",
    "loc",
    "filename",
    "lineno",
    "func_name",
}


@dataclass(frozen=True)
class LogLine:
    """One line of the Airflow process."""

    text: str
    """The line for the log file."""
    task_starting: str | None = None
    """The task that starts with this line."""
    message: str | None = None
    """What our own operators, sensors, hooks and triggers say in this line, or a task's error."""


def read_line(raw: str) -> LogLine:
    """Interpret a line; one that is no JSON (a task's ``print``) is passed on as it is."""
    record = read_record(raw)
    if "event" not in record:
        return LogLine(raw)
    event = str(record["event"])
    logger = str(record.get("logger", ""))
    text = f"{record.get('timestamp', '')} {record.get('level', '')} [{logger}] {event}"
    rest = {name: value for name, value in record.items() if name not in _FIELDS}
    if rest:
        text += f" {_short(rest)}"
    errors = _exceptions(record)
    text += "".join(f"\n{error}\n{frames}" for error, frames in errors)
    if event == _FAILED and errors:
        return LogLine(text, message=f"failed: {errors[0][0]}")
    if event.startswith(_STARTING):
        return LogLine(text, task_starting=event.removeprefix(_STARTING).split()[0])
    if _OURS in logger and record.get("level") != "debug":
        return LogLine(text, message=event)
    return LogLine(text)


def read_record(raw: str) -> dict[str, Any]:
    """The line's fields; none where it is no JSON."""
    try:
        record = json.loads(raw)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _exceptions(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The exception of a record and those that caused it, each with where it was raised."""
    return [
        (
            f"{error.get('exc_type')}: {error.get('exc_value')}",
            "\n".join(
                f"    {frame.get('filename')}:{frame.get('lineno')} in {frame.get('name')}"
                for frame in error.get("frames", [])
            ),
        )
        for error in record.get("exception") or []
        if isinstance(error, dict)
    ]


def _short(fields: dict[str, Any]) -> str:
    return json.dumps(fields, default=str, ensure_ascii=False)


class Unfolded:
    """Passes over what a log viewer folds: the demo shows results at its end."""

    def __init__(self) -> None:
        self._folded = False

    def shown(self, message: str) -> bool:
        """Whether a message, the next one of its task, stands outside of groups."""
        begins, ends = message.startswith("::group::"), message == "::endgroup::"
        shown = not (self._folded or begins or ends)
        self._folded = begins or (self._folded and not ends)
        return shown
