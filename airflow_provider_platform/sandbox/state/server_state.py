"""The state of the sandbox's server: everything that a reset discards.

Its clock is real time, which tests can move forward instead of waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from airflow_provider_platform.sandbox.faults import ArmedFaults, Breakpoints
from airflow_provider_platform.sandbox.state.credentials import Credentials
from airflow_provider_platform.sandbox.state.journal import Journal
from airflow_provider_platform.sandbox.state.settings import Settings
from airflow_provider_platform.sandbox.state.warehouse import Warehouse


class Clock:
    """The clock for lifetimes and timestamps of resources. The journal uses real time."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        """Unix time in seconds."""
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def stamp(self, at: float | None = None) -> str:
        """Return a time (default: now) as the management API writes it."""
        return iso(self.now() if at is None else at)


def iso(at: float) -> str:
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


S = TypeVar("S")


class ServerState:
    """Everything that the sandbox knows between two resets. Each part keeps its objects in a store
    of its own type."""

    def __init__(
        self, base_url: str, credentials: Credentials, settings: Settings, warehouse: Warehouse
    ) -> None:
        self.base_url = base_url
        self.credentials = credentials
        self.settings = settings
        self.warehouse = warehouse
        self.clock = Clock()
        self.journal = Journal()
        self.faults = ArmedFaults()
        self.breakpoints = Breakpoints(self.journal.changed)
        self._stores: dict[type[Any], Any] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def store(self, kind: type[S]) -> S:
        """Return the store of this type. It is created with its samples at the first use."""
        if kind not in self._stores:
            self._stores[kind] = kind()
        store: S = self._stores[kind]
        return store

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` independently of the request that started it."""
        task = asyncio.get_running_loop().create_task(work)
        self.adopt(task)
        return task

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Cancel ``task`` when this state is closed."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End everything that is running."""
        self.faults.clear()
        self.breakpoints.release()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.journal.changed()
