"""What becomes of a dbt sync: its stages, one after the other, and its end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.resource import Call
from airflow_provider_platform.sandbox.state.branches import branches_of, written_model
from airflow_provider_platform.sandbox.state.clock import iso
from airflow_provider_platform.sandbox.state.journal import SyncEntry
from airflow_provider_platform.sandbox.state.server_state import ServerState

STAGES = (
    "INITIALIZING",
    "CREATING_SANDBOX",
    "UPLOADING_PROJECT",
    "INSTALLING_DEPENDENCIES",
    "RUNNING_DBT_DEPS",
    "COMPILING_DBT",
    "PROCESSING_MANIFEST",
    "WRITING_CUBE_FILES",
    "FINALIZING",
)


@dataclass
class Sync:
    """One sync. ``status`` is what the status operation says, ``outcome`` what the history says."""

    sync_job_id: str
    workflow_id: str
    deployment: int
    branch: str
    ref: str | None
    source: str
    output: str
    user_id: int
    entry: SyncEntry
    started_at: float
    known_from: float
    """Time of the sandbox's clock from which operations know the sync."""
    result_delay: float
    result_from: float = 0.0
    """Time of the sandbox's clock from which the result of a completed sync is there."""
    status: str = STAGES[0]
    outcome: str = "RUNNING"
    error: str | None = None
    updated_at: float = 0.0
    ended_at: float | None = None
    logs: list[dict[str, Any]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def move(self, status: str) -> None:
        self.status = self.entry.status = status
        self.updated_at = time.time()
        self.entry.stages.append(status)
        self.log(f"Stage {status}")

    def finish(self, outcome: str, error: str | None = None) -> None:
        self.outcome, self.error = outcome, error
        self.ended_at = self.entry.ended_at = time.time()
        if outcome in ("COMPLETED", "FAILED"):
            self.move(outcome)
        self.entry.status = outcome
        self.log(error or f"Sync {outcome.lower()}", "error" if error else "info")

    def log(self, message: str, level: str = "info") -> None:
        line = {"timestamp": iso(time.time()), "level": level, "stream": "system"}
        self.logs.append({**line, "message": message, "phase": self.status, "durationMs": None})

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "task": None}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """A sync that was under way ended with the sandbox that performed it."""
        vars(self).update(kept)
        if self.outcome == "RUNNING":
            self.finish("FAILED", "the sandbox was stopped")

    @property
    def percent(self) -> int:
        """A rough guess, as the service's."""
        if self.status == "COMPLETED":
            return 100
        return STAGES.index(self.status) * 11 if self.status in STAGES else 5

    @property
    def duration_ms(self) -> int | None:
        return None if self.ended_at is None else int((self.ended_at - self.started_at) * 1000)


class Syncs:
    """All syncs by id, oldest first."""

    def __init__(self) -> None:
        self.by_id: dict[str, Sync] = {}

    def known(self, call: Call) -> list[Sync]:
        """Those of the deployment that are past the time in which nobody knows them."""
        now = call.server.clock.now()
        return [
            one
            for one in self.by_id.values()
            if one.deployment == call.deployment and one.known_from <= now
        ]

    def get(self, call: Call) -> Sync:
        sync = self.by_id.get(call.path["syncJobId"])
        if sync is None or sync not in self.known(call):
            raise ApiError(
                404, f"dbt sync {call.path['syncJobId']} not found in deployment {call.deployment}"
            )
        return sync


async def walk(server: ServerState, sync: Sync) -> None:
    """Go through the stages, then write the branch.

    Without a pace this waits nowhere: the sync is over before the sandbox reads another request.
    A ``ref`` with ``broken`` in its name does not compile in dbt, and the sync fails. A branch with
    ``broken`` in its name gets a model that does not compile in the service: the sync completes.
    """
    settings = server.settings
    outcome = settings.dbt_outcome
    broken = "broken" in (sync.ref or "")
    stages = list(STAGES)
    if settings.dbt_extra_stage is not None:
        stages.insert(1, settings.dbt_extra_stage)
    for stage in stages:
        sync.move(stage)
        server.journal.changed()
        if server.settings.dbt_pace:
            await asyncio.sleep(server.settings.dbt_pace)
        if stage == "COMPILING_DBT" and (broken or outcome == "FAILED"):
            sync.finish("FAILED", "dbt-compile: model orders depends on a source that is missing")
            break
    else:
        sync.result_from = server.clock.later(sync.result_delay)
        if outcome == "COMPLETED" and sync.output == "branch":
            branches = branches_of(server, sync.deployment)
            branch = branches.add(sync.branch, branches.deploy)
            branches.write(branch, written_model(sync.branch, sync.sync_job_id), server)
        sync.finish(outcome)
    server.journal.changed()
