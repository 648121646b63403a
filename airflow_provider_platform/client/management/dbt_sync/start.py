"""Starts a dbt sync once, and finds the sync of a start whose response was lost.

A start is never repeated blindly, because every start runs a sync and makes a branch. How much the
service reports about a started sync depends on its release. The history list shows whether it
reports anything. A tenant silently ignores arguments that its release does not know, so the started
sync is compared with the request.

If the response to a start was lost, the start began a sync only if the history has one that fits in
all respects: branch, ref, source, trigger, and a start time near the intent. A sync that fits but
began at another time may be somebody else's, and so may a sync that the service does not describe
well enough. Then the outcome is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from airflow_provider_platform.client.errors import (
    DbtSyncInputDroppedError,
    PlatformAddressError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformPermissionError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.retry import is_transient, may_have_been_processed
from airflow_provider_platform.client.management.dbt_sync.syncs import (
    RUNNING,
    DbtSyncResponse,
    DbtSyncRun,
    StartDbtSyncInput,
    get_dbt_sync_status,
    list_dbt_sync_files,
    list_dbt_syncs,
    start_dbt_sync,
)
from airflow_provider_platform.client.management.missing_operations import may_be_missing
from airflow_provider_platform.client.management.shared.lost_start import find_lost_start
from airflow_provider_platform.client.operations.models import Timestamp
from airflow_provider_platform.client.operations.paging import PageWalk
from airflow_provider_platform.client.polling.failure_budget import NOT_FOUND_GRACE

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

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


async def can_be_followed(
    api: Api,
    deployment_id: int,
    sync_job_id: str,
    clock: Clock,
    *,
    poll_interval: float,
    deadline: float | None = None,
) -> bool:
    """Return whether the status of a sync that was just started can be read within a minute. Used
    if the history did not show whether the tenant reports it. Raises
    PlatformAuthenticationError."""
    until = clock() + NOT_FOUND_GRACE
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
        if clock() >= until:
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
    where = f"dbt sync {quote_service(started.sync_job_id)}, deployment {deployment_id}"
    branch = quote_service(started.branch_name or "unknown")
    if drops_ref(body.ref, body, started.branch_name):
        raise DbtSyncInputDroppedError(
            f"The tenant ignored ref={body.ref!r}: releases before v0.4.0 do not support ref. The "
            "tenant syncs the ref that is set in the platform's dbt integration, into branch "
            f"{branch}. Delete that branch. Then set the ref in the platform's dbt integration, or "
            "leave ref out.",
            where=where,
        )
    if body.source != "manifest":
        return None
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
