"""Airflow's API server is away for 100 seconds: every running chat still gets one answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.system.airflow_server import RunningAirflow
    from tests.system.conftest import StartTask
    from tests.system.sandbox_server import PatientControl

pytestmark = pytest.mark.system

OUTAGE = 100.0
RETRIED = 300.0
"""Seconds: a try that could not be started is missed, and the next one comes a minute later."""


def test_chats_survive_an_api_server_outage_of_100_seconds(
    ask: StartTask, sandbox: PatientControl, only_airflow: RunningAirflow
) -> None:
    """Airflow ends the worker's try, because it cannot send its heartbeats, and a retry takes the
    run up; the deferred task notices nothing."""
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
    with only_airflow.without_api_server():
        time.sleep(OUTAGE)
    sandbox.release()
    waiting.wait("success", try_number=1)
    running.until(lambda now: now["state"] in ("success", "failed"), "its end", RETRIED)
    assert running.state == "success", running.logs()
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["finished", "finished"]
    assert len(state.messages) == 2
    assert state.aborts == []
    results = {task.result["message_id"] for task in (running, waiting)}
    assert results == {run.message_id for run in state.runs}
