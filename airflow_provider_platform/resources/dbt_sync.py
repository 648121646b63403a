"""A dbt sync: how a sync is started once, found, followed, stopped and read.

`syncJobId` names a sync in every operation; `workflowId` is only echoed by the service.

Before a start the task reads the history of syncs, because one question decides everything else:
does the tenant have a history? A tenant without one starts a sync and reports nothing of it. It
also ignores the arguments that came with the history, so they are refused before anything starts.

A start is never repeated blindly, because every start runs a sync and makes a branch. If the
response to a start was lost, the start began a sync only if the history has one that fits in all
respects: branch, ref, source, trigger, and a start time near the intent. A sync that fits but began
at another time may be somebody else's, and so may a sync that the service does not describe well
enough. Then the outcome is unknown.

The status shows the progress; only the history shows a cancelled sync.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from airflow_provider_platform.client.argument_rules import given
from airflow_provider_platform.client.choices import SyncOutput, SyncSource
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    DbtSyncCancelledError,
    DbtSyncFailedError,
    OperationMissingError,
    PlatformError,
    PlatformInputError,
    PlatformInterruptedError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.models import (
    EmptiableResponse,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, PageWalk
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.repeats import is_transient, may_have_been_processed
from airflow_provider_platform.resources.missing_operations import (
    may_be_missing,
    raise_if_missing,
)
from airflow_provider_platform.resources.run_kind import (
    SINGLE_POLL_SECONDS,
    Intended,
    Poll,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
    find_lost_start,
)
from airflow_provider_platform.resources.run_log import Stage, say, warn

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


RUNNING = "RUNNING"
"""The history's status of a running sync."""
SUCCEEDED = "COMPLETED"
FAILED = "FAILED"
CANCELLED = "CANCELLED"
UNKNOWN = "UNKNOWN"
"""The service has lost the outcome."""
TERMINAL_STATUSES = frozenset({SUCCEEDED, FAILED, CANCELLED})
"""The statuses of a sync that has ended. Any other status, known or not, means that it is running.
Only the history shows CANCELLED."""


# The resource: what is sent, and what the service answers.


class DbtSyncResponse(ResponseModel):
    """A sync that has been started, and the platform's branch that it writes to."""

    sync_job_id: str = Field(min_length=1)
    workflow_id: str | None = None
    branch_name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _names_the_sync(cls, answer: Any) -> Any:
        """Say what came without `syncJobId`: it shows whether something was started."""
        if not isinstance(answer, dict) or not answer.get("syncJobId"):
            raise PydanticCustomError(
                "sync_without_id",
                "syncJobId is missing, the service sent {sent}",
                {"sent": quote_service(answer)},
            )
        return answer


class DbtSyncProgress(ResponseModel):
    """How far a sync is."""

    message: str | None = None


class DbtSyncStatusResponse(ResponseModel):
    """The status of a sync; only a failed sync has an `error`. An unknown status means that the
    sync is running."""

    sync_job_id: str | None = None
    status: str | None = None
    progress: DbtSyncProgress | None = None
    updated_at: str | None = None
    error: str | None = None


class DbtSyncResultResponse(EmptiableResponse):
    """What a completed sync wrote; no field is set if the service has no result yet."""

    @property
    def is_ready(self) -> bool:
        """Whether there is a result: it can be empty for a moment after the end."""
        return bool(self.model_fields_set or self.model_extra)


class DbtSyncRun(ResponseModel):
    """A sync in the history; UNKNOWN means that its outcome was lost, not that it failed."""

    sync_job_id: str
    deployment_id: int | None = None
    status: str | None = None
    trigger: str | None = None
    source: str | None = None
    branch_name: str | None = None
    started_at: str | None = None
    error_message: str | None = None
    git_ref: str | None = None


# `client/operations.json` has the method and the path of each operation.
start_dbt_sync = typed("startDbtSync", DbtSyncResponse)
list_dbt_syncs = typed("listDbtSyncs", Page[DbtSyncRun])
get_dbt_sync_status = typed("getDbtSyncStatus", DbtSyncStatusResponse)
get_dbt_sync_result = typed("getDbtSyncResult", DbtSyncResultResponse)
cancel_dbt_sync = typed("cancelDbtSync", EmptiableResponse)


