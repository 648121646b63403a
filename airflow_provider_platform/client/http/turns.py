"""Taking turns on an event loop: what a thousand waits do at their start is done one after the
other, so that the loop sees to everything else in between."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = (
    WeakKeyDictionary()
)


async def turn() -> None:
    """Wait for a turn: each round of the loop has one, in the order in which they were asked for.
    Whoever has one should take milliseconds until it waits for something."""
    loop = asyncio.get_running_loop()
    waiting = _waiting.setdefault(loop, deque())
    mine = loop.create_future()
    waiting.append(mine)
    if len(waiting) == 1:
        loop.call_soon(_give, loop, waiting)
    await mine


def _give(loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
    while waiting:
        first = waiting.popleft()
        if not first.done():
            first.set_result(None)
            break
    if waiting:
        loop.call_soon(_give, loop, waiting)
