"""A run that no process could stop is stopped by the next DAG run in its thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.airflow_processes import kill

if TYPE_CHECKING:
    import psutil

    from tests.system.conftest import StartTask
    from tests.system.sandbox_server import PatientControl

pytestmark = pytest.mark.system


def test_next_dag_run_stops_an_orphaned_run_in_a_given_thread(
    ask: StartTask, sandbox: PatientControl, only_triggerer: list[psutil.Process]
) -> None:
    """The task is marked failed while no triggerer has its trigger, so that nothing of it runs."""
    first = ask()
    first.wait("success")
    chat_id = first.result["chat_id"]
    sandbox.set_breakpoint("mid_stream", text="month")
    left = ask("revenue by month", chat_id=chat_id, deferrable=True)
    sandbox.wait_for_breakpoint("mid_stream")
    left.wait("deferred")
    left.wait_trigger()
    kill(only_triggerer)
    left.mark("failed")
    after = ask("orders by status", chat_id=chat_id)
    after.wait("success", try_number=1)
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["finished", "aborted", "finished"]
    assert after.result["message_id"] == state.runs[-1].message_id
    assert "The agent may still be answering" in after.log(1)
