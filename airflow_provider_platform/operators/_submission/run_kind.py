"""What a kind of run says of itself: how it is submitted, looked up, followed and read.

An operator that waits for a run answers these questions, and how it is stopped
(`KillableOperator.stop`). When they are asked is the business of `remote_run`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from airflow_provider_platform.operators._submission.kills import KillableOperator

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import BaseTrigger
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.operators._submission.attempt import Attempt, Ids

OutcomeT = TypeVar("OutcomeT")
"""What a run that is over has given."""


class RunKind(KillableOperator, Generic[OutcomeT]):
    """Base of `RemoteRunOperator`."""

    event_names: ClassVar[str]
    """Which of the ids tells one run from another."""

    @abstractmethod
    def key_of(self, config: PlatformConfig) -> str:
        """The fingerprint of address, identity and input."""

    @abstractmethod
    def submit(self, attempt: Attempt, *, ids: Ids | None, until_end: bool) -> OutcomeT | None:
        """Start the run, with the ids of a lost submission where there was one.

        Tells it before (`announce`) and after (`accepted`). Returns what came of it where the run
        is already over, else None; with `until_end` it may stay until the end.
        """

    @abstractmethod
    def recover(self, attempt: Attempt, ids: Ids) -> tuple[bool, Ids]:
        """Whether a submission whose outcome was lost has been processed, and its ids by now.
        Raises PlatformOutcomeUnknownError where nobody can tell."""

    @abstractmethod
    def follow(self, attempt: Attempt, ids: Ids) -> OutcomeT:
        """Wait for the run on the worker."""

    @abstractmethod
    def poll_once(self, attempt: Attempt, ids: Ids) -> OutcomeT | None:
        """What the run has given, None where it is not over now."""

    @abstractmethod
    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        """The trigger that waits for the run until the deadline (Unix time)."""

    @abstractmethod
    def read_event(self, attempt: Attempt, ids: Ids, event: dict[str, Any]) -> OutcomeT | None:
        """What the trigger brought; None where the run must be followed further (ids may have
        changed)."""

    @abstractmethod
    def finish(self, attempt: Attempt, ids: Ids, outcome: OutcomeT) -> Any:
        """The task's result as plain JSON. Raises PlatformError where the outcome is a failure."""

    def resume(self, attempt: Attempt, ids: Ids) -> Ids:
        """The ids with which a run that an earlier try has started is followed; what the run needs
        from this try is done here, if a repeat of it does no harm."""
        return ids

    def take(self, attempt: Attempt, ids: Ids) -> OutcomeT:
        """The outcome of a run that an earlier try has seen to its end."""
        return self.follow(attempt, ids)
