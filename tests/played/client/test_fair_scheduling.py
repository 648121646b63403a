"""Many waits of one process: polls are spread over the interval, starts over the loop's rounds."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.api import Api, ClientState
from airflow_provider_platform.client.polling import first_pause, poll_pause
from airflow_provider_platform.hooks import fair_scheduling
from airflow_provider_platform.hooks.fair_scheduling import yield_turn
from airflow_provider_platform.resources.dbt_sync import DbtSyncRunKind
from airflow_provider_platform.resources.exports import ExportRunKind
from airflow_provider_platform.resources.run_kind import RunEnvironment
from tests.support.fakes.effects import API, Call, Sleep, api_with
from tests.support.wire.calls import config_for

if TYPE_CHECKING:
    from tests.support.fakes.effects import Program

INTERVAL = 5.0
MANY = 2000


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was slept in this thread, which really does not sleep. Other threads of the process
    may have event loops too."""
    seconds: list[float] = []
    really, here = asyncio.sleep, threading.get_ident()

    async def sleep(delay: float) -> None:
        if threading.get_ident() == here:
            seconds.append(delay)
        else:
            await really(delay)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    random.seed(7)
    return seconds


def perform(effect: Sleep, times: int = MANY) -> None:
    async def run() -> None:
        api = Api(ClientState(config_for("http://127.0.0.1:9")))
        for _ in range(times):
            await api.sleep(effect.shortest, effect.longest)

    asyncio.run(run())


def only(program: Program[None]) -> Sleep:
    effect = program.send(None)
    with pytest.raises(StopIteration):
        program.send(None)
    assert isinstance(effect, Sleep)
    return effect


def in_tenths(seconds: list[float], start: float) -> list[int]:
    """How many of them fall in each tenth of an interval that begins at `start`."""
    tenths = [0] * 10
    for one in seconds:
        tenths[int((one - start) / INTERVAL * 10)] += 1
    return tenths


def test_polls_that_begin_together_are_spread_over_the_interval(slept: list[float]) -> None:
    perform(only(poll_pause(API, INTERVAL, 3600.0)))
    assert sum(slept) / MANY == pytest.approx(INTERVAL, rel=0.02)
    assert all(0.6 < share * 10 / MANY < 1.4 for share in in_tenths(slept, INTERVAL / 2))


def test_first_polls_cover_the_interval(slept: list[float]) -> None:
    perform(only(first_pause(API, INTERVAL, 3600.0)))
    assert all(0.6 < share * 10 / MANY < 1.4 for share in in_tenths(slept, 0.0))


@given(st.floats(0.0, 1e4), st.floats(-10.0, 1e4))
def test_spread_pauses_never_exceed_the_deadline(seconds: float, left: float) -> None:
    for program in (poll_pause(API, seconds, left), first_pause(API, seconds, left)):
        effect = only(program)
        assert effect.shortest >= 0
        assert effect.longest <= max(0.0, left)


def test_pause_that_is_not_a_poll_is_exact(slept: list[float]) -> None:
    perform(Sleep(3.0, 3.0), 3)
    assert slept == [3.0] * 3


def waits(*, stagger_first_poll: bool) -> list[Program[Any]]:
    def clock() -> float:
        return 1_800_000_000.0

    env = RunEnvironment(clock() + 3600, INTERVAL, in_triggerer=stagger_first_poll)
    run = {"deployment_id": 1, "submitted_at": clock()}
    api = api_with(clock)
    return [
        DbtSyncRunKind().follow(api, env, {**run, "sync_job_id": "job", "waits": True}),
        ExportRunKind().follow(api, env, {**run, "dashboard_id": 1, "job_id": "job"}),
    ]


def test_first_poll_is_staggered_only_in_a_triggerer() -> None:
    """One of a worker looks at once; one of many in a triggerer somewhere in the first interval."""
    assert all(isinstance(program.send(None), Call) for program in waits(stagger_first_poll=False))
    for program in waits(stagger_first_poll=True):
        assert program.send(None) == Sleep(0.0, INTERVAL)
        assert isinstance(program.send(None), Call)


@pytest.mark.parametrize(("seconds", "rounds"), [(0.0, 51), (600.0, 1)])
def test_each_round_of_the_loop_has_limited_time_for_starts(
    monkeypatch: pytest.MonkeyPatch, seconds: float, rounds: int
) -> None:
    """All other work of the loop runs in between. At least one task starts in each round."""
    monkeypatch.setattr(fair_scheduling, "TURN_SECONDS", seconds)

    async def run() -> list[int]:
        passed = 0
        started: list[tuple[int, int]] = []
        loop = asyncio.get_running_loop()

        def count() -> None:
            nonlocal passed
            passed += 1
            loop.call_soon(count)

        async def start(number: int) -> None:
            await yield_turn()
            started.append((number, passed))

        tasks = [asyncio.create_task(start(number)) for number in range(52)]
        loop.call_soon(count)
        await asyncio.sleep(0)
        tasks[10].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [number for number, _ in started] == sorted(number for number, _ in started)
        return [at for _, at in started]

    taken = asyncio.run(run())
    assert len(set(taken)) == rounds
