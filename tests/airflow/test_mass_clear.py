"""Several running tasks are cleared at once: each asks again, and none fails.

Airflow 3.3.2 loses what it has changed in some of them, so that their next try looks like a retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.airflow.conftest import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("dag_id", "stopped_thread"),
    [("ask_four", "state"), ("ask_four_once", "aborted"), ("ask_four", "close")],
)
def test_four_running_chats_cleared_at_once_ask_again(
    ask: StartTask, sandbox: PatientControl, dag_id: str, stopped_thread: str
) -> None:
    """Whatever the service answers to who looks at a thread that was stopped."""
    sandbox.set(stopped_thread=stopped_thread)
    sandbox.set_breakpoint("mid_stream", count=4)
    four = [ask(dag_id=dag_id).mapped(0)]
    four += [four[0].mapped(number) for number in range(1, 4)]
    sandbox.wait_until(lambda state: len(state.runs) == 4)
    for task in four:
        task.wait_record(phase="running")
    four[0].clear_mapped(4)
    for task in four:
        task.wait("success", try_number=2)
    state = sandbox.state()
    assert sorted(run.status for run in state.runs) == ["aborted"] * 4 + ["finished"] * 4
    assert len(state.messages) == 8
    finished = {run.message_id for run in state.runs if run.status == "finished"}
    assert {task.result["message_id"] for task in four} == finished
