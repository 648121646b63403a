"""A dbt sync: how a sync is started once, found, followed, stopped and read.

`syncJobId` names a sync in every operation; `workflowId` is only echoed by the service. A tenant of
the first release with dbt syncs has only the start. How much the service reports about a started
sync depends on its release: the history list shows whether it reports anything. So a task may wait
for a sync or only start it (`waits` in its ids). A tenant silently ignores arguments that its
release does not know, so the started sync is compared with the request.

A start is never repeated blindly, because every start runs a sync and makes a branch. If the
response to a start was lost, the start began a sync only if the history has one that fits in all
respects: branch, ref, source, trigger, and a start time near the intent. A sync that fits but began
at another time may be somebody else's, and so may a sync that the service does not describe well
enough. Then the outcome is unknown.

The status shows the progress; only the history shows a cancelled sync. With `open_branch` the
synced branch is opened after the sync, and the run is over when the branch is built
(`resources/branch_opening.py`).
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from airflow_provider_platform.client.choices import SyncOutput, SyncSource
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    DbtSyncCancelledError,
    DbtSyncFailedError,
    DbtSyncInputDroppedError,
    PlatformAddressError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformPermissionError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.failed_calls import is_transient, may_have_been_processed
from airflow_provider_platform.client.lost_start import find_lost_start
from airflow_provider_platform.client.models import (
    EmptiableResponse,
    InputModel,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, PageWalk
from airflow_provider_platform.client.polling import NOT_FOUND_GRACE
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.branch_opening import (
    BranchRunKind,
    close_again,
    describe_opened,
    open_and_log,
)
from airflow_provider_platform.resources.branches import is_open
from airflow_provider_platform.resources.builds import Build
from airflow_provider_platform.resources.missing_operations import may_be_missing
from airflow_provider_platform.resources.run_kind import (
    SINGLE_POLL_SECONDS,
    Ids,
    Intended,
    Poll,
    RunAccepted,
    RunEnvironment,
    RunKind,
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

MAX_START_BYTES = 50 * 1024 * 1024
"""The most bytes in the body of a start; this limits an uploaded manifest."""


# The resource: what is sent, and what the service answers.


class StartDbtSyncInput(InputModel):
    """What to sync: the platform's branch to write, the dbt repository's ref or a manifest."""

    branch_name: str | None = Field(default=None, min_length=1)
    ref: str | None = Field(default=None, min_length=1)
    source: SyncSource | None = None
    manifest: dict[str, Any] | None = None
    output_mode: SyncOutput | None = Field(default=None, alias="output")

    @model_validator(mode="after")
    def _manifest_belongs_to_its_source(self) -> Self:
        if self.source == "manifest" and self.manifest is None:
            raise ValueError("source='manifest' needs the argument manifest")
        if self.manifest is not None and self.source != "manifest":
            raise ValueError("the argument manifest needs source='manifest'")
        if self.ref is not None and self.source == "manifest":
            raise ValueError(
                "ref cannot be given with source='manifest', because no repository is cloned"
            )
        if self.manifest is not None and len(json.dumps(self.manifest)) > MAX_START_BYTES:
            raise ValueError(
                f"manifest makes the request larger than the limit of {MAX_START_BYTES} bytes"
            )
        return self


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
    """How far a sync is; the percentage is rough."""

    stage: str | None = None
    percent_complete: int | None = None
    message: str | None = None


class DbtSyncStatusResponse(ResponseModel):
    """The status of a sync; only a failed sync has an `error`. An unknown status means that the
    sync is running."""

    sync_job_id: str | None = None
    status: str | None = None
    progress: DbtSyncProgress | None = None
    updated_at: str | None = None
    error: str | None = None


class DbtGeneratedFileContent(ResponseModel):
    """A file that a sync generated without committing it, with its text."""

    path: str
    content: str | None = None


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
    completed_at: str | None = None
    duration_ms: int | None = None
    error_message: str | None = None
    failed_phase: str | None = None
    git_ref: str | None = None
    last_stage: str | None = None


start_dbt_sync = typed("startDbtSync", DbtSyncResponse)
list_dbt_syncs = typed("listDbtSyncs", Page[DbtSyncRun])
get_dbt_sync_status = typed("getDbtSyncStatus", DbtSyncStatusResponse)
get_dbt_sync_result = typed("getDbtSyncResult", DbtSyncResultResponse)
list_dbt_sync_files = typed("getDbtSyncGeneratedFiles", Page[DbtGeneratedFileContent])
cancel_dbt_sync = typed("cancelDbtSync", EmptiableResponse)


HISTORY_PAGE = 50
NEAR_SECONDS = 120.0
"""How far from the intent our sync may begin: the time of a request, and the difference between the
clocks."""
CLOCK_DIFFERENCE = 3600.0
"""The largest difference between two clocks that is allowed for."""
_REF_LENGTH = 12
"""How many characters of a ref are compared with the branch's name, as in the vendor's tool."""

_NO_HISTORY_STATUSES = frozenset({403, 404, 405})

HistoryState = Literal["listed", "none", "denied", "unclear", "unread"]


# The history of syncs.


@dataclass(frozen=True)
class SyncsBefore:
    """The history before a start. `ids` are the syncs in it, `running` the active ones. `state` is
    `listed`; `none` if the tenant has no operation for the history, and so none for the status;
    `denied` if the credential may not read it; `unclear` if the request failed; `unread` if no
    request was made."""

    state: HistoryState
    ids: list[str] = field(default_factory=list)
    running: list[DbtSyncRun] = field(default_factory=list)


async def read_syncs_before(
    api: Api, deployment_id: int, *, required: bool, deadline: float | None = None
) -> SyncsBefore:
    """Read the history before a start. If the history itself fails (400, 500, a broken response),
    this raises only if the history is `required`. A refused token, a busy service and a broken
    connection are errors in any case, as they are for the start."""
    try:
        history = await _read_newest(api, deployment_id, deadline=deadline)
    except PlatformAddressError:
        return SyncsBefore("none")
    except PlatformError as error:
        if isinstance(error, PlatformPermissionError):
            return SyncsBefore("denied")
        status = error.status if isinstance(error, PlatformApiError) else None
        if status in _NO_HISTORY_STATUSES:
            return SyncsBefore("none")
        asks_to_wait = isinstance(error, PlatformApiError) and error.retry_after is not None
        failed_itself = isinstance(error, PlatformProtocolError) or (
            status is not None and status not in (401, 408, 429) and not asks_to_wait
        )
        if required or not failed_itself:
            raise
        return SyncsBefore("unclear")
    running = [run for run in history.runs if run.status == RUNNING]
    return SyncsBefore("listed", [run.sync_job_id for run in history.runs], running)


@dataclass(frozen=True)
class _History:
    """The newest syncs; `left_out` is the number of rows that could not be parsed."""

    runs: list[DbtSyncRun]
    left_out: int


async def _read_newest(
    api: Api, deployment_id: int, *, once: bool = False, deadline: float | None = None
) -> _History:
    """Return the first page, or all pages if the list begins with the oldest sync: the order of the
    history is not documented."""
    query = {"first": HISTORY_PAGE}
    walk = PageWalk(list_dbt_syncs(deployment_id=deployment_id, query=query))
    runs: list[DbtSyncRun] = []
    left_out = 0
    while walk.operation is not None:
        page = await api.call(walk.operation, once=once, deadline=deadline)
        runs += walk.add_page(page)
        left_out += page.left_out
        if not _begins_with_oldest(runs):
            break
    return _History(runs, left_out)


def _begins_with_oldest(runs: list[DbtSyncRun]) -> bool:
    began = [moment for moment in map(_began, runs) if moment is not None]
    return len(began) > 1 and began[0] < began[-1]


async def read_history(
    api: Api, deployment_id: int, *, once: bool = False, deadline: float | None = None
) -> list[DbtSyncRun] | None:
    """Return the newest syncs, or None if the service has no operation for the history, and so none
    for the status."""
    history = await _read_newest_or_none(api, deployment_id, once=once, deadline=deadline)
    return None if history is None else history.runs


async def _read_newest_or_none(
    api: Api, deployment_id: int, *, once: bool = False, deadline: float | None = None
) -> _History | None:
    try:
        return await _read_newest(api, deployment_id, once=once, deadline=deadline)
    except PlatformAddressError:
        return None
    except PlatformApiError as error:
        if error.status in _NO_HISTORY_STATUSES:
            return None
        raise


# Start a sync, and find one whose response was lost.


async def can_be_followed(
    api: Api,
    deployment_id: int,
    sync_job_id: str,
    *,
    poll_interval: float,
    deadline: float | None = None,
) -> bool:
    """Return whether the status of a sync that was just started can be read within a minute. Used
    if the history did not show whether the tenant reports it. Raises
    PlatformAuthenticationError."""
    until = api.clock() + NOT_FOUND_GRACE
    operation = get_dbt_sync_status(deployment_id=deployment_id, sync_job_id=sync_job_id)
    while True:
        try:
            await api.call(operation, once=True, deadline=deadline)
            return True
        except PlatformAuthenticationError:
            raise
        except PlatformError as error:
            if not is_transient(error) and not isinstance(error, PlatformNotFoundError):
                return False
        if api.clock() >= until:
            return False
        await api.sleep(poll_interval)


async def start(
    api: Api,
    deployment_id: int,
    body: StartDbtSyncInput,
    *,
    ids_before: Collection[str] | None,
    submitted_at: float,
    listed: bool = True,
    deadline: float | None = None,
) -> DbtSyncResponse:
    """Start one sync. `ids_before` are the ids in the history before the start, None if there is no
    history; `listed` is False if the history was not read. `submitted_at` is the intent's Unix
    time. Neither a refused start nor a request for the history is repeated beyond the deadline
    (Unix time).

    If the response is lost, the history is read. Raises PlatformOutcomeUnknownError if it does not
    show whether the sync was started.
    """
    try:
        operation = start_dbt_sync(deployment_id=deployment_id, body=body)
        return await api.call(operation, deadline=deadline)
    except PlatformError as error:
        if not may_have_been_processed(error):
            raise
        cause = error
    find = find_started(
        api,
        deployment_id,
        body,
        ids_before=ids_before,
        submitted_at=submitted_at,
        listed=listed,
        deadline=deadline,
    )
    return await find_lost_start(cause, find, noun="sync", listing="history")


async def find_started(
    api: Api,
    deployment_id: int,
    body: StartDbtSyncInput,
    *,
    ids_before: Collection[str] | None,
    submitted_at: float,
    listed: bool = True,
    deadline: float | None = None,
) -> DbtSyncResponse | None:
    """Return the sync that a start with a lost response began, or None if it began none (see the
    module; arguments as for `start`). A request for the history is not repeated beyond the deadline
    (Unix time).

    Raises PlatformOutcomeUnknownError if there is no history, if it shows several new syncs that
    could be this one, or if it does not show whose sync a new one is.
    """
    lost = "The service did not confirm the start of the dbt sync, and "
    where = f"deployment {deployment_id}"
    for poll in range(2):
        history = None
        if ids_before is not None:
            history = await _read_newest_or_none(api, deployment_id, deadline=deadline)
        if history is None or ids_before is None:
            raise PlatformOutcomeUnknownError(
                f"{lost}the task could not read the history of syncs. The tenant may have no "
                "history, or the token may not be allowed to read it. A sync may be running. Look "
                "at the deployment's branches. If the sync wrote its branch, mark this task as "
                "successful. If it did not, clear the task to start a sync.",
                where=where,
            )
        new = [run for run in history.runs if run.sync_job_id not in {"", *ids_before}]
        left_out = history.left_out
        own = {run.sync_job_id: _is_own(run, body, submitted_at, listed=listed) for run in new}
        ours = [run for run in new if own[run.sync_job_id]]
        if len(ours) > 1:
            ids = ", ".join(run.sync_job_id for run in ours)
            raise PlatformOutcomeUnknownError(
                f"{lost}the history has several new syncs that could belong to this task ({ids}). "
                "Look at these syncs. If one of them did the work of this task, mark this task as "
                "successful. If none did, clear the task to start another sync.",
                where=where,
            )
        if ours:
            (run,) = ours
            return DbtSyncResponse.model_validate(
                {"syncJobId": run.sync_job_id, "branchName": run.branch_name}
            )
        if poll == 0:
            await api.sleep(2.0)
    unclear = [sync_job_id for sync_job_id, is_own in own.items() if is_own is None]
    if unclear or left_out:
        problem = (
            f"the history has new syncs ({', '.join(map(quote_service, unclear))}), but does not "
            "show whether this task started one of them. Look at these syncs."
            if unclear
            else "some entries of the history of syncs cannot be read, so the history does not "
            "show whether this task started a sync. Look at the syncs in the platform."
        )
        raise PlatformOutcomeUnknownError(
            f"{lost}{problem} If one of them did the work of this task, mark this task as "
            "successful. If none did, clear the task to start another sync.",
            where=where,
        )
    return None


def find_equal(
    running: Collection[DbtSyncRun], body: StartDbtSyncInput
) -> tuple[DbtSyncRun | None, list[DbtSyncRun]]:
    """Return (the newest of the active syncs that does what `body` asks for, or None; the other
    active syncs that write the same branch).

    A sync is equal if it writes the same branch from the same ref of the repository; a sync without
    a ref in the history is equal only to a request without a ref.
    """
    same_branch = [run for run in running if run.branch_name == body.branch_name]
    equal = [run for run in same_branch if run.git_ref == body.ref and run.source in (None, "git")]
    newest = max(equal, key=lambda run: _began(run) or 0.0, default=None)
    return newest, [run for run in same_branch if run not in equal]


def _is_own(
    run: DbtSyncRun, body: StartDbtSyncInput, submitted_at: float, *, listed: bool
) -> bool | None:
    """Return whether a start with a lost response began this sync; None if this is unknown."""
    fits = _fits(run, body)
    began = _began(run)
    if fits is False:
        return False
    if began is None:
        return None
    if abs(began - submitted_at) <= NEAR_SECONDS:
        return fits
    if not listed and began < submitted_at - CLOCK_DIFFERENCE:
        return False  # it existed before, and the history was not read then
    return None


def _fits(run: DbtSyncRun, body: StartDbtSyncInput) -> bool | None:
    """Return whether the sync fits the request; None if the history does not show it."""
    ours = body.source or "git"
    if body.branch_name is not None and run.branch_name not in (None, body.branch_name):
        return False
    if body.ref is not None and run.git_ref not in (None, body.ref):
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


# Tenants that ignore an argument.


def drops_ref(ref: str | None, body: StartDbtSyncInput, branch_name: str | None) -> bool:
    """Return whether a tenant of a release without `ref` started the tracked branch instead: then
    the name that the tenant gave the branch does not begin with the ref. A name that the caller
    chose does not show this.

    Such names have the form `dbt-sync/<ref>-<time>-<hash>`, with other characters than letters,
    digits, `.` and `_` of the ref replaced.
    """
    if ref is None or body.branch_name is not None or not branch_name:
        return False
    begin = _usable(ref)[:_REF_LENGTH]
    made = branch_name.removeprefix("dbt-sync/")
    return bool(begin) and not _usable(made).startswith(begin)


def _usable(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]", "", text)


async def refuse_dropped(
    api: Api,
    deployment_id: int,
    body: StartDbtSyncInput,
    started: DbtSyncResponse,
    history: HistoryState,
) -> str | None:
    """Raise DbtSyncInputDroppedError if the started sync is not the requested one. Returns the name
    of an argument for which the history does not show it, or None."""
    ref_is_dropped = drops_ref(body.ref, body, started.branch_name)
    if not ref_is_dropped and body.source != "manifest":
        return None
    where = f"dbt sync {quote_service(started.sync_job_id)}, deployment {deployment_id}"
    branch = quote_service(started.branch_name or "unknown")
    if ref_is_dropped:
        raise DbtSyncInputDroppedError(
            f"The tenant ignored ref={body.ref!r}: releases before v0.4.0 do not support ref. The "
            "tenant syncs the ref that is set in the platform's dbt integration, into branch "
            f"{branch}. Delete that branch. Then set the ref in the platform's dbt integration, or "
            "leave ref out.",
            where=where,
        )
    for poll in range(2):
        if history != "listed":
            break
        rows = await read_history(api, deployment_id)
        run = next((row for row in rows or [] if row.sync_job_id == started.sync_job_id), None)
        if run is not None and run.source != "manifest":
            raise DbtSyncInputDroppedError(
                "The tenant ignored source='manifest': releases before v0.8.0 do not support it. "
                f"The tenant syncs the dbt repository into branch {branch}. Delete that branch. "
                "Use source='git' on this tenant.",
                where=where,
            )
        if run is not None:
            return None
        if poll == 0:
            await api.sleep(2.0)
    return "source"


async def refuse_dropped_files(api: Api, deployment_id: int, sync_job_id: str) -> None:
    """Raise DbtSyncInputDroppedError if a sync with `output` `files` that was just completed has no
    files: then it wrote a branch. Other errors of the request are ignored."""
    files = list_dbt_sync_files(
        deployment_id=deployment_id, sync_job_id=sync_job_id, query={"first": 1}
    )
    try:
        await api.call(files)
    except PlatformError as error:
        if not may_be_missing(error):
            return
        raise DbtSyncInputDroppedError(
            "The tenant ignored output='files': releases before v0.10.0 do not support it. The "
            "sync wrote a branch instead of files. Delete the branch if you do not need it.",
            where=f"dbt sync {quote_service(sync_job_id)}, deployment {deployment_id}",
        ) from error


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
    """Read the status of a sync and the history once. Return None if the sync has not ended.
    Raises the errors of `_KnownSync.poll`, and any failure of the requests."""
    sync = _KnownSync(deployment_id, sync_job_id)
    try:
        await sync.read_status(api)
    except (PlatformAddressError, PlatformApiError) as error:
        if is_transient(error) or await read_history(api, deployment_id, once=True) is not None:
            raise
        raise PlatformError(
            "This tenant has no operation that reports the status of a dbt sync, so a task cannot "
            "wait for one.",
            where=sync,
        ) from error
    if not sync.ended:
        await sync.read_history(api)
    while sync.outcome_is_unknown:
        await api.sleep(UNKNOWN_PAUSE)
        await sync.read_history(api)
    return await sync.outcome(api) if sync.ended else None


class _KnownSync:
    """What is known about one sync. Until the `deadline` (Unix time), the history is read only
    every half minute, and only while the status does not change."""

    def __init__(self, deployment_id: int, sync_job_id: str, deadline: float = math.inf) -> None:
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
        DbtSyncFailedError, DbtSyncCancelledError, PlatformOutcomeUnknownError."""
        moved, failure = False, None
        if self._history_due is None:
            self._history_due = self._next_read(api)
        try:
            moved = await self.read_status(api)
        except PlatformError as error:
            if not (is_transient(error) or isinstance(error, PlatformNotFoundError)):
                raise
            failure = error
        if moved:
            self._history_due = self._next_read(api)
        elif api.clock() >= self._history_due and not self.ended:
            self._history_due = self._next_read(api)
            await self.read_history(api)
        if self.ended:
            return await self.outcome(api)
        if failure is not None:
            raise failure
        return None

    def _next_read(self, api: Api) -> float:
        """Return when the history is read if the status does not change (Unix time)."""
        return min(api.clock() + HISTORY_INTERVAL, self._deadline)

    async def read_status(self, api: Api) -> bool:
        """Read the status, and return whether it changed."""
        deadline = max(self._deadline, api.clock() + SINGLE_POLL_SECONDS)
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

    async def read_history(self, api: Api) -> None:
        """Read the history for an end that the status does not show. A failed read is ignored.
        Raises PlatformOutcomeUnknownError if the history has lost the outcome."""
        try:
            runs = await read_history(api, self._deployment_id, once=True)
        except PlatformError as error:
            if not is_transient(error) and not isinstance(error, PlatformProtocolError):
                raise
            return
        for run in runs or []:
            if run.sync_job_id != self._sync_job_id:
                continue
            self._branch_name = run.branch_name or self._branch_name
            if run.status in TERMINAL_STATUSES:
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

    async def outcome(self, api: Api) -> DbtSyncOutcome:
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
        still succeeded."""
        until = api.clock() + RESULT_BUDGET
        while True:
            try:
                answer = await api.call(
                    get_dbt_sync_result(
                        deployment_id=self._deployment_id, sync_job_id=self._sync_job_id
                    ),
                    once=True,
                )
                if answer.is_ready:
                    return answer.to_json()
            except PlatformError as error:
                if not is_transient(error) and not isinstance(error, PlatformNotFoundError):
                    return None
            if api.clock() >= until:
                return None
            await api.sleep(2.0)


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


# The kind of run.


class DbtSyncRunKind(RunKind[DbtSyncOutcome]):
    """A sync, with the arguments of `PlatformDbtSyncOperator`.

    A trigger follows the sync without its input: `body` is then None.
    """

    id_field = "sync_job_id"
    noun = "dbt sync"
    outcome_class = DbtSyncOutcome
    body_class = StartDbtSyncInput

    body: StartDbtSyncInput | None = None
    wait_for_completion: bool | str = "if_supported"
    open_branch: bool = False
    if_running: str = "start"
    deployment_id: int | None = None

    def followed_as(self, ids: Ids) -> RunKind[Any]:
        """Return the sync, or the branch that is built after the sync."""
        return BranchRunKind() if "opened" in ids else self

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint("dbt sync", config.management_url, deployment_id, self._body().to_json())

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> DbtSyncOutcome | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        submitted_at = api.clock()
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
        say(
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
            warn(
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
            deadline=api.clock() + SINGLE_POLL_SECONDS,
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
        outcome = await super().follow(api, env, ids)
        if self.open_branch and not env.in_triggerer:
            ids |= await self._open(api, env, ids, outcome)
            build = await BranchRunKind().follow(api, env, ids)
            ids["build"] = build.to_json()
        return outcome

    def watch(self, env: RunEnvironment, ids: Ids) -> Poll[DbtSyncOutcome]:
        return _KnownSync(ids["deployment_id"], ids["sync_job_id"], env.deadline).poll

    async def stop(self, api: Api, ids: Ids, *, seconds: float | None = None) -> bool:
        if "was_open" in ids:  # the sync itself is over
            return await close_again(api, ids)
        if "sync_job_id" not in ids or ids.get("followed"):
            return False
        cancel = cancel_dbt_sync(deployment_id=ids["deployment_id"], sync_job_id=ids["sync_job_id"])
        await api.call(cancel, deadline=api.clock() + seconds if seconds else None)
        return True

    async def read_event(
        self, api: Api, env: RunEnvironment, ids: Ids, event: dict[str, Any]
    ) -> tuple[DbtSyncOutcome | None, Ids]:
        if "opened" in ids:
            if "opened" not in event["run"]:
                return None, ids  # the event of the sync again; the build is waited for
            ids["build"] = event["outcome"]
            env = replace(env, deadline=api.clock() + SINGLE_POLL_SECONDS)
            try:
                return await super().follow(api, env, ids), ids
            except PlatformDeadlineError as error:
                if isinstance(error.__cause__, PlatformNotFoundError):
                    # The sync is complete, but its result no longer exists.
                    return _only_started(ids), ids
                raise error.__cause__ or error from None
        outcome = DbtSyncOutcome(**event["outcome"])
        if not (self.open_branch and ids["waits"]):
            return outcome, ids
        return None, {**ids, **await self._open(api, env, ids, outcome)}

    async def read(self, api: Api, ids: Ids, outcome: DbtSyncOutcome) -> dict[str, Any]:
        if ids["waits"]:
            await self._refuse_dropped_files(api, ids, outcome)
            say(api, f"dbt sync {outcome.sync_job_id} is complete")
        elif self._body().output_mode == "files":
            warn(
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
            "status": SUCCEEDED if ids["waits"] else None,
            "result": outcome.result,
        }
        if self.open_branch:
            build = Build(**ids["build"]) if ids.get("build") else Build(None)
            opened = await describe_opened(api, ids, build)
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
        env = replace(env, deadline=max(env.deadline, api.clock() + SINGLE_POLL_SECONDS))
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
            "submitted_at": api.clock(),
        }
        await api.notify(RunAccepted({**run}))
        say(
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
            for name, value in (("source", body.source), ("output_mode", body.output_mode))
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
            warn(
                api,
                f"The history of syncs does not show whether this tenant supports {unsure}. A "
                "tenant with an older release ignores it and syncs the dbt repository instead. "
                "Check what this sync writes.",
            )

    async def _refuse_dropped_files(self, api: Api, ids: Ids, outcome: DbtSyncOutcome) -> None:
        """Raise DbtSyncInputDroppedError if a sync should have kept files but wrote a branch. The
        service keeps files for an hour, so the task does not check a sync that may be older."""
        if (
            self._body().output_mode == "files"
            and api.clock() < ids["submitted_at"] + FILES_ARE_KEPT
        ):
            await refuse_dropped_files(api, ids["deployment_id"], outcome.sync_job_id)


def _only_started(ids: Ids) -> DbtSyncOutcome:
    """Return the outcome of a sync that the task does not wait for."""
    return DbtSyncOutcome(ids["sync_job_id"], ids["branch_name"], None)


async def _reports_status(api: Api, env: RunEnvironment, ids: Ids) -> bool:
    """Return whether the tenant reports the status of the started sync, although its history
    fails."""
    return await can_be_followed(
        api,
        ids["deployment_id"],
        ids["sync_job_id"],
        poll_interval=env.poll_interval,
        deadline=env.deadline,
    )
