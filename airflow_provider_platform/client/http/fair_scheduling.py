"""Fair scheduling on an event loop: a thousand waits that start together do their work at the start
one after the other, and the loop does all other work in between."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = (
    WeakKeyDictionary()
)


async def yield_turn() -> None:
    """Wait for a turn. Each round of the loop gives one turn, first come, first served. The caller
    should take milliseconds until it waits for something."""
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
