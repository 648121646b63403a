"""Conditions that tests wait for, and rules that must hold on the service in every case."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun


def wait_followed(task: TaskRun, *, deferrable: bool) -> None:
    """Until the service has accepted the question, and whoever waits for the answer has begun
    to."""
    task.wait_record(phase="running")
    task.wait("deferred" if deferrable else "running", or_later=True, try_number=1)
    if deferrable:
        task.wait_trigger()


def followers(sandbox: PatientControl, text: str) -> int:
    """How many connections have followed the runs of this question."""
    state = sandbox.state()
    ids = {run.message_id for run in state.runs if run.text == text}
    return sum(one.message_id in ids for one in state.subscriptions)


def assert_asked_once(sandbox: PatientControl, questions: int = 1) -> None:
    """Each question reached the service once and was answered; nothing was stopped."""
    state = sandbox.state()
    assert [message.outcome for message in state.messages] == ["started"] * questions
    assert len({message.text for message in state.messages}) == questions
    assert [run.status for run in state.runs] == ["finished"] * questions


def assert_stopped(sandbox: PatientControl) -> None:
    """The question reached the service once, and its run was stopped."""
    state = sandbox.state()
    assert [message.outcome for message in state.messages] == ["started"]
    assert [run.status for run in state.runs] == ["aborted"]


def assert_stopped_and_asked_anew(sandbox: PatientControl, questions: int = 1) -> None:
    """Each question was asked twice, as its author wished: the first run was stopped, the second
    one answered."""
    state = sandbox.state()
    assert [message.outcome for message in state.messages] == ["started"] * 2 * questions
    statuses: dict[str, list[str]] = {}
    for run in state.runs:
        statuses.setdefault(run.text, []).append(run.status)
    assert list(statuses.values()) == [["aborted", "finished"]] * questions, statuses
