"""A scheduled task that is run now: how its runs are read, and when one is over.

The platform's pages show three states of a run: running, then complete or failed. How the API
spells them, and how it names a run, is not documented. Both words of an end are accepted; any other
status means that the run is going on. There is no operation for one run: the list of runs is read.
"""

# ruff: noqa: ARG002 - a task need not use all that it is given
from __future__ import annotations

from airflow_provider_platform.client.errors import (
    FeatureNotActivatedError,
    PlatformApiError,
    PlatformError,
    PlatformNotFoundError,
    PlatformPermissionError,
    ScheduledTaskFailedError,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.management.missing_operations import (
    check_tenant,
    may_be_missing,
)
from airflow_provider_platform.client.management.scheduled_tasks.scheduled_tasks import (
    SINCE,
    list_scheduled_task_runs,
    list_scheduled_tasks,
    run_scheduled_task,
)
from airflow_provider_platform.client.management.shared.runs_now import (
    RunNow,
    RunNowOutcome,
    RunsNow,
    StartedRunNow,
    as_result,
)
from airflow_provider_platform.client.operations.paging import PageQuery, PageWalk
from airflow_provider_platform.client.operations.program import Program, call

_SUCCESSES = frozenset({"complete", "completed", "succeeded", "success"})


class ScheduledTaskRuns(RunsNow):
    """The runs of one scheduled task."""

    noun = "scheduled task"
    id_field = "scheduled_task_id"
    failure = ScheduledTaskFailedError
    reports_success = False
    runs_are_described = False

    def last_success(self, deadline: float | None = None) -> Program[str | None]:
        """None: no property of a task reports it."""
        yield from ()
        return None

    def newest_runs(self, deadline: float | None = None) -> Program[list[RunNow]]:
        """The runs that the service keeps, 50 at most."""
        return (yield from self._runs(deadline))

    def start(self, deadline: float | None = None) -> Program[StartedRunNow]:
        run = run_scheduled_task(task_id=self.subject_id, deployment_id=self.deployment_id)
        return (yield from call(run, deadline=deadline))

    def read(self, run_id: str) -> Program[RunNow]:
        runs = yield from self._runs(None, once=True)
        listed = next((run for run in runs if run.key == run_id), None)
        if listed is None:
            raise PlatformNotFoundError(
                "The list of runs does not contain this run, so its outcome is unknown. The "
                "service lists only the newest 50 runs. Look at the scheduled task in the "
                "platform.",
                where=f"run {quote_service(run_id)}, {self}",
                status=404,
            )
        return listed

    def has_ended(self, run: RunNow) -> bool:
        return run.word in _SUCCESSES or run.says_failure

    def outcome(self, run: RunNow, success_before: str | None) -> Program[RunNowOutcome | None]:
        yield from ()
        return RunNowOutcome(run.key, run.status, None, as_result(run))

    def explain(self, error: PlatformError, deadline: float | None) -> Program[PlatformError]:
        """What an error of the runs means: a refused feature, an older release, no such task."""
        if not (may_be_missing(error) or isinstance(error, PlatformPermissionError)):
            return error
        query = PageQuery.build(first=1)
        listing = list_scheduled_tasks(deployment_id=self.deployment_id, query=query)
        try:
            yield from call(listing, deadline=deadline)
        except PlatformPermissionError as failure:
            said = f": {failure.service_message}" if failure.service_message else ""
            return FeatureNotActivatedError(
                f"The service refuses all scheduled tasks (403{said}). They are not activated for "
                "this account, or the credential has no access to the deployment.",
                where=self,
            )
        except PlatformError as failure:
            if not may_be_missing(failure):
                return error
        else:
            if isinstance(error, PlatformApiError) and error.status == 404:
                return PlatformNotFoundError(
                    "No scheduled task has this id. Check scheduled_task_id.",
                    where=self,
                    status=404,
                )
            return error
        yield from check_tenant(self.deployment_id, error, deadline)
        return FeatureNotActivatedError(
            f"This tenant has no scheduled tasks. They need release {SINCE} or later.", where=self
        )

    def _runs(self, deadline: float | None, *, once: bool = False) -> Program[list[RunNow]]:
        walk = PageWalk(
            list_scheduled_task_runs(task_id=self.subject_id, deployment_id=self.deployment_id)
        )
        runs: list[RunNow] = []
        while walk.operation is not None:
            runs += walk.add_page((yield from call(walk.operation, once=once, deadline=deadline)))
        return runs
