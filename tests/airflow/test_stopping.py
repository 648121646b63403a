"""A task that is ended, late or cleared leaves nothing running on the service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.journal import SandboxState
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["running", "deferred"])
ENDINGS = {
    "mark failed": lambda task: task.mark("failed"),
    "mark success": lambda task: task.mark("success"),
    "fail the DAG run": lambda task: task.fail_run(),
}


def run_is(status: str, number: int = 1) -> object:
    """Whether the sandbox's run of this number has that status."""

    def condition(state: SandboxState) -> bool:
        return len(state.runs) >= number and state.runs[number - 1].status == status

    return condition


def sync_is(status: str) -> object:
    """Whether the sandbox's first sync has that status."""
    return lambda state: bool(state.syncs) and state.syncs[0].status == status


def wait_for_success_of_next_try(task: TaskRun, deferrable: bool) -> None:
    """Until the task that was cleared succeeds. On SQLite the next try's trigger may get the id of
    the one before, and with it that one's event: the task waits on, and Airflow may count the
    waking up as a try."""
    task.wait("success", try_number=2, or_later=deferrable)


def wait_under_way(task: TaskRun, deferrable: bool, *, try_number: int = 1) -> None:
    """Until the service has accepted the submission, and whoever waits for it has begun to. (What
    happens between the deferral and the trigger's start, no code of ours can see.)"""
    task.wait_record(phase="running")
    task.wait(
        "deferred" if deferrable else "running",
        try_number=try_number,
        or_later=deferrable and try_number > 1,
    )
    if deferrable:
        task.wait_trigger(try_number)


