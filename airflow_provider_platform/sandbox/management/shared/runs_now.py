"""Runs of what can be run now: a delivery, a scheduled task. The clock says what became of one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.resource import Call


@dataclass(frozen=True)
class Run:
    """One run; `end` is its status from `ends_at` on (Unix time)."""

    run_id: str
    started_at: float
    ends_at: float
    end: str
    succeeds: bool
    error: str | None = None

    def is_running(self, now: float) -> bool:
        return now < self.ends_at

    def answer(self, call: Call) -> dict[str, Any]:
        """The run as an operation on this one run answers."""
        now, stamp = call.server.clock.now(), call.server.clock.stamp
        running = self.is_running(now)
        return {
            "status": "running" if running else self.end,
            "trigger": "manual",
            "startedAt": stamp(self.started_at),
            "endedAt": None if running else stamp(self.ends_at),
            "error": None if running else self.error,
        }

    def row(self, call: Call) -> dict[str, Any]:
        """The run as a list names it."""
        name = call.server.settings.run_ids
        return {**({} if name == "none" else {name: self.run_id}), **self.answer(call)}


@dataclass
class Runs:
    """The runs of all subjects of one kind, oldest first; a subject is a deployment and an id."""

    of: dict[tuple[int, int], list[Run]] = field(default_factory=dict)

    def newest_first(self, subject: tuple[int, int]) -> list[Run]:
        return self.of.get(subject, [])[::-1]

    def running(self, subject: tuple[int, int], now: float) -> Run | None:
        return next((run for run in self.newest_first(subject) if run.is_running(now)), None)

    def start(
        self,
        call: Call,
        subject: tuple[int, int],
        *,
        seconds: float,
        end: str,
        succeeds: bool,
        error: str | None,
    ) -> Run:
        now = call.server.clock.now()
        run = Run(uuid.uuid4().hex, now, now + seconds, end, succeeds, error)
        self.of.setdefault(subject, []).append(run)
        return run

    def get(self, subject: tuple[int, int], run_id: str) -> Run:
        found = next((run for run in self.of.get(subject, []) if run.run_id == run_id), None)
        if found is None:
            raise ApiError(404, f"Run {run_id} not found")
        return found
