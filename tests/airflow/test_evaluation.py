"""A suite that is killed or ended in the middle asks each question once and leaves none running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = [
    pytest.mark.system,
    pytest.mark.history_allows("asked_by_no_task", because="the questions are those of the suite"),
]

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
ONCE = {f"question {number}": 1 for number in range(1, 7)}


@pytest.fixture(autouse=True)
def answers(sandbox: PatientControl) -> None:
    sandbox.answer("question", sql="SELECT COUNT(*) AS orders FROM orders", times=None)


@pytest.mark.parametrize(
    ("deferrable", "point"),
    [(False, "after_cutoff"), (True, "after_cutoff"), (False, "after_echo")],
)
def test_retry_asks_only_what_is_missing_if_killed_in_the_middle(
    start_task: StartTask, sandbox: PatientControl, deferrable: bool, point: str
) -> None:
    sandbox.set_breakpoint(point, text="question 4")
    task = start_task("evaluate", "suite", deferrable=deferrable)
    sandbox.wait_for_breakpoint(point)
    task.until(lambda _: "question 4" in str(task.record), "the record of question 4")
    if point == "after_echo":
        task.until(
            lambda _: task.record["ids"]["active"]["production:question 4"]["phase"] == "running",
            "the acceptance of question 4",
        )
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    state = sandbox.state()
    assert state.asked == ONCE
    assert {message.outcome for message in state.messages} <= {"started", "resubscribed"}
    assert task.result["counts"]["passed"] == 6


@MODES
def test_questions_of_an_ended_task_are_stopped(
    start_task: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set_breakpoint("mid_stream", text="question 3")
    sandbox.set_breakpoint("mid_stream", text="question 4")
    task = start_task("evaluate", "suite", deferrable=deferrable)
    sandbox.wait_until(
        lambda state: {"question 3", "question 4"} <= {run.text for run in state.runs}
    )
    task.until(
        lambda _: (
            [chat["phase"] for chat in task.record["ids"]["active"].values()]
            == ["running", "running"]
        ),
        "two questions that run",
    )
    if deferrable:
        task.wait("deferred")
        task.wait_trigger()
    task.mark("failed")
    sandbox.wait_until(
        lambda state: (
            [run.status for run in state.runs if run.text in ("question 3", "question 4")]
            == ["aborted", "aborted"]
        )
    )
    assert len(sandbox.state().runs) == 4
