"""What one try works with, and what it knows of its run. What it does first is in `_run_record`.

Unsent      nothing was sent
Sent        after `Intended` or `Identified`: sent, and not accepted yet
Confirmed   after `RunAccepted`: the service has accepted the run
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import count_resumable_job, retry_policy_action
from airflow_provider_platform.resources.run_log import EventLog, LogLine

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import BaseOperator, Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.platform_client import PlatformClient
    from airflow_provider_platform.operators._run_record import RecordKeeper
    from airflow_provider_platform.resources.run_kind import Ids, RunKind
    from airflow_provider_platform.resources.run_log import Log


@dataclass(frozen=True)
class Unsent:
    """Nothing was sent by this try."""


@dataclass(frozen=True)
class Sent:
    """The submission with these ids was sent, and the service has not accepted it yet. `named`: the
    ids suffice to find or stop it. `answered`: the service has reported something of it."""

    ids: Ids
    named: bool
    answered: bool = False


@dataclass(frozen=True)
class Confirmed:
    """The service has accepted the run."""

    ids: Ids


Submission = Unsent | Sent | Confirmed


@dataclass
class Attempt:
    """One opening of the connection by one try of a task."""

    task: BaseOperator
    context: Context
    client: PlatformClient
    config: PlatformConfig
    record: RecordKeeper
    kind: RunKind[Any, Any]
    cancel_on_kill: bool
    log: Log
    submission: Submission = Unsent()

    @cached_property
    def event_log(self) -> EventLog:
        """Logs what the work of this attempt reports."""
        return EventLog(self.log, self.client.secrets)

    @property
    def ids(self) -> Ids:
        """Return the ids of what was sent, {} if nothing was."""
        return {} if isinstance(self.submission, Unsent) else self.submission.ids

    @property
    def known(self) -> Ids | None:
        """Return the ids that suffice to find or stop the submission or the run."""
        match self.submission:
            case Sent(ids, named=True) | Confirmed(ids):
                return ids
            case _:
                return None

    @property
    def reattached(self) -> bool:
        """Whether an earlier try submitted the run."""
        return bool(self.ids.get("reattached"))

    @property
    def is_submitting(self) -> bool:
        """Whether something was sent of which the service has reported nothing yet."""
        match self.submission:
            case Confirmed(ids):
                return self.kind.is_submitting(ids)
            case Sent(answered=answered):
                return not answered
            case _:
                return False

    @property
    def now(self) -> float:
        """Unix time."""
        return self.client.clock()

    def warn(self, line: str) -> None:
        """Log a warning, without secrets."""
        LogLine(line, is_warning=True).write(self.log, self.client.secrets)

    def count(self, what: str) -> None:
        """Count what this try does with the record of an earlier one, if there is a store."""
        if self.record.store is not None:
            count_resumable_job(what, self.task, self.context.get("ti"))

    def is_last_try(self, error: Exception | None = None) -> bool:
        """Return whether nobody will find this try's run later: no retry is left, the task's retry
        policy refuses a retry after this error, or no record names the run (an Airflow without a
        task state store, or a store that did not store the record). A try that the policy
        reschedules goes on later and finds its run, also without a retry left."""
        counters = self.record.counters
        no_retry_left = (counters.try_number or 1) > counters.max_tries
        if error is None or self.known is None:
            return no_retry_left
        if not self.record.finds(self.known):
            return True
        action = retry_policy_action(self.task, error, self.context)
        return action == "fail" or (no_retry_left and action != "reschedule")
