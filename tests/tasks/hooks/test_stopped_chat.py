"""A chat of the hook that ends before its answer leaves no run behind."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.errors import PlatformDeadlineError
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


class _TimeLimit(BaseException):
    """What Airflow raises at `execution_timeout` is no `Exception` either."""


def _raise_time_limit(*_: object) -> None:
    raise _TimeLimit


def test_run_is_stopped_if_its_task_reaches_the_execution_timeout(
    platform_sandbox: Sandbox,
) -> None:
    platform_sandbox.control.set_breakpoint("mid_stream", after=4)
    before = signal.signal(signal.SIGALRM, _raise_time_limit)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    try:
        with pytest.raises(_TimeLimit):
            PlatformHook().chat("revenue by month")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [run.status for run in platform_sandbox.control.state().runs] == ["aborted"]


def test_run_is_stopped_after_the_timeout_of_the_call(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set_breakpoint("mid_stream", after=4)
    with pytest.raises(PlatformDeadlineError):
        PlatformHook().chat("revenue by month", timeout=1.0)
    assert [run.status for run in platform_sandbox.control.state().runs] == ["aborted"]
