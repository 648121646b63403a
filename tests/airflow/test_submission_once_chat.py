"""A question is asked once, whenever the worker dies.

The sandbox stops the run where the worker is to die, and counts: `messages` are the prompts that
reached it, `runs` what the agent was really asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.releases import needs_missed_heartbeats

if TYPE_CHECKING:
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
AFTER_ACCEPTANCE = ["after_echo", "before_state"]


def outcomes(sandbox: PatientControl) -> list[str]:
    return [message.outcome for message in sandbox.state().messages]


def test_retry_sends_the_prompt_if_killed_before_the_call(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_call", has_input=True)
    task = ask()
    sandbox.wait_for_breakpoint("before_call")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("success", try_number=2)
    assert outcomes(sandbox) == ["started"]
    assert "again under the same message id" in task.log(2)


def test_retry_repeats_the_message_id_if_killed_before_the_response(
    ask: StartTask, sandbox: PatientControl
) -> None:
    """The one window: no thread is known in which it could be looked up."""
    sandbox.set_breakpoint("before_answer", has_input=True)
    task = ask()
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    first, second = sandbox.state().messages
    assert first.message_id == second.message_id == task.result["message_id"]
    assert "again under the same message id" in task.log(2)


def test_retry_finds_the_prompt_in_a_given_thread_if_killed_before_the_response(
    ask: StartTask, sandbox: PatientControl
) -> None:
    first = ask()
    first.wait("success")
    sandbox.set_breakpoint("before_answer", has_input=True)
    chat_id = first.result["chat_id"]
    task = ask("and by product?", chat_id=chat_id)
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    assert outcomes(sandbox) == ["started", "started"]
    assert "product" in task.result["queries"][0]["title"].lower()


def test_retry_reads_the_thread_if_killed_after_the_chat_id(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("after_cutoff")
    task = ask()
    sandbox.wait_for_breakpoint("after_cutoff")
    task.wait_record(phase="intent", chat_id=...)
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    assert outcomes(sandbox) == ["started"]


@pytest.mark.parametrize("point", AFTER_ACCEPTANCE)
def test_retry_reattaches_if_killed_after_acceptance(
    ask: StartTask, sandbox: PatientControl, point: str
) -> None:
    sandbox.set_breakpoint(point)
    task = ask()
    sandbox.wait_for_breakpoint(point)
    task.wait_record(phase="running")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    (run,) = sandbox.state().runs
    assert (run.status, run.message_id) == ("finished", task.result["message_id"])
    assert outcomes(sandbox) == ["started"]


def test_retry_reads_the_result_again_if_killed_before_the_xcom(
    ask: StartTask, sandbox: PatientControl
) -> None:
    task = ask(dag_id="ask_and_die", deferrable=True)
    task.wait("success", try_number=2)
    (run,) = sandbox.state().runs
    assert task.result["message_id"] == run.message_id
    assert task.result["answer"].startswith("Revenue by country")
    assert task.result["queries"][0]["rows"]
    assert outcomes(sandbox) == ["started"]


@needs_missed_heartbeats
def test_retry_reattaches_after_the_worker_and_its_supervisor_died(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    task.wait_record(phase="running")
    task.kill_with_supervisor()
    task.until(lambda now: now["try_number"] == 2, "try 2")
    sandbox.release()
    task.wait("success")
    assert outcomes(sandbox) == ["started"]


def test_task_cleared_after_success_asks_again(ask: StartTask, sandbox: PatientControl) -> None:
    task = ask()
    task.wait("success")
    task.clear()
    task.wait("success", try_number=2)
    first, second = sandbox.state().runs
    assert (first.status, second.status) == ("finished", "finished")
    assert task.result["message_id"] == second.message_id
    assert sandbox.state().aborts == []


def test_changed_prompt_in_the_next_try_stops_the_run_and_asks_again(
    ask: StartTask, sandbox: PatientControl, api: AirflowApi, worker_id: str
) -> None:
    variable = f"prompt_{worker_id}"
    api.put_variable(variable, "revenue by country")
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_variable", prompt_variable=variable)
    sandbox.wait_for_breakpoint("mid_stream")
    task.wait_record(phase="running")
    api.put_variable(variable, "orders by status")
    task.kill()
    task.wait("success")
    first, second = sandbox.state().runs
    assert (first.text, first.status) == ("revenue by country", "aborted")
    assert (second.text, second.status) == ("orders by status", "finished")
    assert task.result["message_id"] == second.message_id


@MODES
def test_two_mapped_tasks_ask_one_question_each(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    """One of them is killed and takes up its own run, not the other's."""
    sandbox.set_breakpoint("mid_stream", text="revenue")
    one = ask(dag_id="ask_mapped", deferrable=deferrable).mapped(0)
    other = one.mapped(1)
    sandbox.wait_for_breakpoint("mid_stream")
    one.wait_record(phase="running")
    if not deferrable:
        one.kill()
    sandbox.release()
    one.wait("success")
    other.wait("success")
    assert outcomes(sandbox) == ["started", "started"]
    by_text = {run.text: run.message_id for run in sandbox.state().runs}
    assert one.result["message_id"] == by_text["revenue by country"]
    assert other.result["message_id"] == by_text["orders by status"]
