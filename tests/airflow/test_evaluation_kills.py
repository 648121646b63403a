"""A suite that is killed or ended in the middle asks each question once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun

pytestmark = [
    pytest.mark.system,
    pytest.mark.history_allows("asked_by_no_task", because="the questions are those of the suite"),
]

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
ONCE = {f"question {number}": 1 for number in range(1, 7)}


@pytest.fixture(autouse=True)
def answers(sandbox: PatientControl) -> None:
    sandbox.answer("question", sql="SELECT COUNT(*) AS orders FROM orders", times=None)


def phases(task: TaskRun) -> list[str]:
    return [chat["phase"] for chat in task.record["ids"].get("active", {}).values()]


def finished_once(task: TaskRun, sandbox: PatientControl, try_number: int) -> None:
    task.wait("success", try_number=try_number)
    state = sandbox.state()
    assert state.asked == ONCE
    assert {message.outcome for message in state.messages} <= {"started", "resubscribed"}
    assert not [run for run in state.runs if run.status == "streaming"]
    assert task.result["counts"]["passed"] == 6


@pytest.mark.parametrize(("deferrable", "nth"), [(False, 2), (True, 6)])
def test_question_is_asked_once_if_killed_while_it_is_graded(
    start_task: StartTask, sandbox: PatientControl, deferrable: bool, nth: int
) -> None:
    sandbox.set_breakpoint("before_answer", api="data", path="cubesql", nth=nth)
    task = start_task("evaluate", "suite", deferrable=deferrable)
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    finished_once(task, sandbox, 2)


@pytest.mark.parametrize(
    ("deferrable", "point"), [(True, "before_answer"), (False, "after_cutoff")]
)
def test_question_that_was_being_sent_is_stopped_if_the_task_is_ended(
    start_task: StartTask, sandbox: PatientControl, deferrable: bool, point: str
) -> None:
    sandbox.set_breakpoint("mid_stream", text="question 3")
    sandbox.set_breakpoint(point, text="question 4")
    task = start_task("evaluate", "suite", deferrable=deferrable)
    sandbox.wait_for_breakpoint(point)
    task.until(
        lambda _: "intent" in phases(task) and "running" in phases(task), "the record of both"
    )
    task.mark("failed")
    sandbox.wait_until(
        lambda state: [run.status for run in state.runs if run.text == "question 3"] == ["aborted"]
    )
    sandbox.release()
    sandbox.wait_until(lambda state: all(run.status != "streaming" for run in state.runs))
    assert "question 5" not in sandbox.state().asked


def test_cleared_suite_stops_its_questions_and_asks_all_again(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("mid_stream", text="question 3")
    task = start_task("evaluate", "suite", deferrable=True)
    sandbox.wait_for_breakpoint("mid_stream")
    task.until(lambda _: phases(task) == ["running"], "only one question that runs")
    task.wait("deferred")
    task.wait_trigger()
    task.clear()
    sandbox.wait_until(
        lambda state: "aborted" in [run.status for run in state.runs if run.text == "question 3"]
    )
    sandbox.release()
    task.wait("success")
    state = sandbox.state()
    assert state.asked["question 5"] == 1
    assert state.asked["question 3"] == 2
    assert task.result["counts"]["passed"] == 6
