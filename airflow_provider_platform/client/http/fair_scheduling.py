"""Fair scheduling on an event loop: if a thousand waits start together, they do their first work
one after another, and the loop does all other work in between."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = (
    WeakKeyDictionary()
)


async def yield_turn() -> None:
    """Wait for a turn. Each round of the loop gives one turn, in the order of the calls. After its
    turn, the caller should run only for milliseconds until it waits again."""
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
