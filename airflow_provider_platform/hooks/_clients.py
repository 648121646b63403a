"""The clients of one hook: one for synchronous code, and one for each event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from airflow_provider_platform.client.http.client import (
        AsyncPlatformClient,
        PlatformClient,
    )

    Keeper = AsyncGenerator[AsyncPlatformClient]


class HookClients:
    """Open clients when they are first needed, and close them.

    If nobody closes a client, it ends without a wait: the synchronous client when nothing refers to
    it any more, the client of an event loop together with that loop's asynchronous generators.
    """

    def __init__(self) -> None:
        self._sync: PlatformClient | None = None
        self._on_loops: dict[asyncio.AbstractEventLoop, tuple[AsyncPlatformClient, Keeper]] = {}

    def sync(self, make: Callable[[], PlatformClient]) -> PlatformClient:
        """Return the client of synchronous code. Threads share it."""
        with _opening:
            if self._sync is None or self._sync.closed:
                self._sync = make()
            return self._sync

    async def on_loop(self, make: Callable[[], AsyncPlatformClient]) -> AsyncPlatformClient:
        """Return the client of the running event loop."""
        loop = asyncio.get_running_loop()
        for ended in [known for known in self._on_loops if known.is_closed()]:
            del self._on_loops[ended]
        if loop not in self._on_loops or self._on_loops[loop][0].closed:
            keeper = _keep(make())
            client = await anext(keeper)
            self._on_loops[loop] = client, keeper
        return self._on_loops[loop][0]

    def close(self) -> None:
        """Close every client. The loop of a client closes that client a little later."""
        with _opening:
            client, self._sync = self._sync, None
        if client is not None:
            client.close()
        on_loops, self._on_loops = self._on_loops, {}
        for loop, (_, keeper) in on_loops.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_close_soon, loop, keeper)

    async def aclose(self) -> None:
        """Close every client, from an event loop."""
        _, keeper = self._on_loops.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()
        if self._sync is not None or self._on_loops:
            await asyncio.to_thread(self.close)


async def _keep(client: AsyncPlatformClient) -> Keeper:
    """Keep a client open until this generator is closed: by the hook, by the end of its loop, or by
    the garbage collector, which has the loop close it."""
    try:
        yield client
    finally:
        await client.aclose()


_closing: set[asyncio.Task[None]] = set()
"""An event loop keeps no strong reference to a task."""


def _close_soon(loop: asyncio.AbstractEventLoop, keeper: Keeper) -> None:
    task = loop.create_task(_close(keeper))
    _closing.add(task)
    task.add_done_callback(_closing.discard)


async def _close(keeper: Keeper) -> None:
    await keeper.aclose()


_opening = threading.RLock()
"""A signal handler may use a hook that is just being opened, a forked process has its own lock."""


def _after_fork() -> None:
    global _opening
    _opening = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
