"""dbt syncs: start, history, status, result, logs, generated files and cancel."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import Item
from airflow_provider_platform.sandbox.state.branches import branches_of, written_model
from airflow_provider_platform.sandbox.state.journal import SyncEntry
from airflow_provider_platform.sandbox.state.server_state import ServerState, iso

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
_MODELS = ("orders", "customers", "products")
_MANIFEST = {"models": len(_MODELS), "sources": 2, "macros": 5}
_BRANCH = r"(?![/.-])(?!.*(?:\.\.|//|@\{))[^\s~^:?*\[\\\x00-\x1f]{1,200}(?<![/.])"


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
    status: str = STAGES[0]
    outcome: str = "RUNNING"
    error: str | None = None
    updated_at: float = 0.0
    ended_at: float | None = None
    logs: list[Item] = field(default_factory=list)
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


def _known(call: Call) -> list[Sync]:
    """Return the syncs of the deployment, oldest first."""
    syncs = call.store(Syncs).by_id.values()
    return [one for one in syncs if one.deployment == call.deployment]


def _meant(call: Call) -> Sync:
    wanted = call.path["syncJobId"]
    found = next((one for one in _known(call) if one.sync_job_id == wanted), None)
    if found is None:
        raise ApiError(404, f"dbt sync {wanted} not found in deployment {call.deployment}")
    return found


@handles("startDbtSync")
def start_dbt_sync(call: Call) -> Any:
    """Start a sync, every time it is asked for."""
    server, body = call.server, call.body
    source = body.get("source", "git")
    if source == "manifest" and "manifest" not in body:
        raise ApiError(400, ["manifest is required when source is manifest"])
    if source == "manifest" and "ref" in body:
        raise ApiError(400, ["ref cannot be given when source is manifest"])
    sync_job_id = uuid.uuid4().hex
    branch = body.get("branchName") or _generated_branch(body.get("ref"), sync_job_id)
    _check_branch(call, branch)
    now = time.time()
    entry = SyncEntry(sync_job_id, call.deployment, branch, now, STAGES[0])
    sync = Sync(
        sync_job_id=sync_job_id,
        workflow_id=f"dbt-sync-workflow-{uuid.uuid4()}",
        deployment=call.deployment,
        branch=branch,
        ref=body.get("ref"),
        source=source,
        output=body.get("output", "branch"),
        user_id=call.user,
        entry=entry,
        started_at=now,
    )
    call.store(Syncs).by_id[sync_job_id] = sync
    server.journal.state.syncs.append(entry)
    server.journal.changed()
    sync.task = server.spawn(_walk(server, sync))
    return {"syncJobId": sync_job_id, "workflowId": sync.workflow_id, "branchName": branch}


def _check_branch(call: Call, name: str) -> None:
    """Refuse to write to a branch that takes no sync."""
    if not re.fullmatch(_BRANCH, name):
        raise ApiError(400, [f"branchName must match {_BRANCH}"])
    if name == branches_of(call.server, call.deployment).deploy:
        call.require("SchemaUpdate")


def _generated_branch(ref: str | None, sync_job_id: str) -> str:
    name = re.sub(r"[/\s~]", "-", ref or "main")[:40]
    return f"dbt-sync/{name}-{int(time.time())}-{sync_job_id[:7]}"


async def _walk(server: ServerState, sync: Sync) -> None:
    """Go through the stages, then write the branch.

    Without a pace this waits nowhere: the sync is over before the sandbox reads another request.
    A ``ref`` with ``broken`` in its name does not compile in dbt, and the sync fails. A branch with
    ``broken`` in its name gets a model that does not compile in the service: the sync completes.
    """
    outcome, broken = server.settings.dbt_outcome, "broken" in (sync.ref or "")
    for stage in STAGES:
        sync.move(stage)
        server.journal.changed()
        if server.settings.dbt_pace:
            await asyncio.sleep(server.settings.dbt_pace)
        if stage == "COMPILING_DBT" and (broken or outcome == "FAILED"):
            sync.finish("FAILED", "dbt-compile: model orders depends on a source that is missing")
            break
    else:
        if outcome == "COMPLETED" and sync.output == "branch":
            branches = branches_of(server, sync.deployment)
            branch = branches.add(sync.branch, branches.deploy)
            branches.write(branch, written_model(sync.branch, sync.sync_job_id), server)
        sync.finish(outcome)
    server.journal.changed()


@handles("listDbtSyncs")
def list_dbt_syncs(call: Call) -> Any:
    """The history, newest first. The API started every sync."""
    wanted = call.query.get("status")
    found = _known(call)[::-1] if call.query.get("trigger") in (None, "api") else []
    return generic_store.page(
        call, [_history_entry(one) for one in found if wanted in (None, one.outcome)]
    )


@handles("getDbtSyncStatus")
def get_dbt_sync(call: Call) -> Any:
    """The status. A cancelled sync keeps the stage that it had: only the history tells."""
    sync = _meant(call)
    status = sync.status
    message = sync.logs[-1]["message"] if sync.logs else None
    error = {"error": sync.error or "the sync failed"} if status == "FAILED" else {}
    return {
        "syncJobId": sync.sync_job_id,
        "status": status,
        "progress": {"stage": status, "percentComplete": sync.percent, "message": message},
        "updatedAt": iso(sync.updated_at or sync.started_at),
        **error,
    }


@handles("cancelDbtSync")
def cancel_dbt_sync(call: Call) -> Any:
    sync = _meant(call)
    if sync.outcome != "RUNNING":
        return {"message": f"dbt sync {sync.sync_job_id} is already {sync.outcome.lower()}"}
    if sync.task is not None:
        sync.task.cancel()
    sync.entry.cancelled_at = time.time()
    sync.finish("CANCELLED")
    call.server.journal.changed()
    return {"message": f"dbt sync {sync.sync_job_id} is cancelled"}


@handles("getDbtSyncResult")
def get_dbt_sync_result(call: Call) -> Any:
    sync = _meant(call)
    if sync.outcome != "COMPLETED":
        raise ApiError(404, f"dbt sync {sync.sync_job_id} has no result")
    return {
        "syncJobId": sync.sync_job_id,
        "generatedFiles": [{"path": _file(model)} for model in _MODELS],
        "manifestStats": _MANIFEST,
        "cubeCount": len(_MODELS),
        "completedAt": iso(sync.ended_at or sync.started_at),
        "durationMs": sync.duration_ms or 0,
    }


@handles("getDbtSyncLogs")
def get_dbt_sync_logs(call: Call) -> Any:
    return generic_store.page(call, _meant(call).logs, everything=True)


def _file(model: str) -> str:
    return f"model/cubes/{model}.yml"


def _history_entry(sync: Sync) -> Item:
    failed, completed = sync.outcome == "FAILED", sync.outcome == "COMPLETED"
    stats = {
        **_MANIFEST,
        "cubeCount": len(_MODELS),
        "generatedFileCount": len(_MODELS),
        "dbtVersion": "1.10.0",
        "manifestGeneratedAt": iso(sync.ended_at or sync.started_at),
    }
    return {
        "syncJobId": sync.sync_job_id,
        "deploymentId": sync.deployment,
        "status": sync.outcome,
        "trigger": "api",
        "source": sync.source,
        "branchName": sync.branch,
        "startedAt": iso(sync.started_at),
        "completedAt": None if sync.ended_at is None else iso(sync.ended_at),
        "durationMs": sync.duration_ms,
        "errorMessage": (sync.error or "the sync failed") if failed else None,
        "failedPhase": "dbt-compile" if failed else None,
        "gitRef": sync.ref,
        "lastStage": next((s for s in reversed(sync.entry.stages) if s in STAGES), sync.status),
        "phases": [],
        "stats": stats if completed else None,
        "triggerContext": None,
        "userId": sync.user_id,
    }
