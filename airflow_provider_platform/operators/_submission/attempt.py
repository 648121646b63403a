"""What one try knows of its remote run, while it has the connection open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.operations.log_events import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.http.client import PlatformClient
    from airflow_provider_platform.client.operations.log_events import Log
    from airflow_provider_platform.operators._submission.record import Submission

Ids = dict[str, Any]
"""What names a run at the service, as plain JSON; `submitted_at` is in Unix time."""


def _nothing() -> None:
    return None


@dataclass
class Attempt:
    """One opening of the connection by one try."""

    context: Context
    client: PlatformClient
    config: PlatformConfig
    submission: Submission
    log: Log
    naming: Callable[[], Ids | None] = _nothing
    """Names a submission that the service has not accepted yet, as far as it can by now."""
    ids: Ids | None = None
    """Names the run that the service has accepted."""
    reattached: bool = False

    @cached_property
    def event_log(self) -> EventLog:
        """Logs what the programs of this attempt tell."""
        return EventLog(self.log, self.client.secrets)

    @property
    def known(self) -> Ids | None:
        """What names the submission or the run by now."""
        return self.ids or self.naming()

    @property
    def now(self) -> float:
        """Unix time."""
        return self.client.clock()

    def forget(self) -> None:
        """Begin again with a submission of this try's own."""
        self.naming, self.ids, self.reattached = _nothing, None, False
