"""A task that is ended from outside, before the service has taken its submission, and after its
end."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import repeats
from airflow_provider_platform.client.errors import (
    ChatToolError,
    PlatformInterruptedError,
)
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from tests.support.nights import ORDERS
from tests.support.remote_tasks import HISTORY, LOOK, chat, lost_prompt, sync, wait_for
from tests.support.task_context import StateStore, TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from tests.tasks.operators.conftest import TaskState

pytestmark = pytest.mark.usefixtures("task_state")


class NamingStore(StateStore):
    """Says when the thread of the run is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.named = threading.Event()

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        if value["ids"].get("chat_id") is not None:
            self.named.set()


def test_kill_stops_a_run_with_known_thread_that_was_not_accepted(
    control: SandboxControl, task: Any
) -> None:
    control.set(pace=1)
    silence = control.fault("silence", after=1, has_input=True)
    operator, tries = chat(), TaskTries()
    tries.store = store = NamingStore()
    task(operator, tries)
    control.wait_until(lambda state: bool(state.runs))
    wait_for(lambda: control.state().runs[-1].records > 0)
    assert store.named.wait(30)
    operator.on_kill()
    control.wait_until(lambda state: state.runs[-1].status == "aborted")
    control.release_fault(silence)


def test_kill_stops_a_run_that_the_retry_is_searching(
    control: SandboxControl, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "FIRST_PAUSE", 0.01)
    control.set_breakpoint("after_cutoff")
    tries = lost_prompt(control)
    control.set_breakpoint("before_call", **LOOK)
    operator = chat()
    ended = task(operator, tries)
    control.wait_for_breakpoint("before_call")
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    control.release()
    assert [run.status for run in control.state().runs] == ["aborted"]
    assert len(control.state().messages) == 1


def test_kill_stops_the_run_with_the_latest_key(
    control: SandboxControl, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.set_breakpoint("mid_stream")
    control.fault("cut", after=6, has_input=True)
    control.set_breakpoint("before_final")
    operator = chat()
    ended = task(operator, TaskTries())
    control.wait_for_breakpoint("mid_stream")
    control.rotate_chat_key()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(control.connection()))
    control.release("mid_stream")
    control.wait_until(lambda state: len(state.subscriptions) == 2)
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert [run.status for run in control.state().runs] == ["aborted"]


def test_chat_accepted_after_the_kill_is_stopped(control: SandboxControl, task: Any) -> None:
    control.set_breakpoint("before_call", has_input=True)
    control.set_breakpoint("mid_stream")
    operator = chat()
    task(operator, TaskTries())
    control.wait_for_breakpoint("before_call")
    operator.on_kill()
    control.release("before_call")
    control.wait_until(lambda state: [run.status for run in state.runs] == ["aborted"])


def test_killed_suite_stops_its_questions_while_the_next_one_is_not_accepted(
    control: SandboxControl, task: Any
) -> None:
    control.answer("question", sql=ORDERS, times=None)
    control.set_breakpoint("mid_stream", text="question 1")
    control.set_breakpoint("before_answer", text="question 2")
    texts = ("question 1", "question 2")
    questions = [{"name": text, "question": text, "sql": ORDERS} for text in texts]
    operator = PlatformEvaluationOperator(
        task_id="suite", questions=questions, parallel=2, deferrable=True
    )
    ended = task(operator, TaskTries())
    control.wait_for_breakpoint("mid_stream")
    control.wait_for_breakpoint("before_answer")
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert [run.status for run in control.state().runs if run.text == "question 1"] == ["aborted"]


def test_a_deferrable_task_does_not_defer_after_the_kill(
    control: SandboxControl, task: Any
) -> None:
    control.set_breakpoint("before_call", has_input=True)
    control.set_breakpoint("mid_stream")
    operator = chat(deferrable=True)
    ended = task(operator, TaskTries())
    control.wait_for_breakpoint("before_call")
    operator.on_kill()
    control.release("before_call")
    control.wait_until(lambda state: [run.status for run in state.runs] == ["aborted"])
    error = ended.end()
    assert isinstance(error, PlatformInterruptedError)
    assert error.retryable


def test_kill_prevents_a_start(control: SandboxControl, task: Any) -> None:
    control.set_breakpoint("before_answer", **HISTORY)
    operator = sync()
    ended = task(operator, TaskTries())
    control.wait_for_breakpoint("before_answer")
    operator.on_kill()
    control.release()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert control.state().syncs == []


def test_no_question_is_sent_to_a_busy_thread_after_the_kill(
    control: SandboxControl, task: Any
) -> None:
    control.set_breakpoint("mid_stream")
    first = task(chat(), TaskTries())
    (held,) = control.wait_for_breakpoint("mid_stream")
    operator = chat(prompt="and by product?", chat_id=held.chat_id)
    second = task(operator, TaskTries())
    control.wait_until(lambda state: len(state.messages) > 1 or len(state.requests) > 3)
    operator.on_kill()
    assert isinstance(second.end(), PlatformInterruptedError)
    control.release()
    assert first.end() is None
    assert len(control.state().runs) == 1


@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "status", "status": 429}])
def test_cancel_that_fails_for_a_moment_is_sent_again_after_a_kill(
    control: SandboxControl, task: Any, fault: dict[str, Any]
) -> None:
    control.set(dbt_pace=60)
    control.fault(**fault, method="DELETE", path="/dbt-sync/")
    operator, tries = sync(), TaskTries()
    ended = task(operator, tries)
    wait_for(lambda: any(record["phase"] == "running" for record in tries.store.values()))
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert [one.status for one in control.state().syncs] == ["CANCELLED"]


def test_sync_started_after_the_kill_is_cancelled(control: SandboxControl, task: Any) -> None:
    control.set(dbt_pace=60)
    control.set_breakpoint("before_answer", method="POST", path="/dbt-sync$")
    operator = sync()
    task(operator, TaskTries())
    control.wait_for_breakpoint("before_answer")
    operator.on_kill()
    control.release("before_answer")
    control.wait_until(lambda state: [one.status for one in state.syncs] == ["CANCELLED"])


def test_on_kill_after_a_successful_try_aborts_nothing(
    control: SandboxControl, task_state: TaskState
) -> None:
    operator = chat()
    operator.execute(TaskTries().context())
    operator.on_kill()
    assert control.state().aborts == []
    assert task_state.asked == 0


@pytest.mark.parametrize("branch", [None, "no-such-branch"], ids=["success", "failure"])
def test_on_kill_after_the_end_of_a_try_sends_no_request(
    control: SandboxControl, branch: str | None
) -> None:
    """The same operator may be asked by another run of the process."""
    operator = chat(active_branch_name=branch)
    if branch is None:
        operator.execute(TaskTries().context())
    else:
        with pytest.raises(ChatToolError):
            operator.execute(TaskTries().context())
    seen = len(control.state().requests)
    operator.on_kill()
    assert len(control.state().requests) == seen