HISTORY_PAGE = 50
NEAR_SECONDS = 120.0
"""How far from the intent our sync may begin: the time of a request, and the difference between the
clocks."""
READ_AGAIN_SECONDS = 2.0
"""Seconds until the task reads again what the service may show late: a started sync in the history,
and the result of a complete sync."""


# The history of syncs.


@dataclass(frozen=True)
class History:
    """The newest syncs; `left_out` is the number of rows that could not be parsed."""

    syncs: list[DbtSyncRun]
    left_out: int = 0

    @property
    def may_hide_one(self) -> bool:
        """Whether a new row that cannot be parsed may have pushed an old one off the page."""
        return self.left_out > 0 and self.left_out + len(self.syncs) >= HISTORY_PAGE

    @property
    def ids(self) -> list[str]:
        return [sync.sync_job_id for sync in self.syncs]

    @property
    def running(self) -> list[DbtSyncRun]:
        return [sync for sync in self.syncs if sync.status == RUNNING]


async def read_history(
    api: Api, deployment_id: int, *, once: bool = False, deadline: float | None = None
) -> History:
    """Return the newest syncs. Raises OperationMissingError if the tenant has no history, and so
    reports no status, or if the credential may not read it."""
    try:
        return await _read_newest(api, deployment_id, once=once, deadline=deadline)
    except PlatformError as error:
        await raise_if_missing(
            api,
            deployment_id,
            error,
            reason="The history and the status of dbt syncs cannot be read",
            permission="SchemaRead",
            deadline=deadline,
        )
        raise


async def _read_newest(
    api: Api, deployment_id: int, *, once: bool, deadline: float | None = None
) -> History:
    """Return the first page, or all pages if the list begins with the oldest sync: the order of the
    history is not documented."""
    walk = PageWalk(list_dbt_syncs(deployment_id=deployment_id, query={"first": HISTORY_PAGE}))
    syncs: list[DbtSyncRun] = []
    left_out = 0
    while walk.operation is not None:
        page = await api.call(walk.operation, once=once, deadline=deadline)
        syncs += walk.add_page(page)
        left_out += page.left_out
        if not _begins_with_oldest(syncs):
            break
    return History(syncs, left_out)


def _begins_with_oldest(syncs: list[DbtSyncRun]) -> bool:
    began = [moment for moment in map(_began, syncs) if moment is not None]
    return len(began) > 1 and began[0] < began[-1]


# Start a sync, and find one whose response was lost.


async def start(
    api: Api, body: dict[str, Any], intent: DbtSyncIds, *, deadline: float | None = None
) -> DbtSyncResponse:
    """Start one sync. Neither a refused start nor a request for the history is repeated beyond the
    deadline (Unix time).

    If the response is lost, the history is read. Raises PlatformOutcomeUnknownError if it does not
    show whether the sync was started.
    """
    try:
        operation = start_dbt_sync(deployment_id=intent["deployment_id"], body=body)
        return await api.call(operation, deadline=deadline)
    except PlatformError as error:
        if not may_have_been_processed(error):
            raise
        cause = error
    find = find_started(api, body, intent, deadline=deadline)
    return await find_lost_start(cause, find, noun="sync", listing="history")


