"""dbt syncs: start, history, status, result, logs, generated files and cancel."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.dbt_sync.stages import STAGES, Sync, Syncs, walk
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.state.branches import branches_of
from airflow_provider_platform.sandbox.state.clock import iso
from airflow_provider_platform.sandbox.state.journal import SyncEntry

_RUN_STATES = ("RUNNING", "COMPLETED", "FAILED", "CANCELLED", "UNKNOWN")
_TRIGGERS = ("manual", "api", "webhook", "agent", "unknown")
_FILES_LIFETIME = 3600
"""Seconds for which generated files are kept."""
_MODELS = ("orders", "customers", "products")
_MANIFEST = {"models": len(_MODELS), "sources": 2, "macros": 5}
_BRANCH = r"(?![/.-])(?!.*(?:\.\.|//|@\{))[^\s~^:?*\[\\\x00-\x1f]{1,200}(?<![/.])"


_FIELDS_SINCE = {"ref": "0.4.0", "source": "0.8.0", "manifest": "0.8.0", "output": "0.10.0"}

resource = Resource(
    "/api/v1/deployments/{deploymentId}/dbt-sync", needs="SchemaRead", since="0.4.0"
)


@resource.post(
    needs="SchemaUpdate",
    since="0.2.1",
    body={
        "branchName": checks.string(pattern=_BRANCH),
        "ref": checks.string(),
        "source": checks.string(one_of=("git", "manifest")),
        "manifest": checks.mapping,
        "output": checks.string(one_of=("branch", "files")),
    },
)
def start_dbt_sync(call: Call) -> Any:
    """Start a sync, every time it is asked for.

    An older tenant drops the fields that it does not know without a word.
    """
    server, settings = call.server, call.server.settings
    body = {
        name: value
        for name, value in call.body.items()
        if name not in settings.dbt_ignored and settings.has(_FIELDS_SINCE.get(name, "0.2.1"))
    }
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
        user_id=server.settings.caller,
        entry=entry,
        started_at=now,
        known_from=server.clock.later(server.settings.dbt_unknown),
        result_delay=server.settings.dbt_result_delay,
    )
    call.store(Syncs).by_id[sync_job_id] = sync
    server.journal.state.syncs.append(entry)
    server.journal.changed()
    sync.task = server.spawn(walk(server, sync))
    return {
        "syncJobId": sync_job_id,
        "workflowId": sync.workflow_id,
        "branchName": branch,
    }


@resource.get(
    query={
        **paging.PARAMETERS,
        "status": checks.string(one_of=_RUN_STATES),
        "trigger": checks.string(one_of=_TRIGGERS),
    },
)
def list_dbt_syncs(call: Call) -> Any:
    """The history, newest first unless a setting says otherwise."""
    answer = call.server.settings.dbt_history_answer
    if answer != "200":
        raise ApiError(int(answer), "The history of dbt syncs cannot be read")
    syncs = call.store(Syncs).known(call)
    if call.server.settings.dbt_history == "newest_first":
        syncs.reverse()
    wanted = call.query.get("status")
    if call.query.get("trigger", "api") != "api":
        syncs = []
    runs = [_history_entry(s) for s in syncs if wanted in (None, s.outcome)]
    return paging.page(call, runs)


@resource.get("/{syncJobId:text}")
def get_dbt_sync(call: Call) -> Any:
    """The status. What a cancelled sync answers is a setting: by default the stage it had."""
    sync = call.store(Syncs).get(call)
    status, cancelled = sync.status, call.server.settings.dbt_cancelled_status
    if sync.outcome == "CANCELLED" and cancelled == "404":
        raise ApiError(404, f"dbt sync {sync.sync_job_id} was cancelled")
    if sync.outcome == "CANCELLED" and cancelled != "stage":
        status = cancelled
    answer: dict[str, Any] = {
        "syncJobId": sync.sync_job_id,
        "status": status,
        "progress": {
            "stage": status,
            "percentComplete": sync.percent,
            "message": sync.logs[-1]["message"] if sync.logs else None,
        },
        "updatedAt": iso(sync.updated_at or sync.started_at),
    }
    if status == "FAILED":
        answer["error"] = sync.error or "the sync failed"
    return answer


@resource.delete("/{syncJobId:text}", needs="SchemaUpdate")
def cancel_dbt_sync(call: Call) -> Any:
    sync = call.store(Syncs).get(call)
    if sync.outcome != "RUNNING":
        return {"message": f"dbt sync {sync.sync_job_id} is already {sync.outcome.lower()}"}
    if sync.task is not None:
        sync.task.cancel()
    sync.entry.cancelled_at = time.time()
    sync.finish("CANCELLED")
    call.server.journal.changed()
    return {"message": f"dbt sync {sync.sync_job_id} is cancelled"}


@resource.get("/{syncJobId:text}/result")
def get_dbt_sync_result(call: Call) -> Any:
    sync = call.store(Syncs).get(call)
    if sync.outcome != "COMPLETED":
        raise ApiError(404, f"dbt sync {sync.sync_job_id} has no result")
    if call.server.clock.now() < sync.result_from:
        not_yet = call.server.settings.dbt_no_result_yet
        if not_yet == "404":
            raise ApiError(404, f"dbt sync {sync.sync_job_id} has no result yet")
        return None if not_yet == "null" else {}
    return {
        "syncJobId": sync.sync_job_id,
        "generatedFiles": [{"path": _file(model)} for model in _MODELS],
        "manifestStats": _MANIFEST,
        "cubeCount": len(_MODELS),
        "completedAt": iso(sync.ended_at or sync.started_at),
        "durationMs": sync.duration_ms or 0,
    }


@resource.get("/{syncJobId:text}/logs")
def get_dbt_sync_logs(call: Call) -> Any:
    return paging.page(call, call.store(Syncs).get(call).logs)


@resource.get(
    "/{syncJobId:text}/generated-files",
    since="0.10.0",
    query=paging.PARAMETERS,
    needs="DeploymentRead",
)
def get_dbt_sync_generated_files(call: Call) -> Any:
    sync = call.store(Syncs).get(call)
    expires_at = (sync.ended_at or 0) + _FILES_LIFETIME
    kept = sync.output == "files" and sync.outcome == "COMPLETED"
    if not kept or call.server.clock.now() >= expires_at:
        raise ApiError(404, f"dbt sync {sync.sync_job_id} keeps no generated files")
    return paging.page(
        call,
        [{"path": _file(m), "content": f"cubes:\n  - name: {m}\n"} for m in _MODELS],
    )


def _check_branch(call: Call, name: str) -> None:
    """Refuse to write to a branch that takes no sync."""
    branches, settings = branches_of(call.server, call.deployment), call.server.settings
    if name == branches.deploy and settings.dev_branches_only:
        raise ApiError(403, "Forbidden: the SchemaUpdate permission is missing")
    if name == branches.deploy and settings.deploy_branch_read_only:
        raise ApiError(400, [f"the deploy branch {name} is read-only"])


def _history_entry(sync: Sync) -> dict[str, Any]:
    stage = next((s for s in reversed(sync.entry.stages) if s in STAGES), sync.status)
    failed = sync.outcome == "FAILED"
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
        "lastStage": stage,
        "phases": _phases(sync),
        "stats": {
            **_MANIFEST,
            "cubeCount": len(_MODELS),
            "generatedFileCount": len(_MODELS),
            "dbtVersion": "1.10.0",
            "manifestGeneratedAt": iso(sync.ended_at or sync.started_at),
        }
        if sync.outcome == "COMPLETED"
        else None,
        "triggerContext": None,
        "userId": sync.user_id,
    }


def _phases(sync: Sync) -> list[dict[str, Any]]:
    """The phases of a sync that has ended, in order, each a third of its time."""
    if sync.duration_ms is None:
        return []
    names = ("repo-clone", "dbt-deps", "dbt-compile")
    part = sync.duration_ms // len(names)
    return [
        {
            "phase": name,
            "startedOffsetMs": number * part,
            "durationMs": part,
            "outcome": "failed" if (sync.outcome, name) == ("FAILED", names[-1]) else "ok",
        }
        for number, name in enumerate(names)
    ]


def _generated_branch(ref: str | None, sync_job_id: str) -> str:
    name = re.sub(r"[/\s~]", "-", ref or "main")[:40]
    return f"dbt-sync/{name}-{int(time.time())}-{sync_job_id[:7]}"


def _file(model: str) -> str:
    return f"model/cubes/{model}.yml"
