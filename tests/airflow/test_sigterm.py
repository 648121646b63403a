"""A worker that gets SIGTERM leaves its run to the next try, unless somebody ended its task.

An eviction sends SIGTERM, and so does a supervisor that cannot reach Airflow. A frozen worker that
wakes up after its retry has begun gets SIGTERM too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.releases import needs_forwarding, needs_missed_heartbeats

if TYPE_CHECKING:
    from tests.airflow.conftest import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

LEFT = "The task's next try re-attaches to it"
WHO = pytest.mark.parametrize(
    "who",
    [
        pytest.param(("task",), id="task"),
        pytest.param(("supervisor",), id="supervisor", marks=needs_forwarding),
        pytest.param(("supervisor", "task"), id="both"),
    ],
)


def assert_asked_once(sandbox: PatientControl, message_id: str) -> None:
    """One prompt, one run, answered; and nobody wanted it stopped."""
    state = sandbox.state()
    assert [message.outcome for message in state.messages] == ["started"]
    assert [(run.status, run.message_id) for run in state.runs] == [("finished", message_id)]
    assert state.aborts == []


@WHO
def test_retry_reattaches_to_the_chat_run_after_sigterm(
    ask: StartTask, sandbox: PatientControl, who: Any
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    task.wait_record(phase="running")
    task.send_sigterm(*who)
    task.until(lambda now: now["try_number"] == 2, "try 2")
    assert LEFT in task.log(1)
    sandbox.release()
    task.wait("success", try_number=2)
    assert "Re-attaching to the run" in task.log(2)
    assert_asked_once(sandbox, task.result["message_id"])


@WHO
def test_sigterm_in_the_last_try_stops_the_chat_run(
    ask: StartTask, sandbox: PatientControl, who: Any
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_once")
    sandbox.wait_for_breakpoint("mid_stream")
    task.wait_record(phase="running")
    task.send_sigterm(*who)
    task.wait("failed")
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["aborted"]
    assert len(state.messages) == 1


@pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
def test_sigterm_during_the_question_leaves_its_run_to_the_retry(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    """The try goes on until the service has accepted: who breaks off asks twice."""
    sandbox.set_breakpoint("before_call", has_input=True)
    task = ask(deferrable=deferrable)
    sandbox.wait_for_breakpoint("before_call")
    task.send_sigterm("task")
    task.until(lambda _: LEFT in task.log(1), "the end of on_kill")
    sandbox.release()
    task.wait("success", or_later=True)
    assert_asked_once(sandbox, task.result["message_id"])


def test_retry_reattaches_to_the_dbt_sync_after_sigterm(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_call", method="GET", path="/dbt-sync/")
    task = sync()
    sandbox.wait_for_breakpoint("before_call")
    task.wait_record(phase="running")
    task.send_sigterm("task")
    task.until(lambda now: now["try_number"] == 2, "try 2")
    assert LEFT in task.log(1)
    sandbox.release()
    task.wait("success", try_number=2)
    (one,) = sandbox.state().syncs
    assert (one.status, one.sync_job_id) == ("COMPLETED", task.result["sync_job_id"])


@needs_missed_heartbeats
def test_worker_that_wakes_after_its_retry_has_begun_does_not_stop_the_run(
    ask: StartTask, sandbox: PatientControl
) -> None:
    """Airflow misses its heartbeat, starts the retry, and ends the worker when it is back."""
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    task.wait_record(phase="running")
    with task.frozen():
        task.until(lambda now: now["try_number"] == 2, "try 2")
        task.until(
            lambda _: "Re-attaching to the run" in task.log(2), "the retry to take up the run"
        )
    task.until(lambda _: LEFT in task.log(1), "the end of on_kill")
    sandbox.release()
    task.wait("success", try_number=2)
    assert_asked_once(sandbox, task.result["message_id"])
