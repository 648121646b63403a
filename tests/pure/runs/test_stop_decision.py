"""Which kills stop a remote run, and what a signal handler may wait for."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from airflow_provider_platform._airflow import get_task_states
from airflow_provider_platform.operators._run_stop import run_within
from airflow_provider_platform.resources.stop_decision import UNKNOWN, stops_run, trigger_stops_run

ENDED = ["success", "failed", "skipped", "upstream_failed", "removed"]
NEXT_TRY = ["scheduled", "queued", "up_for_retry", "up_for_reschedule", "awaiting_input", None]
GOES_ON = ["running", UNKNOWN, "a state of a later Airflow"]
EVERY_STATE = [*ENDED, *NEXT_TRY, *GOES_ON, "deferred", "restarting"]


@pytest.mark.parametrize("last_try", [False, True])
@pytest.mark.parametrize("state", [*ENDED, "restarting"])
def test_run_is_stopped_if_the_workers_task_was_ended_or_cleared(
    state: str, last_try: bool
) -> None:
    assert stops_run(state, last_try=last_try)


@pytest.mark.parametrize("last_try", [False, True])
@pytest.mark.parametrize("state", [*NEXT_TRY, "deferred"])
def test_run_continues_if_the_workers_task_has_another_try(
    state: str | None, last_try: bool
) -> None:
    assert not stops_run(state, last_try=last_try)


@pytest.mark.parametrize("state", GOES_ON)
def test_run_of_an_evicted_worker_continues_while_tries_remain(state: str) -> None:
    assert not stops_run(state, last_try=False)
    assert stops_run(state, last_try=True)


@pytest.mark.parametrize("state", EVERY_STATE)
def test_a_killed_trigger_stops_the_run_if_the_task_has_ended_or_waits_after_a_clear(
    state: str | None,
) -> None:
    assert trigger_stops_run(state) is (state in ENDED or state is None)


class Ti:
    dag_id, run_id, task_id, map_index = "dag", "run", "task", -1


@pytest.mark.parametrize(
    ("map_index", "states", "state"),
    [
        (-1, {"run": {"task": "running"}}, "running"),
        (3, {"run": {"task_3": "failed"}}, "failed"),
        (3, {"run": {"task": "failed"}}, "failed"),
        (-1, {"run": {"task": None}}, None),
        (-1, {"run": {}}, "removed"),
        (-1, {}, "removed"),
    ],
)
def test_state_is_read_from_the_response_of_airflow(
    monkeypatch: pytest.MonkeyPatch, map_index: int, states: Any, state: str | None
) -> None:
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    asked: list[Any] = []

    def answer(**what: Any) -> Any:
        asked.append(what)
        return states

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(answer))
    ti = Ti()
    ti.map_index = map_index
    assert get_task_states(ti) == state
    assert asked == [
        {"dag_id": "dag", "task_ids": ["task"], "run_ids": ["run"], "map_index": map_index}
    ]


def test_run_within_returns_the_value_or_raises_the_error() -> None:
    assert run_within(10, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        run_within(10, lambda: 1 // 0)


def test_run_within_gives_up_a_call_that_waits_for_a_lock() -> None:
    """As a look-up does that the signal found in the middle of another request to Airflow."""
    lock = threading.Lock()
    done = threading.Event()

    def ask() -> None:
        with lock:
            done.set()

    with lock, pytest.raises(TimeoutError):
        run_within(0.1, ask)
    assert done.wait(60)


def test_abandoned_call_does_not_keep_the_process_alive() -> None:
    """Python waits at its end for each thread that is no daemon."""
    may_end, before = threading.Event(), set(threading.enumerate())
    with pytest.raises(TimeoutError):
        run_within(0.1, may_end.wait)
    abandoned = set(threading.enumerate()) - before
    may_end.set()
    assert [thread.daemon for thread in abandoned] == [True]
