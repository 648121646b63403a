"""Fair scheduling of waits that begin together on one event loop.

In each round of the loop, waits start for some milliseconds only, and the loop does all other work
in between. Otherwise a thousand waits that begin together would hold up the heartbeat and every
other trigger of a triggerer for seconds.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

TURN_SECONDS = 0.005
"""Seconds of starts in one round of a loop."""
_rounds: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""When the round of a loop began."""


async def yield_turn() -> None:
    """Wait until this round of the loop has time for a start. Turns come in the order of the calls.
    After its turn, the caller should run only for milliseconds until it waits again."""
    loop = asyncio.get_running_loop()
    began = _rounds.get(loop)
    while began is not None and loop.time() - began >= TURN_SECONDS:
        await asyncio.sleep(0)
        began = _rounds.get(loop)
    if began is None:
        _rounds[loop] = loop.time()
        loop.call_soon(_rounds.pop, loop, None)
