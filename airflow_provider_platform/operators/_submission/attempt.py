"""What one try knows of its remote run, while its connection is open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import retry_policy_action
from airflow_provider_platform.client.operations.event_logger import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform._airflow import BaseOperator, Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.http.client import PlatformClient
    from airflow_provider_platform.client.operations.event_logger import Log
    from airflow_provider_platform.operators._submission.record import Submission
    from airflow_provider_platform.runs.run_kind import Ids, RunKind


def _nothing() -> None:
    return None


@dataclass
class Attempt:
    """One opening of the connection by one try of a task."""

    task: BaseOperator
    context: Context
    client: PlatformClient
    config: PlatformConfig
    submission: Submission
    kind: RunKind[Any]
    cancel_on_kill: bool
    log: Log
    name_submission: Callable[[], Ids | None] = _nothing
    """Names a submission that the service has not accepted yet, if anything does by now."""
    ids: Ids | None = None
    """Names the run that the service has accepted."""
    reattached: bool = False

    @cached_property
    def event_log(self) -> EventLog:
        """Logs what the work of this attempt reports."""
        return EventLog(self.log, self.client.secrets)

    @property
    def known(self) -> Ids | None:
        """Return the ids that name the submission or the run now."""
        return self.ids or self.name_submission()

    @property
    def now(self) -> float:
        """Unix time."""
        return self.client.clock()

    def forget(self) -> None:
        """Start again with a submission of this try's own."""
        self.name_submission, self.ids, self.reattached = _nothing, None, False

    def is_last_try(self, error: Exception | None = None) -> bool:
        """Return whether nobody will find this try's run later: no retry is left, the task's retry
        policy refuses a retry after this error, or no record names the run (an Airflow without a
        task state store, or a store that did not store the record). A try that the policy
        reschedules goes on later and finds its run, also without a retry left."""
        ti = self.context.get("ti")
        no_retry_left = int(getattr(ti, "try_number", 1) or 1) > int(
            getattr(ti, "max_tries", 0) or 0
        )
        if error is None or self.known is None:
            return no_retry_left
        if not self.submission.finds(self.known):
            return True
        action = retry_policy_action(self.task, error, self.context)
        return action == "fail" or (no_retry_left and action != "reschedule")
