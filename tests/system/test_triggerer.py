"""Deferred tasks survive the triggerer: no question is repeated, and no run is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.airflow_processes import kill

if TYPE_CHECKING:
    from pathlib import Path

    import psutil

    from tests.system.fixtures import StartTask
    from tests.system.sandbox_server import PatientControl

pytestmark = pytest.mark.system

POINTS = {
    "after_echo": "revenue by country",
    "mid_stream": "orders by status",
    "before_final": "revenue by month",
    "after_final": "revenue by segment",
    "before_state": "revenue by product",
}


def followers(sandbox: PatientControl, text: str) -> int:
    """How many connections have followed the run of this question."""
    state = sandbox.state()
    ids = {run.message_id for run in state.runs if run.text == text}
    return sum(one.message_id in ids for one in state.subscriptions)


def test_killed_triggerer_asks_no_question_again(
    ask: StartTask, sync: StartTask, sandbox: PatientControl, only_triggerer: list[psutil.Process]
) -> None:
    """Killed while chats stand at every point of their run, and while a dbt sync goes on."""
    sandbox.set(dbt_pace=2)
    for point, text in POINTS.items():
        sandbox.set_breakpoint(point, text=text)
    chats = [ask(text, deferrable=True) for text in POINTS.values()]
    syncing = sync(deferrable=True)
    for point in POINTS:
        sandbox.wait_for_breakpoint(point)
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


def test_sensors_and_exports_survive_a_killed_triggerer(
    ask: StartTask,
    start_task: StartTask,
    sandbox: PatientControl,
    only_triggerer: list[psutil.Process],
    tmp_path: Path,
) -> None:
    file = tmp_path / "dashboard.pdf"
    sandbox.set(export_pace=5)
    sandbox.set_breakpoint("mid_stream")
    asking = ask()
    (held,) = sandbox.wait_for_breakpoint("mid_stream")
    tasks = [
        start_task("wait_for_thread", "wait", chat_id=held.chat_id),
        start_task("export", "export", output_path=str(file)),
    ]
    for task in tasks:
        task.wait("deferred")
        task.wait_trigger()
    kill(only_triggerer)
    for task in tasks:
        task.until(lambda _, task=task: task.starts_of_trigger(1) == 2, "its trigger's next start")
    sandbox.release()
    for task in [asking, *tasks]:
        task.wait("success", try_number=1)
    waiting, exporting = tasks
    assert waiting.result == {"chat_id": held.chat_id, "is_streaming": False}
    assert exporting.result["size"] == file.stat().st_size
    submitted = [r for r in sandbox.state().requests if r.path.endswith("/dashboard-exports")]
    assert len(submitted) == 1


def test_run_survives_the_move_of_its_trigger_to_another_triggerer(
    ask: StartTask, sync: StartTask, sandbox: PatientControl, only_triggerer: list[psutil.Process]
) -> None:
    """The triggerer freezes, another one takes over; when the first one wakes up, Airflow has it
    kill the trigger that it lost."""
    sandbox.set(dbt_pace=10)
    sandbox.set_breakpoint("mid_stream")
    asking, syncing = ask(deferrable=True), sync(deferrable=True)
    sandbox.wait_for_breakpoint("mid_stream")
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
        task.until(lambda _, task=task: "remote run" in task.log(1), "the look of the old trigger")
        assert "remote run is not stopped" in task.log(1)
    sandbox.release()
    sandbox.set(dbt_pace=0.1)
    asking.wait("success")
    syncing.wait("success")
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["finished"]
    assert [one.status for one in state.syncs] == ["COMPLETED"]
    assert state.aborts == []
    kill(only_triggerer)
