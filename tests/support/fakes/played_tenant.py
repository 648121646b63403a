"""A tenant's dbt syncs played by a test: it answers a program's calls, and its clock is ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformNotFoundError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.dbt_sync import TERMINAL_STATUSES
from tests.support.fakes.effects import Call, Program, Sleep, play

if TYPE_CHECKING:
    from airflow_provider_platform.client.operation import Operation

T = TypeVar("T")

NOON = 1_800_000_000.0
SYNC = "sync-1"
NOT_FOUND = PlatformNotFoundError("not found", status=404)
NO_ANSWER = PlatformTransportError("the connection broke")


def at(moment: float) -> str:
    """A Unix time as the history writes it."""
    return datetime.fromtimestamp(moment, UTC).isoformat()


@dataclass
class PlayedTenant:
    """The service. A sync goes through `stages`: (seconds that it lasts, status); the last one
    stays. It is cancelled after `cancelled_after` seconds, which only the history shows.

    `faults` are the errors of the first calls to an operation, by its id, None for an answer;
    those of a start in `lost` come after it was carried out. Every call takes `latency` seconds.
    `history` False is a tenant without the operations beyond the start; `visible_after` seconds a
    started sync is in the history.
    """

    stages: tuple[tuple[float, str], ...] = ((0.0, "COMPLETED"),)
    cancelled_after: float | None = None
    faults: dict[str, list[PlatformError | None]] = field(default_factory=dict)
    lost: bool = False
    history: bool = True
    visible_after: float = 0.0
    others: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    result_after: float = 0.0
    latency: float = 0.1

    now: float = NOON
    started_at: list[float] = field(default_factory=list)
    calls: list[tuple[float, str]] = field(default_factory=list)
    deadlines: list[float | None] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def run(self, program: Program[T]) -> T:
        """Run a program against this tenant."""
        return play(program, self._perform, self.events)

    def _perform(self, effect: object) -> Any:
        if isinstance(effect, Call):
            self.deadlines.append(effect.deadline)
            return self._answer(effect.operation)
        if isinstance(effect, Sleep):
            assert effect.seconds >= 0
            self.now += effect.seconds
            return None
        return self._carry_out(effect)

    def _carry_out(self, effect: object) -> Any:
        """The outcome of an effect that only some tenants know."""
        raise AssertionError(effect)

    def times(self, operation_id: str) -> list[float]:
        """When an operation was called, in seconds from noon."""
        return [at - NOON for at, name in self.calls if name == operation_id]

    def _answer(self, operation: Operation[Any]) -> Any:
        name = operation.operation_id
        self.now += self.latency
        self.calls.append((self.now, name))
        faults = self.faults.get(name, [])
        fault = faults.pop(0) if faults else None
        if name == "startDbtSync" and (fault is None or self.lost):
            self.started_at.append(self.now)
        if fault is not None:
            raise fault
        if name not in ("startDbtSync", "getReports") and not self.history:
            raise NOT_FOUND
        return operation.read(self._body(name))

    def _body(self, name: str) -> Any:
        if name == "startDbtSync":
            return {"syncJobId": f"sync-{len(self.started_at)}", "branchName": "b"}
        if name == "getDbtSyncStatus":
            return {"syncJobId": SYNC, "status": self._status(), "error": self.error}
        if name == "getDbtSyncResult":
            lasts = sum(seconds for seconds, _ in self.stages[:-1])
            ready = self.now - self._began >= lasts + self.result_after
            return {"syncJobId": SYNC, "cubeCount": 3} if ready else {}
        if name == "getReports":
            return {"items": [], "pageInfo": {}}
        assert name == "listDbtSyncs"
        own = [
            {
                "syncJobId": f"sync-{number}",
                "status": self._truth(),
                "branchName": "b",
                "source": "git",
                "startedAt": at(began),
            }
            for number, began in enumerate(self.started_at, 1)
            if self.now - began >= self.visible_after
        ]
        return {"data": [*own, *self.others]}

    @property
    def _began(self) -> float:
        return self.started_at[0] if self.started_at else NOON

    def _status(self) -> str:
        left = self.now - self._began
        for seconds, status in self.stages:
            if left < seconds:
                return status
            left -= seconds
        return self.stages[-1][1]

    def _truth(self) -> str:
        after = self.cancelled_after
        ended = self._status() in TERMINAL_STATUSES
        if after is not None and self.now - self._began >= after and not ended:
            return "CANCELLED"
        return self._status()
