"""How many failures in a row a wait tolerates before it gives up.

A wait for something at the service outlives short outages: five transient failures in a row, and
for a minute that what was just begun is not known or not served yet. The count is plain data, so
that it can go with the wait from one process to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_platform.client.errors import (
    BranchNotServedError,
    PlatformError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.http.retry import is_transient, pause_after

TOLERATED_FAILURES = 5
NOT_FOUND_GRACE = 60.0
"""Seconds that something may be unknown to the service after its start, or that a branch may be
without a build."""
LONGEST_PAUSE = 60.0


@dataclass
class FailureBudget:
    """The failures of one wait so far: `failures` in a row, `missing_since` in Unix time."""

    failures: int = 0
    missing_since: float | None = None

    def tolerates(self, error: PlatformError, now: float, *, grace: bool = False) -> bool:
        """Count a failed poll; whether the wait goes on. With `grace`, a 404 is tolerated for a
        minute; a branch that nothing serves always is."""
        not_served = isinstance(error, BranchNotServedError)
        if not_served:
            self.failures = 0  # the service did answer
        if not_served or (grace and isinstance(error, PlatformNotFoundError)):
            self.missing_since = now if self.missing_since is None else self.missing_since
            return now - self.missing_since < NOT_FOUND_GRACE
        if not is_transient(error):
            return False
        self.failures += 1
        return self.failures <= TOLERATED_FAILURES

    def clear(self) -> None:
        """A poll succeeded."""
        self.failures, self.missing_since = 0, None

    def pause(self, interval: float, error: PlatformError | None) -> float:
        """Seconds until the next poll: the interval, longer while polls fail."""
        if self.failures == 0 or error is None:
            return interval
        grown = min(LONGEST_PAUSE, interval * 2.0 ** (self.failures - 1))
        return max(grown, pause_after(error, 1))
