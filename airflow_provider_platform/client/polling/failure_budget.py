"""How many failures in a row a wait tolerates before it gives up.

A wait tolerates short outages: five transient failures in a row. For a minute it also tolerates
that the service does not know or serve something that was just started. The count is plain data, so
that it can move with the wait from one process to the next.
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
"""Seconds for which the service may not know something after its start, or a branch may have no
build."""
LONGEST_PAUSE = 60.0


@dataclass
class FailureBudget:
    """The failures of one wait so far: `failures` in a row, `missing_since` in Unix time."""

    failures: int = 0
    missing_since: float | None = None

    def tolerates(self, error: PlatformError, now: float, *, grace: bool = False) -> bool:
        """Count a failed poll, and return whether the wait continues. With `grace`, a 404 is
        tolerated for a minute. A branch that the service does not serve is always tolerated for a
        minute."""
        not_served = isinstance(error, BranchNotServedError)
        if not_served:
            self.failures = 0  # the service answered
        if not_served or (grace and isinstance(error, PlatformNotFoundError)):
            self.missing_since = now if self.missing_since is None else self.missing_since
            return now - self.missing_since < NOT_FOUND_GRACE
        if not is_transient(error):
            return False
        self.failures += 1
        return self.failures <= TOLERATED_FAILURES

    def clear(self) -> None:
        """Forget the failures after a successful poll."""
        self.failures, self.missing_since = 0, None

    def pause(self, interval: float, error: PlatformError | None) -> float:
        """Return the seconds until the next poll: the interval, and longer while polls fail."""
        if self.failures == 0 or error is None:
            return interval
        grown = min(LONGEST_PAUSE, interval * 2.0 ** (self.failures - 1))
        return max(grown, pause_after(error, 1))
