"""Airflow's API server is away until workers end their tries: every chat still gets one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.airflow.airflow_processes import wait_ended

if TYPE_CHECKING:
    from tests.support.airflow.airflow_processes import AirflowProcesses
    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

PATIENCE = 300.0
"""Seconds. Airflow ends a try after three failed heartbeats, and the retry comes a minute later."""


def test_chats_survive_an_api_server_outage_that_ends_a_try(
    ask: StartTask,
    sandbox: PatientControl,
    airflow: RunningAirflow,
    processes: AirflowProcesses,
) -> None:
    """Airflow ends the worker's try, because it cannot send its heartbeats, and a retry follows the
    same run. The deferred task notices nothing."""
    prompts = {False: "revenue by country", True: "orders by status"}
    for text in prompts.values():
        sandbox.set_breakpoint("mid_stream", text=text)
    running = ask(prompts[False], dag_id="ask_patiently", timeout=900)
    waiting = ask(prompts[True], dag_id="ask_patiently", timeout=900, deferrable=True)
    sandbox.wait_until(lambda state: len(state.runs) == 2)
    for task in (running, waiting):
        task.wait_record(phase="running")
    waiting.wait("deferred")
    waiting.wait_trigger()
    worker = processes.of_task(running.now())
    with airflow.without_api_server():
        assert not wait_ended([worker], PATIENCE), "Airflow has not ended the worker's try"
    sandbox.release()
    waiting.wait("success", try_number=1)
    running.until(lambda now: now["state"] in ("success", "failed"), "its end", PATIENCE)
    assert running.state == "success", running.logs()
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["finished", "finished"]
    assert len(state.messages) == 2
    assert state.aborts == []
    results = {task.result["message_id"] for task in (running, waiting)}
    assert results == {run.message_id for run in state.runs}
