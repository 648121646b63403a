"""Deferred tasks outlive the triggerer: nothing is asked again, nothing is stopped."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

import pytest

from tests.system.airflow_processes import kill

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psutil

    from tests.system.airflow_processes import AirflowProcesses
    from tests.system.airflow_server import RunningAirflow
    from tests.system.conftest import StartTask
    from tests.system.sandbox_server import PatientControl

pytestmark = pytest.mark.system

POINTS = {
    "after_echo": "revenue by country",
    "mid_stream": "orders by status",
    "before_final": "revenue by month",
    "after_final": "revenue by segment",
    "before_state": "revenue by product",
}


@pytest.fixture
def only_triggerer(
    airflow: RunningAirflow, processes: AirflowProcesses
) -> Iterator[list[psutil.Process]]:
    """The triggerer and its children; nobody else does anything to it meanwhile."""
    with (airflow.home / "triggerer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (triggerer,) = processes.triggerers()
        yield [triggerer, *triggerer.children(recursive=True)]


def followers(sandbox: PatientControl, text: str) -> int:
    """How many connections have followed the run of this question."""
    state = sandbox.state()
    ids = {run.message_id for run in state.runs if run.text == text}
    return sum(one.message_id in ids for one in state.subscriptions)


def test_a_killed_triggerer_asks_nothing_again(
    ask: StartTask, sync: StartTask, sandbox: PatientControl, only_triggerer: list[psutil.Process]
) -> None:
    """Killed while chats stand at every point of their run, and while a dbt sync goes on."""
    sandbox.set(dbt_pace=2)
    for point, text in POINTS.items():
        sandbox.hold(point, text=text)
    chats = [ask(text, deferrable=True) for text in POINTS.values()]
    syncing = sync(deferrable=True)
    for point in POINTS:
        sandbox.wait_held(point)
    for task in [*chats, syncing]:
        task.wait("deferred")
    for text in POINTS.values():
        # Submitted, and taken over by the trigger.
        sandbox.wait_until(lambda _, text=text: followers(sandbox, text) == 2)
    kill(only_triggerer)
    for text in POINTS.values():
        sandbox.wait_until(lambda _, text=text: followers(sandbox, text) == 3)
    sandbox.release()
    for task in [*chats, syncing]:
        task.wait("success", try_number=1)
    state = sandbox.state()
    assert len(state.messages) == len(state.runs) == len(POINTS)
    assert len(state.syncs) == 1
    assert state.aborts == []


def test_a_trigger_that_moves_to_another_triggerer_keeps_its_run(
    ask: StartTask, sync: StartTask, sandbox: PatientControl, only_triggerer: list[psutil.Process]
) -> None:
    """The triggerer freezes, another one takes over; when the first one wakes up, Airflow has it
    kill the trigger that it lost."""
    sandbox.set(dbt_pace=10)
    sandbox.hold("mid_stream")
    asking, syncing = ask(deferrable=True), sync(deferrable=True)
    sandbox.wait_held("mid_stream")
    asking.wait("deferred")
    syncing.wait("deferred")
    sandbox.wait_until(lambda state: len(state.subscriptions) == 2)
    for process in only_triggerer:
        process.suspend()
    try:
        sandbox.wait_until(lambda state: len(state.subscriptions) == 3)
    finally:
        for process in only_triggerer:
            process.resume()
    for task in (asking, syncing):
        task.until(lambda _, task=task: "left alone" in task.log(1), "the look of the old trigger")
    sandbox.release()
    sandbox.set(dbt_pace=0.1)
    asking.wait("success")
    syncing.wait("success")
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["finished"]
    assert [one.status for one in state.syncs] == ["COMPLETED"]
    assert state.aborts == []
    kill(only_triggerer)
