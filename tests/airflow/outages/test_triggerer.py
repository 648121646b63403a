"""Deferred tasks survive the triggerer: nothing is started again, and no run is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.airflow.airflow_processes import kill

if TYPE_CHECKING:
    from pathlib import Path

    import psutil

    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

POINTS = {
    "after_echo": "revenue by country",
    "mid_stream": "orders by status",
    "before_final": "revenue by month",
    "after_final": "revenue by segment",
    "before_state": "revenue by product",
}

LONG = 600
"""Seconds by the sandbox's clock, which only a test moves that far."""

MERGED, GATED = "waits-for-production", "waits-in-a-gate"


def followers(sandbox: PatientControl, text: str) -> int:
    """How many connections have followed the run of this question."""
    state = sandbox.state()
    ids = {run.message_id for run in state.runs if run.text == text}
    return sum(one.message_id in ids for one in state.subscriptions)


def test_killed_triggerer_starts_nothing_again(
    ask: StartTask,
    sync: StartTask,
    start_task: StartTask,
    sandbox: PatientControl,
    triggerer: list[psutil.Process],
    tmp_path: Path,
) -> None:
    """Killed while tasks of all kinds wait in it, among them chats at every point of their run."""
    file = tmp_path / "dashboard.pdf"
    sandbox.set(dbt_pace=5, export_pace=20, delivery_seconds=LONG, jobs_build_seconds=LONG)
    sandbox.set(default_api_scopes=["meta", "data", "graphql", "jobs"])
    for branch in (MERGED, GATED):
        sandbox.add_branch(branch)
    for branch in ("main", GATED):
        sandbox.report_build(branch, "building")
    for point, text in POINTS.items():
        sandbox.set_breakpoint(point, text=text)
    chats = [ask(text, deferrable=True) for text in POINTS.values()]
    (held,) = sandbox.wait_for_breakpoint("mid_stream")
    sensor = start_task("wait_for_thread", "wait", chat_id=held.chat_id)
    merge = start_task("merge", "merge", branch_name=MERGED, deferrable=True)
    gate = start_task("gated", "gate.built", branch_name=GATED, deferrable=True)
    delivery = start_task("deliver", "run", deferrable=True)
    builds = start_task("build", "build", deferrable=True)
    syncing = sync(deferrable=True)
    others = [sensor, merge, gate, delivery, builds, syncing]
    for task in [*chats, *others]:
        task.wait("deferred")
        task.wait_trigger()
    for point in POINTS:
        sandbox.wait_for_breakpoint(point)
    for text in POINTS.values():
        # Submitted, and taken over by the trigger.
        sandbox.wait_until(lambda _, text=text: followers(sandbox, text) == 2)
    # The service keeps an export for a few minutes only.
    export = start_task("export", "export", output_path=str(file))
    export.wait("deferred")
    export.wait_trigger()
    kill(triggerer)
    for text in POINTS.values():
        sandbox.wait_until(lambda _, text=text: followers(sandbox, text) == 3)
    for task in [*others, export]:
        task.until(lambda _, task=task: task.starts_of_trigger(1) == 2, "its trigger's next start")
    sandbox.release()
    sandbox.set(dbt_pace=0)
    for branch in ("main", GATED):
        sandbox.report_build(branch, None)
    for task in [*chats, sensor, merge, syncing, export]:
        task.wait("success", try_number=1)
    gate.wait_run("success")
    sandbox.advance(LONG)
    for task in (delivery, builds):
        task.wait("success", try_number=1)
    state = sandbox.state()
    assert len(state.messages) == len(state.runs) == len(POINTS)
    assert state.aborts == []
    assert len(state.syncs) == 1
    assert sensor.result == {"chat_id": held.chat_id, "is_streaming": False}
    assert export.result["size"] == file.stat().st_size
    for resource in ("dashboard-exports", "report-delivery-runs", "pre-aggregation-jobs"):
        assert len(state.changed(resource)) == 1, resource
    merges = [one.path for one in state.requests if one.path.endswith("/merge-to-default")]
    assert len(merges) == 2
    assert not {MERGED, GATED} <= set(sandbox.branches())


def test_run_survives_the_move_of_its_trigger_to_another_triggerer(
    ask: StartTask, sync: StartTask, sandbox: PatientControl, triggerer: list[psutil.Process]
) -> None:
    """The triggerer freezes, another one takes over; when the first one wakes up, Airflow has it
    kill the trigger that it lost."""
    sandbox.set(dbt_pace=30)
    sandbox.set_breakpoint("mid_stream")
    asking, syncing = ask(deferrable=True), sync(deferrable=True)
    sandbox.wait_for_breakpoint("mid_stream")
    asking.wait("deferred")
    syncing.wait("deferred")
    sandbox.wait_until(lambda state: len(state.subscriptions) == 2)
    for process in triggerer:
        process.suspend()
    try:
        sandbox.wait_until(lambda state: len(state.subscriptions) == 3)
    finally:
        for process in triggerer:
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
    kill(triggerer)
