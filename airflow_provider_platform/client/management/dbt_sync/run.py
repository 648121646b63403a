"""Waits for the end of a dbt sync that has been started. The status shows the progress; only the
history shows a cancelled sync.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    DbtSyncCancelledError,
    DbtSyncFailedError,
    PlatformAddressError,
    PlatformApiError,
    PlatformDeadlineError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.retry import is_transient
from airflow_provider_platform.client.management.dbt_sync.start import read_history
from airflow_provider_platform.client.management.dbt_sync.syncs import (
    CANCELLED,
    FAILED,
    TERMINAL_STATUSES,
    UNKNOWN,
    get_dbt_sync_result,
    get_dbt_sync_status,
)
from airflow_provider_platform.client.polling.poll_until import PollLimits, poll_until_over

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

HISTORY_INTERVAL = 30.0
UNKNOWN_READS = 3
"""How often in a row the history may say that it does not know the outcome, while the status does
not change. Then the outcome is lost."""
UNKNOWN_PAUSE = 10.0
"""Seconds between these reads of a single poll."""
RESULT_BUDGET = 30.0


@dataclass(frozen=True)
class DbtSyncStage:
    """The sync has reached another status, or reports new progress."""

    sync_job_id: str
    status: str
    message: str = ""

    def __str__(self) -> str:
        said = f", {self.message}" if self.message else ""
        return quote_service(f"Sync status: {self.status}{said} (dbt sync {self.sync_job_id})")


@dataclass(frozen=True)
class DbtSyncOutcome:
    """A completed sync: its branch (None if it is not known) and its result as plain JSON."""

    sync_job_id: str
    branch_name: str | None
    result: dict[str, Any] | None


async def wait(
    api: Api,
    deployment_id: int,
    sync_job_id: str,
    limits: PollLimits,
    clock: Clock,
    *,
    poll_once: bool = False,
) -> DbtSyncOutcome | None:
    """Wait until the sync ends. With `poll_once`, return None if it has not ended yet.

    Notifies of DbtSyncStage. Raises DbtSyncFailedError, DbtSyncCancelledError,
    PlatformDeadlineError, or the sixth transient failure in a row.
    """
    sync = _KnownSync(deployment_id, sync_job_id)
    due = clock() + (0.0 if poll_once else HISTORY_INTERVAL)
    failure: PlatformError | None = None

    async def read_once(api: Api) -> tuple[DbtSyncOutcome | None] | None:
        """Return the outcome of a sync that has ended; with `poll_once`, also None if it has not
        ended."""
        nonlocal due, failure
        moved, failure = False, None
        try:
            moved = await sync.read_status(api, limits.deadline)
        except PlatformError as error:
            if not (is_transient(error) or isinstance(error, PlatformNotFoundError)):
                raise
            failure = error
        if moved:
            due = clock() + HISTORY_INTERVAL
        elif clock() >= due and not sync.ended:
            due = clock() + HISTORY_INTERVAL
            await sync.read_history(api)
        if sync.ended:
            return (await sync.outcome(api, clock),)
        if failure is not None:
            raise failure
        return (None,) if poll_once else None

    try:
        outcome: tuple[DbtSyncOutcome | None] | None = await poll_until_over(
            api, read_once, limits, clock, grace=True
        )
    except PlatformDeadlineError:
        if poll_once and failure is not None:
            raise failure from None
        raise
    if outcome is not None:
        return outcome[0]
    raise PlatformDeadlineError(
        "The dbt sync did not end before its deadline. Its last status was "
        f"{sync.status or 'unknown'}.",
        where=sync,
    )


async def poll(
    api: Api, deployment_id: int, sync_job_id: str, clock: Clock
) -> DbtSyncOutcome | None:
    """Read the status of a sync and the history once. Return None if the sync has not ended.
    Notifies of DbtSyncStage. Raises the errors of `wait`, and any failure of the requests.
    """
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
    return await sync.outcome(api, clock) if sync.ended else None


class _KnownSync:
    """What is known about one sync."""

    def __init__(self, deployment_id: int, sync_job_id: str) -> None:
        self._deployment_id = deployment_id
        self._sync_job_id = sync_job_id
        self._get_status = get_dbt_sync_status(deployment_id=deployment_id, sync_job_id=sync_job_id)
        self._told: tuple[str | None, str] | None = None
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

    async def read_status(self, api: Api, deadline: float | None = None) -> bool:
        """Read the status, and return whether it changed."""
        answer = await api.call(self._get_status, once=True, deadline=deadline)
        moved = answer.status != self.status
        if moved:
            self._unknown_reads = 0
        self.status = answer.status
        self._error = answer.words("error") or self._error
        message = (answer.progress.message if answer.progress else None) or ""
        if self._told != (answer.status, message):
            self._told = (answer.status, message)
            await api.notify(DbtSyncStage(self._sync_job_id, answer.status or "", message))
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

    async def outcome(self, api: Api, clock: Clock) -> DbtSyncOutcome:
        """Return the result of a sync that has ended, or raise its error."""
        said = quote_service(self._error or "no reason given").removesuffix(".")
        if self.status == FAILED:
            raise DbtSyncFailedError(
                f"The dbt sync failed: {said}. For its log, call GET /v1/deployments/"
                f"{self._deployment_id}/dbt-sync/{self._sync_job_id}/logs, for example with "
                "PlatformApiOperator.",
                where=self,
            )
        if self.status == CANCELLED:
            raise DbtSyncCancelledError(
                "The dbt sync was cancelled, for example by a user or by another task.", where=self
            )
        result = await self._read_result(api, clock)
        return DbtSyncOutcome(self._sync_job_id, self._branch_name, result)

    async def _read_result(self, api: Api, clock: Clock) -> dict[str, Any] | None:
        """Read the result, which can come some time after the end. Without a result the sync has
        still succeeded."""
        until = clock() + RESULT_BUDGET
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
            if clock() >= until:
                return None
            await api.sleep(2.0)
