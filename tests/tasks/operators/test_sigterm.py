"""SIGTERM to a worker whose run continues: which try continues the run, and which one stops it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowTaskTimeout
from airflow_provider_platform.client.errors import (
    PlatformInterruptedError,
)
from airflow_provider_platform.operators import _run_stop
from airflow_provider_platform.operators._attempt import Confirmed
from airflow_provider_platform.operators._run_record import STORE_KEY
from tests.support.remote_tasks import chat, wait_for
from tests.support.task_context import StateStore, TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from tests.tasks.operators.conftest import TaskState

pytestmark = pytest.mark.usefixtures("task_state")


class LockedLog:
    """A log whose lines take a lock, as Airflow's do."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self.lines: list[str] = []

    def info(self, line: str, *args: object) -> None:
        with self._lock:
            self.lines.append(line % args)

    warning = debug = info


class UnreachableStore(StateStore):
    """Takes what announces a submission, and nothing after it."""

    def set(self, key: str, value: Any) -> None:
        if self:
            raise RuntimeError("the store cannot be reached")
        super().set(key, value)


class SignalledStore(StateStore):
    """A signal comes while the run's acceptance is written down: in the middle of a request to
    Airflow, so that none can be made until its handler has returned, and of a line of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.airflow = threading.Lock()
        self.signalled = False
        self.state = "running"

    def set(self, key: str, value: Any) -> None:
        with self.airflow:
            if value.get("phase") == "running" and not self.signalled:
                self.signalled = True
                signal.raise_signal(signal.SIGUSR1)
            super().set(key, value)

    def get_task_states(self, **_: Any) -> dict[str, dict[str, str]]:
        with self.airflow:
            return {"run": {"task": self.state}}


def under_way(control: SandboxControl, task: Any, tries: TaskTries, **arguments: Any) -> Any:
    """A chat that the service has accepted and stopped at a breakpoint, and its try."""
    control.set_breakpoint("mid_stream")
    operator = chat(**arguments)
    ended = task(operator, tries)
    control.wait_for_breakpoint("mid_stream")
    wait_for(lambda: tries.store.get(STORE_KEY, {}).get("phase") == "running")
    return operator, ended


def test_sigterm_in_mid_run_leaves_the_run_to_the_retry(
    control: SandboxControl, task: Any, task_state: TaskState
) -> None:
    task_state.state = "running"
    tries = TaskTries()
    operator, ended = under_way(control, task, tries)
    operator.on_kill()
    error = ended.end()  # at once, although the stream does not end
    assert isinstance(error, PlatformInterruptedError)
    assert error.retryable
    sent = len(control.state().requests)
    assert tries.store[STORE_KEY]["phase"] == "running"
    control.release()
    assert chat().execute(tries.context())["message_id"] == control.state().runs[0].message_id
    state = control.state()
    assert (len(state.messages), state.aborts) == (1, [])
    assert len(state.requests) > sent


@pytest.mark.parametrize("state", ["failed", "restarting"])
def test_sigterm_stops_the_run_of_an_ended_or_cleared_task(
    control: SandboxControl, task: Any, task_state: TaskState, state: str
) -> None:
    task_state.state = state
    operator, ended = under_way(control, task, TaskTries())
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert [run.status for run in control.state().runs] == ["aborted"]


def test_sigterm_in_the_last_try_stops_the_run(
    control: SandboxControl, task: Any, task_state: TaskState
) -> None:
    task_state.state = "running"
    operator, ended = under_way(control, task, TaskTries(max_tries=0))
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert [run.status for run in control.state().runs] == ["aborted"]
    assert len(control.state().aborts) == 1


def test_a_deferrable_task_that_is_killed_while_it_submits_leaves_its_run_to_the_retry(
    control: SandboxControl, task: Any, task_state: TaskState
) -> None:
    task_state.state = "running"
    control.set_breakpoint("before_call", has_input=True)
    operator, tries = chat(deferrable=True), TaskTries()
    ended = task(operator, tries)
    control.wait_for_breakpoint("before_call")
    operator.on_kill()
    control.release()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert tries.store[STORE_KEY]["phase"] == "running"
    chat().execute(tries.context())
    state = control.state()
    assert (len(state.messages), state.aborts) == (1, [])


@pytest.mark.parametrize("stopped", [False, True])
def test_a_chat_that_is_accepted_after_the_kill_is_left_to_the_retry(
    control: SandboxControl, task: Any, task_state: TaskState, stopped: bool
) -> None:
    """Who broke the submission off at once would not learn what its thread is called."""
    task_state.state = "running"
    control.set_breakpoint("before_call", has_input=True)
    if stopped:
        control.set_breakpoint("mid_stream")
    operator, tries = chat(), TaskTries()
    ended = task(operator, tries)
    control.wait_for_breakpoint("before_call")
    operator.on_kill()
    control.release("before_call")
    ended.end()
    control.release()
    chat().execute(tries.context())
    state = control.state()
    assert (len(state.messages), state.aborts) == (1, [])


def test_run_without_a_record_is_stopped(
    control: SandboxControl, task: Any, task_state: TaskState
) -> None:
    """Before Airflow 3.3."""
    task_state.state = "running"
    control.set_breakpoint("mid_stream")
    operator = chat()
    task(operator, TaskTries(store=False))
    control.wait_for_breakpoint("mid_stream")
    operator.on_kill()
    # At once, or as soon as the service has accepted.
    control.wait_until(lambda state: [run.status for run in state.runs] == ["aborted"])
    assert task_state.asked == 0


@pytest.mark.parametrize("last", [False, True])
def test_run_is_left_to_the_retry_if_airflow_does_not_answer(
    control: SandboxControl, task: Any, monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    """As when the signal interrupts a request to Airflow: the look-up waits for its end."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    answered = threading.Event()
    monkeypatch.setattr(
        RuntimeTaskInstance, "get_task_states", staticmethod(lambda **_: answered.wait(60))
    )
    monkeypatch.setattr(_run_stop, "TASK_STATE_SECONDS", 0.2)
    operator, ended = under_way(control, task, TaskTries(max_tries=0 if last else 2))
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert len(control.state().aborts) == last
    answered.set()