async def find_started(
    api: Api, body: dict[str, Any], intent: DbtSyncIds, *, deadline: float | None = None
) -> DbtSyncResponse | None:
    """Return the sync that a start with a lost response began, or None if it began none (see the
    module; arguments as for `start`). A request for the history is not repeated beyond the deadline
    (Unix time).

    Raises PlatformOutcomeUnknownError if there is no history, if it shows several new syncs that
    could be this one, or if it does not show whose sync a new one is.
    """
    lost = "The service did not confirm the start of the dbt sync, and "
    where = f"deployment {intent['deployment_id']}"
    unread = PlatformOutcomeUnknownError(
        f"{lost}the task could not read the history of syncs. The tenant may have no history, or "
        "the token may not be allowed to read it. A sync may be running. Look at the deployment's "
        "branches. If the sync wrote its branch, mark this task as successful. If it did not, "
        "clear the task to start a sync.",
        where=where,
    )
    ids_before = intent.get("ids_before")
    if ids_before is None:
        raise unread
    for poll in range(2):
        try:
            history = await read_history(api, intent["deployment_id"], deadline=deadline)
        except OperationMissingError as error:
            raise unread from error
        new = [run for run in history.syncs if run.sync_job_id not in {"", *ids_before}]
        own = {run.sync_job_id: _is_own(run, body, intent["submitted_at"]) for run in new}
        ours = [run for run in new if own[run.sync_job_id]]
        if ours:
            break
        if poll == 0:
            await api.sleep(READ_AGAIN_SECONDS)
    unclear = [sync_job_id for sync_job_id, is_own in own.items() if is_own is None]
    if len(ours) == 1:
        (run,) = ours
        return DbtSyncResponse.model_validate(
            {"syncJobId": run.sync_job_id, "branchName": run.branch_name}
        )
    if ours:
        ids = ", ".join(run.sync_job_id for run in ours)
        problem = (
            f"the history has several new syncs that could belong to this task ({ids}). Look at "
            "these syncs."
        )
    elif unclear:
        problem = (
            f"the history has new syncs ({', '.join(map(quote_service, unclear))}), but does not "
            "show whether this task started one of them. Look at these syncs."
        )
    elif history.left_out > intent.get("left_out_before", 0) or history.may_hide_one:
        problem = (
            "some new entries of the history of syncs cannot be read, so the history does not "
            "show whether this task started a sync. Look at the syncs in the platform."
        )
    else:
        return None
    raise PlatformOutcomeUnknownError(
        f"{lost}{problem} If one of them did the work of this task, mark this task as successful. "
        "If none did, clear the task to start another sync.",
        where=where,
    )


def find_equal(
    running: Collection[DbtSyncRun], body: dict[str, Any]
) -> tuple[DbtSyncRun | None, list[DbtSyncRun]]:
    """Return (the newest of the active syncs that does what `body` asks for, or None; the other
    active syncs that write the same branch).

    A sync is equal if it writes the same branch from the same ref of the repository; a sync without
    a ref in the history is equal only to a request without a ref.
    """
    same_branch = [run for run in running if run.branch_name == body.get("branchName")]
    equal = [
        run for run in same_branch if run.git_ref == body.get("ref") and run.source in (None, "git")
    ]
    newest = max(equal, key=lambda run: _began(run) or 0.0, default=None)
    return newest, [run for run in same_branch if run not in equal]


def _is_own(run: DbtSyncRun, body: dict[str, Any], submitted_at: float) -> bool | None:
    """Return whether a start with a lost response began this sync; None if this is unknown."""
    fits = _fits(run, body)
    began = _began(run)
    if fits is False:
        return False
    if began is None:
        return None
    return fits if abs(began - submitted_at) <= NEAR_SECONDS else None


def _fits(run: DbtSyncRun, body: dict[str, Any]) -> bool | None:
    """Return whether the sync fits the request; None if the history does not show it."""
    ours = body.get("source") or "git"
    if body.get("branchName") is not None and run.branch_name not in (None, body.get("branchName")):
        return False
    if body.get("ref") is not None and run.git_ref not in (None, body.get("ref")):
        return False
    if run.source not in (None, ours) or run.trigger in ("webhook", "agent"):
        return False
    if (run.source is None and ours != "git") or run.trigger not in (None, "api"):
        return None
    return True


def _began(run: DbtSyncRun) -> float | None:
    """Return when the sync began by the service's time stamp (Unix time); None if it has none."""
    try:
        return Timestamp.parse(run.started_at).timestamp()
    except ValueError:
        return None


HISTORY_INTERVAL = 30.0
UNKNOWN_READS = 3
"""How often in a row the history may say that it does not know the outcome, while the status does
not change. Then the outcome is lost."""
UNKNOWN_PAUSE = 10.0
"""Seconds between these reads of a single poll."""
RESULT_BUDGET = 30.0


# Wait for a sync.


@dataclass(frozen=True)
class DbtSyncOutcome:
    """A completed sync: its branch (None if it is not known) and its result as plain JSON."""

    sync_job_id: str
    branch_name: str | None
    result: dict[str, Any] | None


async def poll(api: Api, deployment_id: int, sync_job_id: str) -> DbtSyncOutcome | None:
    """Poll a sync by its status and the history, for a caller that remembers no earlier poll.
    Raises the errors of `_KnownSync.poll`, and OperationMissingError if the tenant reports no
    status."""
    sync = _KnownSync(deployment_id, sync_job_id)
    try:
        outcome = await sync.poll(api)
        while outcome is None and sync.outcome_is_unknown:
            await api.sleep(UNKNOWN_PAUSE)
            outcome = await sync.poll(api)
    except PlatformError as error:
        if may_be_missing(error):
            await read_history(api, deployment_id, once=True)
        raise
    return outcome


