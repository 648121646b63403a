"""`PlatformDbtSyncOperator`: starts a dbt sync, once, and waits where the tenant can tell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
)
from airflow_provider_platform.links import BranchLink, Links
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.deployment import DeploymentOperator
from airflow_provider_platform.operators._branches import (
    ENVIRONMENTS,
    describe_opened,
    follow_build,
    open_and_log,
    poll_build_once,
)
from airflow_provider_platform.operators._submission.remote_run import (
    LOOK_SECONDS,
    RemoteRunOperator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import BaseTrigger
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.management.dbt_sync.run import DbtSyncOutcome
    from airflow_provider_platform.client.management.dbt_sync.start import (
        HistoryState,
        KnownSyncs,
    )
    from airflow_provider_platform.client.management.dbt_sync.syncs import (
        DbtSyncResponse,
        StartDbtSyncInput,
    )
    from airflow_provider_platform.client.operations.program import Clock, Program
    from airflow_provider_platform.client.operations.rules import Rule
    from airflow_provider_platform.operators._base.operator import Checks
    from airflow_provider_platform.operators._submission.attempt import Attempt, Ids

DBT_SYNC_TIMEOUT = 3600.0
FILES_ARE_KEPT = 3000.0
"""Seconds from a sync's start for which its files are surely kept: an hour from its end, less the
difference of the clocks."""


def _why_untold(history: HistoryState) -> str:
    """Why nothing tells how a sync goes, by what its history answered."""
    if history == "denied":
        return (
            "the service refuses to tell how a dbt sync goes (403): the token probably lacks the "
            "permission SchemaRead, or the tenant has no such operation"
        )
    if history == "none":
        return "this tenant has no operation that tells how a dbt sync goes"
    return "this tenant does not tell how a dbt sync goes"


def _manifest_fits(manifest: dict[str, Any] | None, source: str | None) -> None:
    """A rule: a manifest goes with its source."""
    if (source == "manifest") != (manifest is not None):
        raise ValueError("manifest must be given with source='manifest', and only then")


def _opens_what_it_waits_for(
    open_branch: str | None, wait_for_completion: bool | str, output_mode: str | None
) -> None:
    """A rule: only a branch can be opened, and only once the sync has written it."""
    if open_branch is None:
        return
    if wait_for_completion is False:
        raise ValueError(
            "open_branch opens the branch once the sync has written it, so wait_for_completion "
            "cannot be False"
        )
    if output_mode == "files":
        raise ValueError("open_branch needs a branch, and output_mode='files' writes none")


class PlatformDbtSyncOperator(DeploymentOperator, RemoteRunOperator["DbtSyncOutcome"]):
    """Start a dbt sync and wait until it has written the data model.

    Use it after the dbt run whose models the platform shall know, on a branch of its own where
    something is to be checked before it is published. To wait for a sync that something else has
    started there is the sensor.

    Returns `{"sync_job_id", "workflow_id", "branch_name", "status", "result"}`; `status` and
    `result` are None where the sync was not waited for. Also pushed key by key (with
    `multiple_outputs`, the default), so that `sync.output["branch_name"]` works.

    A synced branch answers nobody before it is open. With `open_branch` the task opens it after the
    sync, waits until it is built, and returns `active_branch_name` (the name to ask: in dev mode
    that of the personal fork), `environment`, `url`, `hash` and `build_status` too, as
    `PlatformOpenBranchOperator` does. A retry finds the completed sync and opens its branch again.

    :param branch_name: the platform's branch to write to (default: the service makes one)
    :param ref: branch or tag of the dbt repository (default: the integration's). A tenant that
        drops it (before v0.4.0) fails the task, unless `branch_name` is given: only a branch that
        the service named shows the ref
    :param wait_for_completion: True waits, and fails before anything is started on a tenant that
        cannot tell how a sync goes; False returns after the start; `if_supported` waits where the
        tenant can tell
    :param source: `git` (the service's default) or `manifest`; a tenant that drops it (before
        v0.8.0) fails the task
    :param manifest: the dbt manifest, with `source="manifest"`
    :param output_mode: the service's `output`: `branch` (its default) or `files`; a tenant that
        drops it (before v0.10.0) fails the task
    :param open_branch: open the synced branch and wait until it is built: `staging` (releases since
        v0.4.0), `dev_mode` (one open branch for each credential), `if_supported` (staging, else dev
        mode, else a warning), or None to leave it closed
    :param timeout: seconds (or a timedelta) of wall time from submission, for sync and build
        together; an earlier `execution_timeout` counts too
    :param multiple_outputs: push the result key by key too, so that `sync.output["branch_name"]`
        works
    """

    operator_extra_links = Links(BranchLink)
    linked_result: ClassVar[dict[str, str]] = {"branch_name": "branch_name"}

    template_fields_renderers: ClassVar[dict[str, str]] = {"manifest": "json"}
    event_names = "sync_job_id"
    checks: ClassVar[Checks] = {
        "branch_name": arguments.optional_text,
        "ref": arguments.optional_text,
        "wait_for_completion": partial(arguments.boolean_or, choices=("if_supported",)),
        "source": partial(arguments.optional_choice, choices=("git", "manifest")),
        "manifest": arguments.mapping,
        "output_mode": partial(arguments.optional_choice, choices=("branch", "files")),
        "open_branch": partial(arguments.optional_choice, choices=ENVIRONMENTS),
    }

    rules: ClassVar[Sequence[Rule]] = (
        (("manifest", "source"), _manifest_fits),
        (("open_branch", "wait_for_completion", "output_mode"), _opens_what_it_waits_for),
    )

    def __init__(
        self,
        *,
        branch_name: str | None = None,
        ref: str | None = None,
        wait_for_completion: bool | Literal["if_supported"] = "if_supported",
        source: Literal["git", "manifest"] | None = None,
        manifest: dict[str, Any] | None = None,
        output_mode: Literal["branch", "files"] | None = None,
        open_branch: Literal["staging", "dev_mode", "if_supported"] | None = None,
        timeout: float | timedelta = DBT_SYNC_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.branch_name = branch_name
        self.ref = ref
        self.wait_for_completion = wait_for_completion
        self.source = source
        self.manifest = manifest
        self.output_mode = output_mode
        self.open_branch = open_branch
        self.validate_known_arguments()

    def key_of(self, config: PlatformConfig) -> str:
        config.require_management_url()
        return self.fingerprint(config, "dbt sync", self._body().to_json())

    def submit(
        self, attempt: Attempt, *, ids: Ids | None, until_end: bool
    ) -> DbtSyncOutcome | None:
        from airflow_provider_platform.client.management.dbt_sync.start import start

        deployment_id = attempt.config.resolve_deployment_id(self.deployment_id)
        submitted_at = attempt.now
        deadline = self.deadline(attempt, {"submitted_at": submitted_at})
        history = self._read_history(attempt, deployment_id, deadline)
        known = None if history.state in ("none", "denied") else history.ids
        untold = _why_untold(history.state)
        if self.wait_for_completion is True and known is None:
            raise PlatformInputError(
                f"Nothing was started: {untold}, so wait_for_completion=True cannot be kept. Use "
                "'if_supported' or False.",
                field="wait_for_completion",
            )
        if self.open_branch in ("staging", "dev_mode") and known is None:
            raise PlatformInputError(
                f"Nothing was started: {untold}, so nothing tells when the branch can be opened, "
                f"and open_branch={self.open_branch!r} cannot be kept. Use 'if_supported', or "
                "leave it out and open the branch in the platform.",
                field="open_branch",
            )
        intent: Ids = {
            "deployment_id": deployment_id,
            "known": known,
            "history": history.state,
            "submitted_at": submitted_at,
        }
        self.announce(attempt, intent)
        started = attempt.client.run(
            start(
                deployment_id,
                self._body(),
                known=known,
                submitted_at=submitted_at,
                listed=history.state == "listed",
                deadline=deadline,
            )
        )
        run: Ids = {
            "deployment_id": deployment_id,
            "sync_job_id": started.sync_job_id,
            "workflow_id": started.workflow_id,
            "branch_name": started.branch_name,
            "waits": self.wait_for_completion is not False and known is not None,
            "submitted_at": submitted_at,
        }
        self.accepted(attempt, run)
        self.log.info(
            "Started dbt sync %s of deployment %s on branch %s",
            started.sync_job_id,
            deployment_id,
            started.branch_name,
        )
        self._refuse_dropped(attempt, deployment_id, started, history.state)
        if run["waits"] and history.state == "unclear" and not self._is_told(attempt, run):
            run["waits"] = False
            self.accepted(attempt, run)
        if run["waits"]:
            return None
        if self.open_branch in ("staging", "dev_mode"):
            raise PlatformError(
                "The dbt sync was started, and this tenant does not report when it has written its "
                f"branch, so open_branch={self.open_branch!r} cannot be kept. Open branch "
                f"{started.branch_name} in the platform when the sync is complete.",
                where=f"dbt sync {started.sync_job_id}, deployment {deployment_id}",
            )
        if self.wait_for_completion is not False:
            self.log.warning(
                "%s: returning after its start, with status and result None.%s",
                untold[0].upper() + untold[1:],
                " Its branch is not opened; it answers if somebody opens it in the platform."
                if self.open_branch
                else "",
            )
        return self._started(run)

    def recover(self, attempt: Attempt, ids: Ids) -> tuple[bool, Ids]:
        from airflow_provider_platform.client.management.dbt_sync.start import find_started

        found = attempt.client.run(
            find_started(
                ids["deployment_id"],
                self._body(),
                known=ids.get("known"),
                submitted_at=ids["submitted_at"],
                listed=ids.get("history", "listed") == "listed",
                deadline=attempt.now + LOOK_SECONDS,
            )
        )
        if found is None:
            return False, ids
        self._refuse_dropped(attempt, ids["deployment_id"], found, "listed")
        return True, {
            "deployment_id": ids["deployment_id"],
            "sync_job_id": found.sync_job_id,
            "workflow_id": found.workflow_id,
            "branch_name": found.branch_name,
            "waits": self.wait_for_completion is not False,
            "submitted_at": ids["submitted_at"],
        }

    def follow(self, attempt: Attempt, ids: Ids) -> DbtSyncOutcome:
        if not ids["waits"]:
            return self._started(ids)
        outcome = attempt.client.run(self._wait_program(attempt, ids), attempt.event_log)
        if outcome is None:
            raise RuntimeError("a wait ends with an outcome")
        if self.open_branch:
            self._open(attempt, ids, outcome)
            deadline = self.deadline(attempt, ids)
            interval = float(self.poll_interval)
            build = follow_build(attempt, ids, deadline=deadline, poll_interval=interval)
            ids["build"] = build.to_json()
        return outcome

    def resume(self, attempt: Attempt, ids: Ids) -> Ids:
        """Begin at the sync: it is read again, and its branch opened again."""
        return {name: value for name, value in ids.items() if name not in ("opened", "build")}

    def take(self, attempt: Attempt, ids: Ids) -> DbtSyncOutcome:
        followed = {**ids, "submitted_at": attempt.now}
        outcome = self.follow(attempt, followed)
        ids.update(followed)
        return outcome

    def poll_once(self, attempt: Attempt, ids: Ids) -> DbtSyncOutcome | None:
        if not ids["waits"]:
            return self._started(ids)
        outcome = attempt.client.run(
            self._wait_program(attempt, ids, poll_once=True), attempt.event_log
        )
        if outcome is None or not self.open_branch:
            return outcome
        self._open(attempt, ids, outcome)
        build = poll_build_once(attempt, ids)
        if build is None:
            return None
        ids["build"] = build.to_json()
        return outcome

    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None
    ) -> Program[bool]:
        from airflow_provider_platform.client.management.dbt_sync.syncs import cancel_dbt_sync
        from airflow_provider_platform.client.operations.program import call

        if "sync_job_id" not in ids or "opened" in ids:  # the sync itself is over
            return False
        cancel = cancel_dbt_sync(deployment_id=ids["deployment_id"], sync_job_id=ids["sync_job_id"])
        yield from call(cancel, deadline=clock() + seconds if seconds else None)
        return True

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.branches import PlatformBuildTrigger
        from airflow_provider_platform.triggers.dbt_sync import PlatformDbtSyncTrigger

        if "opened" in ids:
            return PlatformBuildTrigger(
                platform_conn_id=self.platform_conn_id,
                run=ids,
                deadline=deadline,
                poll_interval=self.poll_interval,
                cancel_on_kill=False,  # there is nothing to stop
            )
        return PlatformDbtSyncTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=self.cancel_on_kill,
        )

    def read_event(
        self, attempt: Attempt, ids: Ids, event: dict[str, Any]
    ) -> DbtSyncOutcome | None:
        from airflow_provider_platform.client.management.dbt_sync.run import DbtSyncOutcome

        if "opened" in ids:
            if "opened" not in event["run"]:
                return None  # the event of the sync again; the build is waited for
            ids["build"] = event["outcome"]
            program = self._wait_program(attempt, ids, poll_once=True)
            try:
                return attempt.client.run(program)
            except PlatformNotFoundError:
                return self._started(ids)  # the sync is complete; its result is gone by now
        outcome = DbtSyncOutcome(**event["outcome"])
        if not (self.open_branch and ids["waits"]):
            return outcome
        opened = {**ids}
        self._open(attempt, opened, outcome)
        if opened["opened"]["waits"]:
            attempt.ids = opened
            return None
        ids.update(opened)
        return outcome

    def finish(self, attempt: Attempt, ids: Ids, outcome: DbtSyncOutcome) -> dict[str, Any]:
        if ids["waits"]:
            self._refuse_dropped_files(attempt, ids, outcome)
            self.log.info("dbt sync %s is complete", outcome.sync_job_id)
        elif self.output_mode == "files":
            self.log.warning(
                "Only a completed sync shows whether the tenant knows output_mode='files'; "
                "a release before v0.10.0 drops it and writes a branch. This task does not wait "
                "for the end."
            )
        branch_name = outcome.branch_name or ids.get("branch_name")
        result = {
            "sync_job_id": outcome.sync_job_id,
            "workflow_id": ids.get("workflow_id"),
            "branch_name": branch_name,
            "status": "COMPLETED" if ids["waits"] else None,
            "result": outcome.result,
        }
        if self.open_branch:
            result |= self._about_opened(attempt, ids, branch_name)
        return result

    def _open(self, attempt: Attempt, ids: Ids, outcome: DbtSyncOutcome) -> None:
        """Open the synced branch; `ids` then say under which name it answers."""
        branch_name = outcome.branch_name or ids["branch_name"]
        if branch_name is None:
            raise PlatformError(
                "The dbt sync is complete, and the service named no branch that could be opened. "
                "Give branch_name.",
                where=f"dbt sync {outcome.sync_job_id}, deployment {ids['deployment_id']}",
            )
        ids["opened"] = open_and_log(
            attempt,
            deployment_id=ids["deployment_id"],
            branch_name=branch_name,
            environment=str(self.open_branch),
            deadline=max(self.deadline(attempt, ids), attempt.now + LOOK_SECONDS),
        )

    def _about_opened(self, attempt: Attempt, ids: Ids, branch_name: str | None) -> dict[str, Any]:
        """What the result says of the opened branch."""
        from airflow_provider_platform.client.management.data_model.builds import Build

        if "opened" not in ids:  # the tenant does not tell how the sync goes
            opened: dict[str, Any] = {"branch_name": branch_name}
        else:
            build = Build(**ids["build"]) if ids.get("build") else Build(None)
            opened = describe_opened(attempt, ids, build)
        return {
            "active_branch_name": opened["branch_name"],
            "environment": opened.get("environment"),
            "url": opened.get("url"),
            "hash": opened.get("hash"),
            "build_status": opened.get("status"),
        }

    def _started(self, ids: Ids) -> DbtSyncOutcome:
        """What is known of a sync that is not waited for."""
        from airflow_provider_platform.client.management.dbt_sync.run import DbtSyncOutcome

        return DbtSyncOutcome(ids["sync_job_id"], ids["branch_name"], None)

    def _read_history(self, attempt: Attempt, deployment_id: int, deadline: float) -> KnownSyncs:
        """What the history says before the start, if anything here depends on it. Raises
        PlatformInputError where it says that the tenant would drop what is asked for."""
        from airflow_provider_platform.client.management.dbt_sync.start import (
            KnownSyncs,
            read_known,
        )

        newer = [
            f"{name}={value!r}"
            for name, value in (("source", self.source), ("output_mode", self.output_mode))
            if value in ("manifest", "files")
        ]
        if self.wait_for_completion is False and not newer:
            return KnownSyncs("unread")
        must_tell = self.wait_for_completion is True
        program = read_known(deployment_id, must_tell=must_tell, deadline=deadline)
        history = attempt.client.run(program)
        if history.state == "none" and newer:
            raise PlatformInputError(
                f"Nothing was started: this tenant is of a release before v0.4.0, which drops "
                f"{' and '.join(newer)} and syncs the dbt repository into a new branch instead.",
                field=newer[0].partition("=")[0],
            )
        return history

    def _refuse_dropped(
        self, attempt: Attempt, deployment_id: int, started: DbtSyncResponse, history: HistoryState
    ) -> None:
        """Raise DbtSyncInputDroppedError where the tenant started another sync than was asked
        for."""
        from airflow_provider_platform.client.management.dbt_sync.start import refuse_dropped

        program = refuse_dropped(deployment_id, self._body(), started, history)
        unsure = attempt.client.run(program)
        if unsure is not None:
            self.log.warning(
                "The history does not say whether this tenant knows %s; a release that does not "
                "drops it and syncs the dbt repository.",
                unsure,
            )

    def _refuse_dropped_files(self, attempt: Attempt, ids: Ids, outcome: DbtSyncOutcome) -> None:
        """Raise DbtSyncInputDroppedError where a sync that was to keep files wrote a branch. The
        service keeps files for an hour, so a sync that may be older is not asked for them."""
        from airflow_provider_platform.client.management.dbt_sync.start import (
            refuse_dropped_files,
        )

        if self.output_mode == "files" and attempt.now < ids["submitted_at"] + FILES_ARE_KEPT:
            attempt.client.run(refuse_dropped_files(ids["deployment_id"], outcome.sync_job_id))

    def _is_told(self, attempt: Attempt, ids: Ids) -> bool:
        """Whether the tenant tells how the started sync goes, although its history fails."""
        from airflow_provider_platform.client.management.dbt_sync.start import can_be_followed

        program = can_be_followed(
            ids["deployment_id"],
            ids["sync_job_id"],
            attempt.client.clock,
            poll_interval=float(self.poll_interval),
            deadline=self.deadline(attempt, ids),
        )
        return attempt.client.run(program)

    def _wait_program(
        self, attempt: Attempt, ids: Ids, *, poll_once: bool = False
    ) -> Program[DbtSyncOutcome | None]:
        from airflow_provider_platform.client.management.dbt_sync.run import SyncLimits, wait

        deadline = attempt.now + LOOK_SECONDS if poll_once else self.deadline(attempt, ids)
        return wait(
            ids["deployment_id"],
            ids["sync_job_id"],
            SyncLimits(deadline=deadline, poll_interval=float(self.poll_interval)),
            attempt.client.clock,
            poll_once=poll_once,
        )

    def _body(self) -> StartDbtSyncInput:
        from airflow_provider_platform.client.management.dbt_sync.syncs import (
            StartDbtSyncInput,
        )

        return StartDbtSyncInput.build(
            branch_name=self.branch_name,
            ref=self.ref,
            source=self.source,
            manifest=self.manifest,
            output=self.output_mode,
        )
