"""Slow queries: when a request gets "Continue wait", and when it gets the result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.server_state import ServerState

FORGOTTEN_AFTER = 60.0
"""Seconds after which a query is dropped from the queue if no request asks for it."""


class RunningQueries:
    """When each query began and when it was last requested, by its key."""

    def __init__(self) -> None:
        self._times: dict[tuple[object, ...], tuple[float, float]] = {}

    async def done(
        self, server: ServerState, query: tuple[object, ...], *, comes_again: bool
    ) -> bool:
        """Wait until the query has its result. Return False if a caller that ``comes_again`` has
        waited long enough for one request."""
        now = server.clock.now()
        began, asked = self._times.get(query, (now, now))
        if now - asked > FORGOTTEN_AFTER:
            began = now
        self._times[query] = began, now
        until = now + server.settings.query_wait
        while (now := server.clock.now()) < began + server.settings.query_seconds:
            if comes_again and now >= until:
                self._times[query] = began, now
                return False
            await asyncio.sleep(0.01)
        return True