class _KnownSync:
    """What is known about one sync. In a wait until the `deadline` (Unix time), the history is read
    only every half minute, and only while the status does not change. Without a deadline, each poll
    may be the only one: it reads the history too."""

    def __init__(self, deployment_id: int, sync_job_id: str, deadline: float | None = None) -> None:
        self._deployment_id = deployment_id
        self._sync_job_id = sync_job_id
        self._get_status = get_dbt_sync_status(deployment_id=deployment_id, sync_job_id=sync_job_id)
        self._deadline = deadline
        self._history_due: float | None = None
        self._error: str | None = None
        self._branch_name: str | None = None
        self._unknown_reads = 0
        self.status: str | None = None

    def __str__(self) -> str:
        return f"dbt sync {quote_service(self._sync_job_id)}, deployment {self._deployment_id}"

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL_STATUSES

    @property
    def outcome_is_unknown(self) -> bool:
        """Return whether the history said at the last read that it does not know the outcome."""
        return self._unknown_reads > 0

    async def poll(self, api: Api) -> DbtSyncOutcome | None:
        """Return the outcome of a sync that has ended, None while it goes on. Raises
        DbtSyncFailedError, DbtSyncCancelledError, PlatformOutcomeUnknownError, and any failure of
        the request for the status."""
        failure = None
        if self._history_due is None:
            self._history_due = self._next_read(api)
        try:
            if await self._read_status(api):
                self._history_due = self._next_read(api)
        except PlatformError as error:
            passes = is_transient(error) or isinstance(error, PlatformNotFoundError)
            if self._deadline is None or not passes:
                raise
            failure = error
        # A single poll reads the history of a complete sync too: the status names no branch.
        if api.clock() >= self._history_due and not (self.ended and self._deadline is not None):
            self._history_due = self._next_read(api)
            await self._read_history(api)
        if self.ended:
            return await self._outcome(api)
        if failure is not None:
            raise failure
        return None

    def _next_read(self, api: Api) -> float:
        """Return when the history is read if the status does not change (Unix time)."""
        if self._deadline is None:
            return api.clock()
        return min(api.clock() + HISTORY_INTERVAL, self._deadline)

    async def _read_status(self, api: Api) -> bool:
        """Read the status, and return whether it changed."""
        deadline = self._deadline and max(self._deadline, api.clock() + SINGLE_POLL_SECONDS)
        answer = await api.call(self._get_status, once=True, deadline=deadline)
        moved = answer.status != self.status
        if moved:
            self._unknown_reads = 0
        self.status = answer.status
        self._error = answer.words("error") or self._error
        message = (answer.progress.message if answer.progress else None) or ""
        sync = f"dbt sync {self._sync_job_id}"
        api.report(Stage("Sync", sync, answer.status or "unknown", message))
        return moved

    async def _read_history(self, api: Api) -> None:
        """Read the history for an end that the status does not show. A failed read is ignored.
        Raises PlatformOutcomeUnknownError if the history has lost the outcome."""
        try:
            history = await _read_newest(api, self._deployment_id, once=True)
        except PlatformError:
            return
        for run in history.syncs:
            if run.sync_job_id != self._sync_job_id:
                continue
            self._branch_name = run.branch_name or self._branch_name
            if run.status in TERMINAL_STATUSES and not self.ended:
                self.status = run.status
                self._error = run.words("error_message") or self._error
            self._unknown_reads = self._unknown_reads + 1 if run.status == UNKNOWN else 0
        if self._unknown_reads >= UNKNOWN_READS:
            raise PlatformOutcomeUnknownError(
                "The service has lost the outcome of the dbt sync: the history reports the status "
                f"UNKNOWN, and the last status was {self.status or 'unknown'}. Look at the sync's "
                f"branch, {quote_service(self._branch_name or 'whose name is unknown')}. If it has "
                "the new model, mark this task as successful. If it does not, clear the task to "
                "sync again.",
                where=self,
            )

    async def _outcome(self, api: Api) -> DbtSyncOutcome:
        """Return the result of a sync that has ended, or raise its error."""
        if self.status == CANCELLED:
            raise DbtSyncCancelledError(
                "The dbt sync was cancelled, for example by a user or by another task.", where=self
            )
        if self.status != SUCCEEDED:
            said = quote_service(self._error or "no reason given").removesuffix(".")
            raise DbtSyncFailedError(
                f"The dbt sync failed: {said}. For its log, call GET /v1/deployments/"
                f"{self._deployment_id}/dbt-sync/{self._sync_job_id}/logs, for example with "
                "PlatformApiOperator.",
                where=self,
            )
        result = await self._read_result(api)
        return DbtSyncOutcome(self._sync_job_id, self._branch_name, result)

    async def _read_result(self, api: Api) -> dict[str, Any] | None:
        """Read the result, which can come some time after the end. Without a result the sync has
        still succeeded: the task returns None as its result, and warns."""
        until = api.clock() + RESULT_BUDGET
        while True:
            missing = f"the service has none after {RESULT_BUDGET:g} seconds."
            try:
                answer = await api.call(
                    get_dbt_sync_result(
                        deployment_id=self._deployment_id, sync_job_id=self._sync_job_id
                    ),
                    once=True,
                )
                if answer.is_ready:
                    return answer.to_json()
            except PlatformInterruptedError:
                raise  # the next try reads the result
            except PlatformError as error:
                missing = error.message
                if not is_transient(error) and not isinstance(error, PlatformNotFoundError):
                    break
            if api.clock() >= until:
                break
            await api.sleep(READ_AGAIN_SECONDS)
        warn(api, f"The dbt sync is complete, but the task returns no result of it: {missing}")
        return None


