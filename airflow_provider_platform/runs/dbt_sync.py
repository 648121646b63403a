"""A dbt sync: how a sync is started once, found, followed, stopped and read.

A task may wait for a sync or only start it (`waits` in its ids): some tenants do not report the
status of a sync. With `open_branch` the synced branch is opened after the sync, and the run is over
when the branch is built (`runs/branches.py`).
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.management.data_model.build_status import Build
from airflow_provider_platform.client.management.data_model.open_and_close import is_open
from airflow_provider_platform.client.management.dbt_sync.run import (
    DbtSyncOutcome,
    wait,
)
from airflow_provider_platform.client.management.dbt_sync.start import (
    HistoryState,
    SyncsBefore,
    can_be_followed,
    find_equal,
    find_started,
    read_syncs_before,
    refuse_dropped,
    refuse_dropped_files,
    start,
)
from airflow_provider_platform.client.management.dbt_sync.syncs import (
    DbtSyncResponse,
    DbtSyncRun,
    StartDbtSyncInput,
    cancel_dbt_sync,
)
from airflow_provider_platform.client.polling.poll_until import PollLimits
from airflow_provider_platform.runs.branches import (
    close_again,
    describe_opened,
    follow_build,
    open_and_log,
    poll_build_once,
)
from airflow_provider_platform.runs.run_kind import (
    SINGLE_POLL_SECONDS,
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    say,
    warn,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

FILES_ARE_KEPT = 3000.0
"""Seconds after a sync's start in which its files certainly exist: the service keeps them for an
hour after its end, and clocks may differ."""


def _why_not_reported(history: HistoryState) -> str:
    """Return why the tenant does not report the status of a sync, according to its answer to the
    request for the history."""
    if history == "denied":
        return (
            "the service refuses to report the status of a dbt sync (403; the token probably "
            "lacks the permission SchemaRead, or the tenant has no such operation)"
        )
    if history == "none":
        return "this tenant has no operation that reports the status of a dbt sync"
    return "this tenant does not report the status of a dbt sync"


@dataclass(frozen=True)
class DbtSyncRunKind(RunKind[DbtSyncOutcome]):
    """A sync, with the arguments of `PlatformDbtSyncOperator`.

    A trigger follows the sync without its input: `body` is then None.
    """

    id_field = "sync_job_id"
    outcome_class = DbtSyncOutcome

    body: StartDbtSyncInput | None = None
    wait_for_completion: bool | str = "if_supported"
    open_branch: bool = False
    if_running: str = "start"
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint("dbt sync", config.management_url, deployment_id, self._body().to_json())

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> DbtSyncOutcome | None:
        deployment_id = env.config.resolve_deployment_id(self.deployment_id)
        submitted_at = env.now
        history = await self._read_history(api, deployment_id, env.deadline)
        ids_before = None if history.state in ("none", "denied") else history.ids
        reason = _why_not_reported(history.state)
        if ids_before is None:
            self._refuse_blind_wait(reason)
        running = await self._equal_sync(api, deployment_id, history)
        if running is not None:
            return await self._follow_other(api, env, deployment_id, running)
        intent: Ids = {
            "deployment_id": deployment_id,
            "ids_before": ids_before,
            "history": history.state,
            "submitted_at": submitted_at,
        }
        await api.notify(Intended(intent))
        started = await start(
            api,
            deployment_id,
            self._body(),
            ids_before=ids_before,
            submitted_at=submitted_at,
            listed=history.state == "listed",
            deadline=env.deadline,
        )
        run: Ids = {
            "deployment_id": deployment_id,
            "sync_job_id": started.sync_job_id,
            "workflow_id": started.workflow_id,
            "branch_name": started.branch_name,
            "waits": self.wait_for_completion is not False and ids_before is not None,
            "submitted_at": submitted_at,
        }
        await api.notify(RunAccepted({**run}))
        await say(
            api,
            f"Started dbt sync {started.sync_job_id} of deployment {deployment_id} on branch "
            f"{started.branch_name}",
        )
        await self._refuse_dropped(api, deployment_id, started, history.state)
        if run["waits"] and history.state == "unclear" and not await _reports_status(api, env, run):
            run["waits"] = False
            await api.notify(RunAccepted({**run}))
        if run["waits"]:
            return None
        if self.open_branch:
            raise PlatformError(
                "The dbt sync was started, but its branch was not opened (open_branch=True), "
                "because this tenant does not report when the branch is written. Open branch "
                f"{started.branch_name} in the platform when the sync is complete.",
                where=f"dbt sync {started.sync_job_id}, deployment {deployment_id}",
            )
        if self.wait_for_completion is not False:
            await warn(
                api,
                f"{reason[0].upper() + reason[1:]}. The task starts the sync and does not wait "
                "for it, so the task's result contains neither the status nor the outcome of the "
                "sync.",
            )
        return _only_started(run)

    async def find(self, api: Api, env: RunEnvironment, ids: Ids) -> tuple[bool, Ids]:
        sync = await find_started(
            api,
            ids["deployment_id"],
            self._body(),
            ids_before=ids.get("ids_before"),
            submitted_at=ids["submitted_at"],
            listed=ids.get("history", "listed") == "listed",
            deadline=env.now + SINGLE_POLL_SECONDS,
        )
        if sync is None:
            return False, ids
        await self._refuse_dropped(api, ids["deployment_id"], sync, "listed")
        return True, {
            "deployment_id": ids["deployment_id"],
            "sync_job_id": sync.sync_job_id,
            "workflow_id": sync.workflow_id,
            "branch_name": sync.branch_name,
            "waits": self.wait_for_completion is not False,
            "submitted_at": ids["submitted_at"],
        }

    async def resume(self, api: Api, env: RunEnvironment, ids: Ids) -> Ids:
        """Start again at the sync: its status is read again, and its branch is opened again."""
        return {name: value for name, value in ids.items() if name not in ("opened", "build")}

    async def follow(self, api: Api, env: RunEnvironment, ids: Ids) -> DbtSyncOutcome:
        """Wait for the sync. On the worker also wait for the build of its branch, if the branch is
        opened."""
        if not ids["waits"]:
            return _only_started(ids)
        outcome = await wait(
            api, ids["deployment_id"], ids["sync_job_id"], env.poll_limits, env.clock
        )
        if outcome is None:
            raise RuntimeError("a wait ends with an outcome")
        if self.open_branch and not env.in_triggerer:
            ids |= await self._open(api, env, ids, outcome)
            build = await follow_build(api, env, ids)
            ids["build"] = build.to_json()
        return outcome

    async def poll_once(self, api: Api, env: RunEnvironment, ids: Ids) -> DbtSyncOutcome | None:
        if not ids["waits"]:
            return _only_started(ids)
        outcome = await _poll(api, env, ids)
        if outcome is None or not self.open_branch:
            return outcome
        ids |= await self._open(api, env, ids, outcome)
        build = await poll_build_once(api, env, ids)
        if build is None:
            return None
        ids["build"] = build.to_json()
        return outcome

    async def stop(
        self,
        api: Api,
        config: PlatformConfig,
        clock: Clock,
        ids: Ids,
        *,
        seconds: float | None = None,
    ) -> bool:
        if "was_open" in ids:  # the sync itself is over
            return await close_again(api, ids)
        if "sync_job_id" not in ids or ids.get("followed"):
            return False
        cancel = cancel_dbt_sync(deployment_id=ids["deployment_id"], sync_job_id=ids["sync_job_id"])
        await api.call(cancel, deadline=clock() + seconds if seconds else None)
        return True

    async def read_event(
        self, api: Api, env: RunEnvironment, ids: Ids, event: dict[str, Any]
    ) -> tuple[DbtSyncOutcome | None, Ids]:
        if "opened" in ids:
            if "opened" not in event["run"]:
                return None, ids  # the event of the sync again; the build is waited for
            ids["build"] = event["outcome"]
            try:
                return await _poll(api, env, ids), ids
            except PlatformNotFoundError:
                return _only_started(
                    ids
                ), ids  # the sync is complete, but its result no longer exists
        outcome = DbtSyncOutcome(**event["outcome"])
        if not (self.open_branch and ids["waits"]):
            return outcome, ids
        return None, {**ids, **await self._open(api, env, ids, outcome)}

    async def read(
        self, api: Api, env: RunEnvironment, ids: Ids, outcome: DbtSyncOutcome
    ) -> dict[str, Any]:
        if ids["waits"]:
            await self._refuse_dropped_files(api, env, ids, outcome)
            await say(api, f"dbt sync {outcome.sync_job_id} is complete")
        elif self._body().output == "files":
            await warn(
                api,
                "This task does not wait for the end of the sync, so it cannot check whether the "
                "tenant supports output_mode='files'. Releases before v0.10.0 ignore it and "
                "write a branch.",
            )
        branch_name = outcome.branch_name or ids.get("branch_name")
        result: dict[str, Any] = {
            "sync_job_id": outcome.sync_job_id,
            "workflow_id": ids.get("workflow_id"),
            "branch_name": branch_name,
            "status": "COMPLETED" if ids["waits"] else None,
            "result": outcome.result,
        }
        if self.open_branch:
            build = Build(**ids["build"]) if ids.get("build") else Build(None)
            opened = await describe_opened(api, env, ids, build)
            result |= {
                "active_branch_name": opened["branch_name"],
                "opened_branch": opened["opened_branch"],
                "url": opened["url"],
                "hash": opened["hash"],
                "build_status": opened["status"],
            }
        return result

    def _body(self) -> StartDbtSyncInput:
        if self.body is None:
            raise RuntimeError("a sync cannot be started without its input")
        return self.body

    def _refuse_blind_wait(self, reason: str) -> None:
        """Raise PlatformInputError if the task must wait for a sync whose status is not
        reported."""
        if self.wait_for_completion is True:
            raise PlatformInputError(
                f"Nothing was started: {reason}, so the task cannot wait for the sync. Set "
                "wait_for_completion to 'if_supported' or False.",
                field="wait_for_completion",
            )
        if self.open_branch:
            raise PlatformInputError(
                f"Nothing was started: {reason}, so the task cannot know when to open the branch. "
                "Leave open_branch out and open the branch in the platform.",
                field="open_branch",
            )

    async def _open(self, api: Api, env: RunEnvironment, ids: Ids, outcome: DbtSyncOutcome) -> Ids:
        """Open the synced branch, and return what the run's ids say of it."""
        branch_name = outcome.branch_name or ids["branch_name"]
        if branch_name is None:
            raise PlatformError(
                "The dbt sync is complete, but the service did not return its branch, so no "
                "branch was opened. Give branch_name.",
                where=f"dbt sync {outcome.sync_job_id}, deployment {ids['deployment_id']}",
            )
        env = replace(env, deadline=max(env.deadline, env.now + SINGLE_POLL_SECONDS))
        branch: Ids = {"branch_name": branch_name, "was_open": ids.get("was_open")}
        if branch["was_open"] is None:
            branch["was_open"] = await is_open(
                api, ids["deployment_id"], branch_name, deadline=env.deadline
            )
            await api.notify(RunAccepted({**ids, **branch}))
        return {**branch, "opened": await open_and_log(api, env, {**ids, **branch})}

    async def _equal_sync(
        self, api: Api, deployment_id: int, history: SyncsBefore
    ) -> DbtSyncRun | None:
        """Return the equal sync that is running and that `if_running` says to follow; None if the
        task must start a sync. Raises AlreadyRunningError if the task must do neither."""
        if self.if_running == "start":
            return None
        equal, others = find_equal(history.running, self._body())
        if equal is None:
            for other in others:
                await warn(
                    api,
                    f"dbt sync {other.sync_job_id} is writing branch {other.branch_name} too, "
                    f"from ref {other.git_ref or 'unknown'}. That sync has another ref or source "
                    "than the sync of this task, so this task starts its own.",
                )
            return None
        if self.if_running == "follow":
            return equal
        step = (
            "The task is skipped (if_running='skip')."
            if self.if_running == "skip"
            else "A retry starts a sync only if that sync is over by then. With "
            "if_running='follow' the task waits for that sync instead of starting one."
        )
        raise AlreadyRunningError(
            f"Nothing was started: a dbt sync from the same ref into branch {equal.branch_name} "
            f"is running (started at {equal.started_at or 'an unknown time'}). {step}",
            where=f"dbt sync {equal.sync_job_id}, deployment {deployment_id}",
        )

    async def _follow_other(
        self, api: Api, env: RunEnvironment, deployment_id: int, running: DbtSyncRun
    ) -> DbtSyncOutcome | None:
        """Follow a sync that something else has started. It is not stopped with this task."""
        run: Ids = {
            "deployment_id": deployment_id,
            "sync_job_id": running.sync_job_id,
            "workflow_id": None,
            "branch_name": running.branch_name,
            "waits": self.wait_for_completion is not False,
            "followed": True,
            "submitted_at": env.now,
        }
        await api.notify(RunAccepted({**run}))
        await say(
            api,
            f"A dbt sync from the same ref into branch {running.branch_name} is already running. "
            f"Following it instead of starting one: dbt sync {running.sync_job_id}",
        )
        return None if run["waits"] else _only_started(run)

    async def _read_history(self, api: Api, deployment_id: int, deadline: float) -> SyncsBefore:
        """Return the history before the start, if the task needs it. Raises PlatformInputError if
        the history shows that the tenant would ignore an argument."""
        body = self._body()
        newer = [f"ref={body.ref!r}"] if body.ref is not None else []
        newer += [
            f"{name}={value!r}"
            for name, value in (("source", body.source), ("output_mode", body.output))
            if value in ("manifest", "files")
        ]
        compares = self.if_running != "start"
        if self.wait_for_completion is False and not newer and not compares:
            return SyncsBefore("unread")
        required = self.wait_for_completion is True or compares
        history = await read_syncs_before(api, deployment_id, required=required, deadline=deadline)
        if compares and history.state in ("none", "denied"):
            raise PlatformInputError(
                f"Nothing was started: {_why_not_reported(history.state)}, so the task cannot know "
                "whether a sync from the same ref into the same branch is running. Leave "
                "if_running out to start a sync in any case.",
                field="if_running",
            )
        if history.state == "none" and newer:
            raise PlatformInputError(
                "Nothing was started: this tenant runs a release before v0.4.0. That release "
                f"ignores {' and '.join(newer)}, and would sync the ref that is set in the "
                "platform's dbt integration. Leave these arguments out.",
                field=newer[0].partition("=")[0],
            )
        return history

    async def _refuse_dropped(
        self, api: Api, deployment_id: int, started: DbtSyncResponse, history: HistoryState
    ) -> None:
        """Raise DbtSyncInputDroppedError if the tenant started another sync than the task asked
        for."""
        unsure = await refuse_dropped(api, deployment_id, self._body(), started, history)
        if unsure is not None:
            await warn(
                api,
                f"The history of syncs does not show whether this tenant supports {unsure}. A "
                "tenant with an older release ignores it and syncs the dbt repository instead. "
                "Check what this sync writes.",
            )

    async def _refuse_dropped_files(
        self, api: Api, env: RunEnvironment, ids: Ids, outcome: DbtSyncOutcome
    ) -> None:
        """Raise DbtSyncInputDroppedError if a sync should have kept files but wrote a branch. The
        service keeps files for an hour, so the task does not check a sync that may be older."""
        if self._body().output == "files" and env.now < ids["submitted_at"] + FILES_ARE_KEPT:
            await refuse_dropped_files(api, ids["deployment_id"], outcome.sync_job_id)


def _only_started(ids: Ids) -> DbtSyncOutcome:
    """Return the outcome of a sync that the task does not wait for."""
    return DbtSyncOutcome(ids["sync_job_id"], ids["branch_name"], None)


async def _poll(api: Api, env: RunEnvironment, ids: Ids) -> DbtSyncOutcome | None:
    """Return the outcome of the sync, or None if the sync is not over now."""
    limits = PollLimits(deadline=env.now + SINGLE_POLL_SECONDS, poll_interval=env.poll_interval)
    deployment_id, sync_job_id = ids["deployment_id"], ids["sync_job_id"]
    return await wait(api, deployment_id, sync_job_id, limits, env.clock, poll_once=True)


async def _reports_status(api: Api, env: RunEnvironment, ids: Ids) -> bool:
    """Return whether the tenant reports the status of the started sync, although its history
    fails."""
    return await can_be_followed(
        api,
        ids["deployment_id"],
        ids["sync_job_id"],
        env.clock,
        poll_interval=env.poll_interval,
        deadline=env.deadline,
    )
