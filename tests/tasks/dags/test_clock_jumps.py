"""A clock that changes while a task waits neither ends nor prolongs the wait."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.sandbox.server import Sandbox

    Jump = Callable[[], None]

pytestmark = pytest.mark.exhaustive

A_DAY = 86_400.0


@pytest.fixture(params=[A_DAY, -A_DAY], ids=["forward", "backward"])
def jump_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Jump:
    """`jump()` sets the wall clock of this process by a day."""
    real = time.time

    def jump_clock() -> None:
        monkeypatch.setattr(time, "time", lambda: real() + request.param)

    return jump_clock


@contextmanager
def under_way(sandbox: Sandbox, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The future of a call in another thread; the sandbox holds nothing when the block ends."""
    with ThreadPoolExecutor() as pool:
        try:
            yield pool.submit(function, *args, **kwargs)
        finally:
            sandbox.control.release()


def test_chat_ends_normally_after_a_clock_jump(platform_sandbox: Sandbox, jump_clock: Jump) -> None:
    control = platform_sandbox.control
    control.set_breakpoint("mid_stream")
    chat = PlatformHook().chat
    with under_way(platform_sandbox, chat, "revenue by country", timeout=60) as asked:
        control.wait_for_breakpoint("mid_stream")
        jump_clock()
        control.release()
        assert asked.result().answer
    assert [run.status for run in control.state().runs] == ["finished"]
