"""Starts a dbt sync once, and looks a start up whose answer was lost.

A start is never repeated blindly, because every start runs a sync and makes a branch. What the
service can tell of a started sync depends on its release: the history list shows whether it can
tell anything at all.
"""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformTransportError,
)
from airflow_provider_platform.client.http.retry import may_have_been_processed
from airflow_provider_platform.client.management.dbt_sync.syncs import (
    DbtSyncQuery,
    DbtSyncResponse,
    DbtSyncRun,
    StartDbtSyncInput,
    list_dbt_syncs,
    start_dbt_sync,
)
from airflow_provider_platform.client.operations.program import Program, Sleep, call

HISTORY_PAGE = 50

_NO_HISTORY_STATUSES = frozenset({403, 404, 405})


def read_history(
    deployment_id: int, *, once: bool = False, deadline: float | None = None
) -> Program[list[DbtSyncRun] | None]:
    """The newest syncs, or None where the service has no history, and so no status, operation."""
    query = DbtSyncQuery.build(first=HISTORY_PAGE)
    operation = list_dbt_syncs(deployment_id=deployment_id, query=query)
    try:
        page = yield from call(operation, once=once, deadline=deadline)
    except PlatformAddressError:
        return None
    except PlatformApiError as error:
        if error.status in _NO_HISTORY_STATUSES:
            return None
        raise
    return page.rows


def start(
    deployment_id: int,
    body: StartDbtSyncInput,
    *,
    known: Collection[str] | None,
    deadline: float | None = None,
) -> Program[DbtSyncResponse]:
    """Start one sync. `known` are the ids in the history before, None where there is no history;
    neither a refused start nor a look-up is repeated beyond the deadline (Unix time).

    A lost answer is looked up in the history. Raises PlatformOutcomeUnknownError where that
    cannot tell whether the sync was started.
    """
    try:
        operation = start_dbt_sync(deployment_id=deployment_id, body=body)
        return (yield from call(operation, deadline=deadline))
    except PlatformError as error:
        if not may_have_been_processed(error):
            raise
        cause = error
    try:
        found = yield from find_started(deployment_id, body, known=known, deadline=deadline)
    except PlatformOutcomeUnknownError:
        raise
    except PlatformError as error:
        # Not the error itself: it speaks of the look and not of the start.
        raise PlatformTransportError(
            f"{cause.message} Whether it began a sync could not be looked up ({error.message}). A "
            "retry looks it up."
        ) from error
    if found is None:
        raise PlatformTransportError(
            f"{cause.message} The history shows no new sync; a retry starts one."
        ) from cause
    return found


def find_started(
    deployment_id: int,
    body: StartDbtSyncInput,
    *,
    known: Collection[str] | None,
    deadline: float | None = None,
) -> Program[DbtSyncResponse | None]:
    """The sync that a lost start has begun, None where it began none. A history that fails is not
    read again beyond the deadline (Unix time).

    Raises PlatformOutcomeUnknownError where there is no history, or where it shows several new
    syncs that could be this one.
    """
    for poll in range(2):
        history = None
        if known is not None:
            history = yield from read_history(deployment_id, deadline=deadline)
        if history is None or known is None:
            raise PlatformOutcomeUnknownError(
                f"dbt sync of deployment {deployment_id}: the answer to the start was lost, and "
                "this tenant has no history to look it up in. A sync may be running. Check the "
                "deployment's branches, then clear the task to start a sync."
            )
        new = [run for run in history if run.sync_job_id not in {"", *known}]
        new = [run for run in new if _matches(run, body)]
        if len(new) > 1:
            ids = ", ".join(run.sync_job_id for run in new)
            raise PlatformOutcomeUnknownError(
                f"dbt sync of deployment {deployment_id}: the answer to the start was lost, and "
                f"several new syncs could be this one ({ids}). Check them, then clear the task to "
                "start another."
            )
        if new:
            run = new[0]
            return DbtSyncResponse.model_validate(
                {"syncJobId": run.sync_job_id, "branchName": run.branch_name}
            )
        if poll == 0:
            yield Sleep(2.0)
    return None


def _matches(run: DbtSyncRun, body: StartDbtSyncInput) -> bool:
    branch_fits = body.branch_name is None or run.branch_name in (None, body.branch_name)
    ref_fits = body.ref is None or run.git_ref in (None, body.ref)
    return branch_fits and ref_fits and run.trigger in (None, "api", "unknown", "manual")
