"""A cancelled call does no harm to the client that made it."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.api import Api
from airflow_provider_platform.client.operation import raw_operation
from airflow_provider_platform.client.platform_client import AsyncPlatformClient
from tests.support.wire.calls import GET, config_for
from tests.support.wire.keep_alive_server import keeping
from tests.wire.test_certificates import authority, bundle, certified

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from pathlib import Path

    import trustme

__all__ = ["authority", "bundle"]

WAIT = 10.0
LATER = raw_operation("GET", "/v1/later")


async def get_in_this_task(api: Any) -> Any:
    """A call whose request has no task of its own, so that each of its steps is one of the call."""
    return await Api.call.__wrapped__(api, GET)  # type: ignore[attr-defined]


class CancelledAtStep:
    """Awaits a coroutine and has the task cancelled at one of its steps, and the ones after it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: int, times: int) -> None:
        self._coroutine = coroutine
        self._steps = range(first, first + times)
        self.came = False
        """Whether the coroutine had so many steps."""

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        proceed: Callable[[], Any] = partial(next, inner)
        for step in count():
            try:
                waited_for = proceed()
            except StopIteration as end:
                return end.value
            if step in self._steps:
                self.came = True
                loop.call_soon(task.cancel)
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001 - the coroutine sees what the task does
                proceed = partial(inner.throw, error)
            else:
                proceed = partial(next, inner)
        raise AssertionError("a coroutine ends")


@pytest.mark.parametrize("cancels", [1, 2])
@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "TLS"])
def test_client_works_after_a_cancelled_call_and_then_closes_its_connections(
    by_tls: bool, used_before: bool, cancels: int, authority: trustme.CA, bundle: Path
) -> None:
    """At whichever step the call is cancelled, and however often."""

    async def cancelled_at(config: Any, step: int, server: Any) -> bool:
        async with AsyncPlatformClient(config) as client:
            if used_before:
                await client.run(GET)
            call = CancelledAtStep(client.run(get_in_this_task), step, cancels)

            async def run() -> Any:
                return await call

            await asyncio.wait({asyncio.create_task(run())})
            assert await client.run(LATER) == [1]
            return call.came

    with keeping(tls=certified(authority) if by_tls else None) as server:
        config = config_for(server, ca_bundle=str(bundle) if by_tls else None)
        steps = next(
            step for step in count() if not asyncio.run(cancelled_at(config, step, server))
        )
        gc.collect()
        assert all(one.ended.wait(WAIT) for one in server.connections)
    assert steps > 3
