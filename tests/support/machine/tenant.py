"""A tenant's dbt syncs with many askers and one token, played for one deployment.

Every start that is processed begins a sync of its own (`Sync`), so that starting twice shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformNotFoundError,
)
from tests.support.fakes.played_service import PlayedTime

if TYPE_CHECKING:
    from airflow_provider_platform.client.operation import Operation
    from tests.support.machine.platform import Status
    from tests.support.machine.simulation import Actor

QUEUED_SECONDS = 20.0
SYNC_SECONDS = 60.0
DEPLOYMENT = 1
ADDRESS = "https://acme.example.com/api"


@dataclass(frozen=True)
class TenantHabits:
    """What this tenant tells of a sync: nothing without a `history`; a cancelled one's status
    goes on as before, or says so too."""

    history: bool = True
    cancelled: Literal["in the history", "in both"] = "in the history"


@dataclass
class Sync:
    """One dbt sync. `began_by` is what names its start in a record that has no id of it yet."""

    number: int
    body: dict[str, Any]
    time: PlayedTime
    began_by: float | None
    trigger: str = "api"

    can_stop = True
    repeats_lost_start = False
    in_existing_thread = True
    """A start that was lost can be looked up."""
    was_suspended = False

    def __post_init__(self) -> None:
        self.started_at = self.time.now
        self.epoch = 0
        """Which wish of a user it serves (see `PlayedTask.epoch`)."""
        self.late = False
        """Whether a try started it that Airflow had given up."""
        self._broken_off: Status | None = None

    def __repr__(self) -> str:
        return f"{self.name} ({self.status})"

    @property
    def name(self) -> str:
        return f"sync-{self.number}"

    @property
    def branch_name(self) -> str:
        return self.body.get("branchName") or f"branch-{self.number}"

    @property
    def status(self) -> Status:
        if self._broken_off is not None:
            return self._broken_off
        return "finished" if self.time.now >= self.started_at + SYNC_SECONDS else "streaming"

    @property
    def expected(self) -> dict[str, Any]:
        """The result of a task that waited for it."""
        return {
            "sync_job_id": self.name,
            "workflow_id": f"workflow-{self.number}",
            "branch_name": self.branch_name,
            "status": "COMPLETED",
            "result": self.told_result(),
        }

    def is_named_by(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids name it, or the start that began it."""
        if "sync_job_id" in ids:
            return bool(ids["sync_job_id"] == self.name)
        return self.began_by is not None and ids.get("submitted_at") == self.began_by

    def is_known_to(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids name the sync itself."""
        return ids.get("sync_job_id") == self.name

    def told_result(self) -> dict[str, Any]:
        return {"syncJobId": self.name, "cubeCount": self.number}

    def stop(self) -> None:
        """Cancel it."""
        if self.status == "streaming":
            self._broken_off = "aborted"

    def break_off(self) -> None:
        """Have it fail."""
        if self.status == "streaming":
            self._broken_off = "failed"

    @property
    def shown(self) -> str:
        """Its status as the service has it."""
        said = {"finished": "COMPLETED", "aborted": "CANCELLED", "failed": "FAILED"}
        queued = self.time.now < self.started_at + QUEUED_SECONDS
        return said.get(self.status, "QUEUED" if queued else "RUNNING")


class SimulatedTenant:
    """The service: its syncs, its token, and what was asked of it."""

    starts = ("startDbtSync",)
    """The operations that start a run."""

    def __init__(self, habits: TenantHabits) -> None:
        self.habits = habits
        self.time = PlayedTime()
        self.syncs: list[Sync] = []
        self.key = ""

    def connection(self, key: str) -> dict[str, Any]:
        """The fields of a connection with this token."""
        extra = {"deployment_id": DEPLOYMENT}
        return {"host": ADDRESS, "password": key, "extra": extra}

    def secret_of(self, config: Any) -> str:
        """What the client sends to prove who it is."""
        secret: str = config.management_token.get_secret_value()
        return secret

    def check_key(self, key: str) -> None:
        """Raises PlatformAuthenticationError for a token that is not the one; it quotes it."""
        if key != self.key:
            raise PlatformAuthenticationError(f"401: token {key} is not valid", status=401)

    def runs(self) -> list[Sync]:
        return self.syncs

    def start(self, body: dict[str, Any], began_by: float | None, trigger: str = "api") -> Sync:
        """One more sync."""
        sync = Sync(len(self.syncs) + 1, body, self.time, began_by, trigger)
        self.syncs.append(sync)
        return sync

    def concerned(self, operation: Operation[Any]) -> Sync | None:
        """The sync that a call is about."""
        path = operation.path
        named = [sync for sync in self.syncs if path.endswith(f"/{sync.name}")]
        named += [sync for sync in self.syncs if f"/{sync.name}/" in path]
        return named[0] if named else None

    def answer(self, operation: Operation[Any], actor: Actor) -> tuple[Any, Sync | None]:
        """The response to a call, and the sync that it started or stopped, if it did."""
        name = operation.operation_id
        if name == "startDbtSync":
            sync = self.start(operation.body or {}, actor.known.store.began_by)
            told = {"syncJobId": sync.name, "branchName": sync.branch_name}
            return {**told, "workflowId": f"workflow-{sync.number}"}, sync
        if name == "getReports":
            return {"items": [], "pageInfo": {}}, None
        if name != "cancelDbtSync" and not self.habits.history:
            raise PlatformNotFoundError("404: no such operation", status=404)
        if name == "listDbtSyncs":
            return {"data": [self._row(sync) for sync in reversed(self.syncs)]}, None
        sync = self._of(operation)
        if name == "cancelDbtSync":
            going_on = sync.status == "streaming"
            sync.stop()
            return {"message": "cancelled"}, sync if going_on else None
        if name == "getDbtSyncStatus":
            hidden = sync.status == "aborted" and self.habits.cancelled == "in the history"
            return {"syncJobId": sync.name, "status": "RUNNING" if hidden else sync.shown}, None
        assert name == "getDbtSyncResult", name
        return sync.told_result() if sync.status == "finished" else {}, None

    def _of(self, operation: Operation[Any]) -> Sync:
        sync = self.concerned(operation)
        if sync is None:
            raise PlatformNotFoundError("404: no such sync", status=404)
        return sync

    def _row(self, sync: Sync) -> dict[str, Any]:
        return {
            "syncJobId": sync.name,
            "status": sync.shown,
            "branchName": sync.branch_name,
            "trigger": sync.trigger,
            "startedAt": datetime.fromtimestamp(sync.started_at, UTC).isoformat(),
        }