def test_the_execution_timeout_stops_the_run_although_tries_remain(
    control: SandboxControl, task_state: TaskState
) -> None:
    """Airflow raises it in the middle of the task's work."""
    task_state.state = "running"
    control.set_breakpoint("mid_stream")

    def time_out(*_: Any) -> None:
        raise AirflowTaskTimeout

    def signal_in_mid_run() -> None:
        control.wait_for_breakpoint("mid_stream")
        control.wait_until(lambda state: state.runs[0].records > 0)
        wait_for(lambda: tries.store.get(STORE_KEY, {}).get("phase") == "running")
        signal.pthread_kill(main, signal.SIGUSR1)

    tries, main = TaskTries(), threading.get_ident()
    before = signal.signal(signal.SIGUSR1, time_out)
    signals = threading.Thread(target=signal_in_mid_run)
    signals.start()
    try:
        with pytest.raises(AirflowTaskTimeout):
            chat().execute(tries.context())
    finally:
        signal.signal(signal.SIGUSR1, before)
        signals.join()
    assert [run.status for run in control.state().runs] == ["aborted"]
    assert task_state.asked == 0


def test_second_sigterm_during_the_stop_is_ignored(
    control: SandboxControl, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process group gets it once directly and once from the supervisor."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    operator, ended = under_way(control, task, TaskTries())
    asked = []

    def signalled_again(**_: Any) -> dict[str, dict[str, str]]:
        asked.append(None)
        operator.on_kill()
        return {"run": {"task": "failed"}}

    monkeypatch.setattr(
        RuntimeTaskInstance, "get_task_states", staticmethod(signalled_again), raising=False
    )
    operator.on_kill()
    assert isinstance(ended.end(), PlatformInterruptedError)
    assert (len(asked), len(control.state().aborts)) == (1, 1)


@pytest.mark.parametrize("state", ["running", "failed"])
def test_a_signal_in_the_middle_of_a_request_to_airflow_is_handled(
    control: SandboxControl, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """In the thread that the task runs in: whatever waits for that request must not be waited for,
    and what goes on afterwards is not disturbed. Then Airflow is asked again."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    control.set_breakpoint("mid_stream")
    tries, operator = TaskTries(), chat()
    tries.store = store = SignalledStore()
    store.state = state
    states = staticmethod(store.get_task_states)
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", states, raising=False)
    # The look after the handler has this time too, also on a busy machine.
    monkeypatch.setattr(_run_stop, "TASK_STATE_SECONDS", 1.5)
    log = LockedLog(store.airflow)
    monkeypatch.setattr(type(operator), "log", log)
    before = signal.signal(signal.SIGUSR1, lambda *_: operator.on_kill())
    try:
        with pytest.raises(PlatformInterruptedError):
            operator.execute(tries.context())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert store[STORE_KEY]["phase"] == "running"
    assert len(control.state().aborts) == (state == "failed")
    control.release()
    if state == "running":
        chat().execute(tries.context())
    assert len(control.state().messages) == 1
    said = any("task's next try re-attaches to it" in line for line in log.lines)
    assert said is (state == "running")


def test_run_continues_in_the_last_try_if_a_trigger_is_about_to_start(
    control: SandboxControl, task_state: TaskState
) -> None:
    control.set_breakpoint("mid_stream")
    operator = chat(deferrable=True)
    deferral(operator.execute, TaskTries(max_tries=0).context())
    operator.on_kill()
    assert len(control.state().aborts) == 0


def kill_without_store(
    control: SandboxControl, task: Any, operator: Any, tries: TaskTries, *, accepted: bool
) -> Any:
    """Kill a try whose store cannot be reached, before or after the service has accepted."""
    point = "mid_stream" if accepted else "before_call"
    control.set_breakpoint("mid_stream")
    control.set_breakpoint(point, has_input=True)
    tries.store = UnreachableStore()
    ended = task(operator, tries)
    control.wait_for_breakpoint(point)
    if accepted:
        attempt = operator._kill.attempt
        wait_for(
            lambda: (
                isinstance(attempt.submission, Confirmed)
                and not attempt.record.finds({"chat_id": "any"})
            )
        )
    operator.on_kill()
    if not accepted:
        control.release(point)
    return ended


@pytest.mark.parametrize("accepted", [False, True])
def test_run_whose_id_airflow_could_not_store_is_stopped(
    control: SandboxControl, task: Any, task_state: TaskState, accepted: bool
) -> None:
    """The retry could not find it: as without a record."""
    task_state.state = "running"
    kill_without_store(control, task, chat(), TaskTries(), accepted=accepted)
    control.wait_until(lambda state: [run.status for run in state.runs] == ["aborted"])


def test_run_is_stopped_if_the_signal_comes_while_its_id_is_stored_before_the_deferral(
    control: SandboxControl, task_state: TaskState
) -> None:
    """Otherwise no trigger follows the run, because Airflow refuses the deferral of an ended
    task."""
    task_state.state = "failed"
    control.set_breakpoint("mid_stream")
    operator, tries = chat(deferrable=True), TaskTries()

    class SignalledInSecondWrite(StateStore):
        writes = 0

        def set(self, key: str, value: Any) -> None:
            if value.get("phase") == "running":
                self.writes += 1
                if self.writes == 2:
                    operator.on_kill()
                raise RuntimeError("the store cannot be reached")
            super().set(key, value)

    tries.store = SignalledInSecondWrite()
    with pytest.raises(PlatformInterruptedError):
        operator.execute(tries.context())
    assert [run.status for run in control.state().runs] == ["aborted"]