# The kind of run.


class DbtSyncIds(RunIds):
    """The ids of a sync."""

    deployment_id: int
    ids_before: NotRequired[list[str] | None]
    """Before the start is accepted: the syncs that the history had; None without a history."""
    left_out_before: NotRequired[int]
    """How many rows of this history could not be parsed."""
    sync_job_id: NotRequired[str]
    workflow_id: NotRequired[str | None]
    branch_name: NotRequired[str | None]
    waits: NotRequired[bool]
    """Whether the task waits for the sync."""
    followed: NotRequired[bool]
    """Whether something else started the sync."""


class DbtSyncRunKind(RunKind[DbtSyncOutcome, DbtSyncIds]):
    """A sync, with the arguments of `PlatformDbtSyncOperator`, which a trigger does not need."""

    id_field = "sync_job_id"
    noun = "dbt sync"
    outcome_class = DbtSyncOutcome

    branch_name: str | None = None
    ref: str | None = None
    source: SyncSource | None = None
    manifest: dict[str, Any] | None = None
    output_mode: SyncOutput | None = None
    wait_for_completion: bool | str = "if_supported"
    if_running: str = "start"
    deployment_id: int | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The request that starts the sync."""
        return given(
            branchName=self.branch_name,
            ref=self.ref,
            source=self.source,
            manifest=self.manifest,
            output=self.output_mode,
        )

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint("dbt sync", config.management_url, deployment_id, self.body)

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: DbtSyncIds | None, *, until_end: bool
    ) -> DbtSyncOutcome | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        waits = self.wait_for_completion is not False
        history: History | None = None
        try:
            history = await read_history(api, deployment_id, deadline=env.deadline)
        except OperationMissingError as missing:
            self._refuse_what_needs_a_history(missing)
            if waits:
                warn(
                    api,
                    f"{missing.reason} The task starts the sync and does not wait for it, so the "
                    "task's result contains neither the status nor the outcome of the sync.",
                )
            waits = False
        else:
            running = await self._equal_sync(api, deployment_id, history)
            if running is not None:
                return await self._follow_other(api, deployment_id, running)
        intent: DbtSyncIds = {
            "deployment_id": deployment_id,
            "ids_before": history.ids if history else None,
            "left_out_before": history.left_out if history else 0,
            "submitted_at": api.clock(),
        }
        await api.notify(Intended(intent))
        started = await start(api, self.body, intent, deadline=env.deadline)
        run = _accepted(intent, started, waits=waits)
        await api.notify(RunAccepted(run))
        say(
            api,
            f"Started dbt sync {started.sync_job_id} of deployment {deployment_id} on branch "
            f"{started.branch_name}",
        )
        return None if waits else _only_started(run)

    async def find(self, api: Api, env: RunEnvironment, ids: DbtSyncIds) -> tuple[bool, DbtSyncIds]:
        deadline = api.clock() + SINGLE_POLL_SECONDS
        sync = await find_started(api, self.body, ids, deadline=deadline)
        if sync is None:
            return False, ids
        return True, _accepted(ids, sync, waits=self.wait_for_completion is not False)

    async def poll(self, api: Api, ids: DbtSyncIds) -> DbtSyncOutcome:
        """Return the outcome of a sync that the task does not wait for."""
        return _only_started(ids)

    def watch(self, env: RunEnvironment, ids: DbtSyncIds) -> Poll[DbtSyncOutcome]:
        if not ids["waits"]:
            return super().watch(env, ids)
        return _KnownSync(ids["deployment_id"], ids["sync_job_id"], env.deadline).poll

    async def stop(self, api: Api, ids: DbtSyncIds, *, seconds: float | None = None) -> bool:
        if "sync_job_id" not in ids or ids.get("followed"):
            return False
        cancel = cancel_dbt_sync(deployment_id=ids["deployment_id"], sync_job_id=ids["sync_job_id"])
        await api.call(cancel, deadline=api.clock() + seconds if seconds else None)
        return True

    async def read(self, api: Api, ids: DbtSyncIds, outcome: DbtSyncOutcome) -> dict[str, Any]:
        if ids["waits"]:
            say(api, f"dbt sync {outcome.sync_job_id} is complete")
        return {
            "sync_job_id": outcome.sync_job_id,
            "workflow_id": ids.get("workflow_id"),
            "branch_name": outcome.branch_name or ids.get("branch_name"),
            "status": SUCCEEDED if ids["waits"] else None,
            "result": outcome.result,
        }

    def _refuse_what_needs_a_history(self, missing: OperationMissingError) -> None:
        """Raise PlatformInputError if the task must wait, must compare running syncs, or has an
        argument that a tenant without a history ignores."""
        needs = {
            "wait_for_completion": True if self.wait_for_completion is True else None,
            "if_running": None if self.if_running == "start" else self.if_running,
            "ref": self.ref,
            "source": self.source,
            "output_mode": self.output_mode,
        }
        named = [f"{name}={value!r}" for name, value in needs.items() if value is not None]
        if named:
            raise PlatformInputError(
                f"Nothing was started: {' and '.join(named)} cannot be used without the history of "
                f"dbt syncs. {missing.reason} Leave these arguments out.",
                field=named[0].partition("=")[0],
                where=missing.where,
            ) from missing

    async def _equal_sync(
        self, api: Api, deployment_id: int, history: History
    ) -> DbtSyncRun | None:
        """Return the equal sync that is running and that `if_running` says to follow; None if the
        task must start a sync. Raises AlreadyRunningError if the task must do neither."""
        if self.if_running == "start":
            return None
        equal, others = find_equal(history.running, self.body)
        if equal is None:
            for other in others:
                warn(
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
        self, api: Api, deployment_id: int, running: DbtSyncRun
    ) -> DbtSyncOutcome | None:
        """Follow a sync that something else has started. It is not stopped with this task."""
        run: DbtSyncIds = {
            "deployment_id": deployment_id,
            "sync_job_id": running.sync_job_id,
            "workflow_id": None,
            "branch_name": running.branch_name,
            "waits": self.wait_for_completion is not False,
            "followed": True,
            "submitted_at": api.clock(),
        }
        await api.notify(RunAccepted({**run}))
        say(
            api,
            f"A dbt sync from the same ref into branch {running.branch_name} is already running. "
            f"Following it instead of starting one: dbt sync {running.sync_job_id}",
        )
        return None if run["waits"] else _only_started(run)


def _accepted(ids: DbtSyncIds, sync: DbtSyncResponse, *, waits: bool) -> DbtSyncIds:
    """Return the ids of a sync that was started with these ids of the intent."""
    return {
        "deployment_id": ids["deployment_id"],
        "sync_job_id": sync.sync_job_id,
        "workflow_id": sync.workflow_id,
        "branch_name": sync.branch_name,
        "waits": waits,
        "submitted_at": ids["submitted_at"],
    }


def _only_started(ids: DbtSyncIds) -> DbtSyncOutcome:
    """Return the outcome of a sync that the task does not wait for."""
    return DbtSyncOutcome(ids["sync_job_id"], ids["branch_name"], None)
