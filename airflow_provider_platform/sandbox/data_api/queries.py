"""Queries that take their time: what a request that comes too early is told, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.server_state import ServerState

FORGOTTEN_AFTER = 60.0
"""Seconds after which a query that nobody asks for again is dropped from the queue."""


class RunningQueries:
    """When each query began, and when it was asked for last, by what names it."""

    def __init__(self) -> None:
        self._times: dict[tuple[object, ...], tuple[float, float]] = {}

    async def done(
        self, server: ServerState, query: tuple[object, ...], *, comes_again: bool
    ) -> bool:
        """Wait until the query has its result; False where the caller, who ``comes_again``, has
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