@pytest.mark.parametrize(
    ("ending", "deferrable"),
    [
        ("mark failed", False),
        ("mark failed", True),
        ("mark success", False),
        ("fail the DAG run", True),
    ],
)
def test_the_chat_run_of_an_ended_task_is_stopped(
    ask: StartTask, sandbox: PatientControl, deferrable: bool, ending: str
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_under_way(task, deferrable)
    if deferrable:
        # Airflow says that a trigger starts before the trigger's own code does.
        sandbox.wait_until(lambda state: len(state.subscriptions) > 1)
    ENDINGS[ending](task)
    sandbox.wait_until(run_is("aborted"))
    assert len(sandbox.state().runs) == 1
    assert task.state == ("success" if ending == "mark success" else "failed")


@MODES
def test_the_dbt_sync_of_an_ended_task_is_cancelled(
    sync: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set(dbt_pace=600)
    task = sync(deferrable=deferrable)
    wait_under_way(task, deferrable)
    task.mark("failed")
    sandbox.wait_until(sync_is("CANCELLED"))
    assert len(sandbox.state().syncs) == 1


@MODES
def test_clearing_a_task_stops_its_chat_run_and_not_that_of_the_next_try(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set_breakpoint("mid_stream", count=2)
    task = ask(deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_under_way(task, deferrable)
    task.clear()
    sandbox.wait_until(run_is("aborted", 1))
    sandbox.wait_until(lambda state: len(state.runs) == 2)
    wait_under_way(task, deferrable, try_number=2)
    sandbox.release()
    wait_for_success_of_next_try(task, deferrable)
    assert [run.status for run in sandbox.state().runs] == ["aborted", "finished"]


@MODES
def test_clearing_a_task_with_the_tasks_before_it_stops_its_run_at_once(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    """The next try does not begin before those tasks have succeeded, and perhaps never."""
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_after", deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_under_way(task, deferrable)
    task.clear(with_upstream=True)
    sandbox.wait_until(run_is("aborted"))
    task.wait("upstream_failed")
    assert len(sandbox.state().runs) == 1


@MODES
def test_clearing_a_task_in_a_given_thread_stops_its_own_run_only(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    """Both tries ask in one thread, and an abort knows threads only."""
    first = ask()
    first.wait("success")
    sandbox.set_breakpoint("mid_stream", text="product", count=2)
    if deferrable:
        # The trigger sees no end, so Airflow ends it.
        sandbox.fault("silence", api="chat", has_input=False, after=1)
    chat_id = first.result["chat_id"]
    task = ask("and by product?", chat_id=chat_id, deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_under_way(task, deferrable)
    if deferrable:
        sandbox.wait_until(lambda state: len(state.subscriptions) == 3)
    sandbox.set_breakpoint("before_call", text="product")
    task.clear()
    sandbox.wait_until(run_is("aborted", 2))
    sandbox.wait_for_breakpoint("before_call")
    task.until(lambda _: "remote run" in task.log(1), "the end of whoever waited for the first try")
    sandbox.release("before_call")
    sandbox.wait_until(lambda state: len(state.runs) == 3)
    wait_under_way(task, deferrable, try_number=2)
    sandbox.release()
    wait_for_success_of_next_try(task, deferrable)
    state = sandbox.state()
    assert [run.status for run in state.runs] == ["finished", "aborted", "finished"]


def test_end_of_a_task_does_not_stop_the_next_question_of_its_thread(
    ask: StartTask, sandbox: PatientControl
) -> None:
    """The run is over, its task does not know this yet, and another task asks meanwhile."""
    first = ask()
    first.wait("success")
    chat_id = first.result["chat_id"]
    sandbox.fault("cut", text="product", after=8)
    sandbox.set_breakpoint("before_call", api="chat", has_input=False)
    task = ask("and by product?", chat_id=chat_id, deferrable=True)
    sandbox.wait_for_breakpoint("before_call")
    wait_under_way(task, deferrable=True)
    sandbox.wait_until(run_is("finished", 2))
    sandbox.set_breakpoint("mid_stream", text="chart")
    other = ask("as a chart", chat_id=chat_id)
    sandbox.wait_for_breakpoint("mid_stream")
    task.mark("failed")
    task.until(
        lambda _: re.search("had to be stopped|was (not )?stopped", task.log(1)),
        "the end of the stop",
    )
    assert sandbox.state().aborts == []
    sandbox.release()
    other.wait("success", try_number=1)


def test_stop_by_a_cancelled_trigger_survives_further_cancels(
    ask: StartTask, sandbox: PatientControl
) -> None:
    """Airflow repeats its cancel every second until the trigger is gone. The reads that fail make
    the stop last two seconds, of the four that it has for them."""
    first = ask()
    first.wait("success")
    sandbox.set_breakpoint("mid_stream", text="product")
    task = ask("and by product?", chat_id=first.result["chat_id"], deferrable=True)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_under_way(task, deferrable=True)
    sandbox.wait_until(lambda state: len(state.subscriptions) == 3)
    sandbox.fault("drop", api="chat", has_input=False, count=3)
    task.mark("failed")
    sandbox.wait_until(run_is("aborted", 2))


def test_clearing_a_task_cancels_its_dbt_sync_and_not_that_of_the_next_try(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set(dbt_pace=600)
    task = sync(deferrable=True)
    wait_under_way(task, deferrable=True)
    sandbox.set(dbt_pace=0.5)
    task.clear()
    sandbox.wait_until(sync_is("CANCELLED"))
    wait_for_success_of_next_try(task, deferrable=True)
    assert [one.status for one in sandbox.state().syncs] == ["CANCELLED", "COMPLETED"]


@MODES
def test_a_chat_run_that_exceeds_its_timeout_is_stopped(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_once", deferrable=deferrable, timeout=12)
    sandbox.wait_until(run_is("aborted"))
    task.wait("failed")
    assert "did not end before its deadline" in task.logs()
    assert task.record["phase"] == "failed"
    # By whoever waited for it, and once.
    (stop,) = [line for line in task.logs().splitlines() if "remote run was stopped" in line]
    assert ("PlatformRunTrigger" in stop) is deferrable


@MODES
def test_a_chat_run_that_exceeds_the_execution_timeout_is_stopped(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_in_time", deferrable=deferrable)
    sandbox.wait_until(run_is("aborted"))
    task.wait("failed")


def test_a_chat_run_whose_trigger_does_not_report_in_time_is_stopped(
    ask: StartTask, api: AirflowApi, sandbox: PatientControl, connection_id: str
) -> None:
    """Airflow wakes the task up to let it fail, and does not notify the trigger."""
    api.put_connection(connection_id, sandbox.connection(stream_idle_timeout=10))
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_with_late_trigger")
    sandbox.wait_until(run_is("aborted"))
    task.wait("failed")
    assert "The trigger did not report in time" in task.logs()
    assert task.record["phase"] == "failed"


def test_retry_after_the_deadline_stops_the_run_and_asks_again(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(deferrable=True, timeout=12)
    sandbox.wait_until(run_is("aborted"))
    sandbox.release()
    task.wait("success", try_number=2)
    assert [run.status for run in sandbox.state().runs] == ["aborted", "finished"]


@pytest.mark.history_allows("asked_again", because="the record is dated back, not the run")
def test_timeout_of_a_reattached_run_counts_from_its_start(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("after_cutoff")
    sandbox.set_breakpoint("mid_stream")
    task = ask(timeout=300)
    sandbox.wait_for_breakpoint("after_cutoff")
    task.wait_record(phase="intent", chat_id=...)
    task.date_back(255)
    task.kill()
    sandbox.release("after_cutoff")
    sandbox.wait_until(run_is("aborted"))
    sandbox.release()
    task.wait("success", try_number=3)
    assert "did not end before its deadline" in task.log(2)
    assert [run.status for run in sandbox.state().runs] == ["aborted", "finished"]


def test_retry_asks_again_if_its_run_is_stopped_after_reattaching(
    ask: StartTask, sandbox: PatientControl
) -> None:
    """The stop by the lost try can land after the next one has begun."""
    sandbox.set_breakpoint("after_cutoff")
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("after_cutoff")
    task.wait_record(phase="intent", chat_id=...)
    task.kill()
    sandbox.release("after_cutoff")
    (held,) = sandbox.wait_for_breakpoint("mid_stream")
    # Submitted, looked up, followed.
    sandbox.wait_until(lambda state: len(state.subscriptions) == 3)
    assert held.chat_id is not None
    sandbox.abort_thread(held.chat_id)
    task.wait("success", try_number=2)
    assert [run.status for run in sandbox.state().runs] == ["aborted", "finished"]
