"""Which killed trigger stops its remote run: the state of its task decides."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform import triggers
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox
    from airflow_provider_platform.triggers import PlatformRunTrigger

RUNS_AGAIN = ["queued", "running"]


def triggered(operator: Any) -> PlatformRunTrigger:
    """The trigger that the operator defers to."""
    trigger: PlatformRunTrigger = deferral(operator.execute, TaskTries().context()).trigger
    return trigger


def asking(control: SandboxControl, chat_id: str | None = None) -> PlatformRunTrigger:
    control.set_breakpoint("mid_stream")
    return triggered(
        PlatformChatOperator(
            task_id="ask", prompt="revenue by month", chat_id=chat_id, deferrable=True
        )
    )


def a_thread() -> str:
    found = PlatformChatOperator(task_id="ask", prompt="revenue by country", deferrable=False)
    chat_id: str = found.execute(TaskTries().context())["chat_id"]
    return chat_id


@pytest.fixture(autouse=True)
def _airflow_3_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trigger that moves to another triggerer is killed too."""
    monkeypatch.setattr(triggers, "MOVED_TRIGGER_IS_KILLED", True)


def kill(trigger: PlatformRunTrigger, monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    """Kill the trigger of a task that is in this state by now, as Airflow does: it cancels
    `on_kill` again while it runs."""

    async def look_up(_: Any) -> str | None:
        await asyncio.sleep(0)
        return state

    async def cancel_twice() -> None:
        killing = asyncio.create_task(trigger.on_kill())
        await asyncio.sleep(0)
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        await asyncio.gather(*triggers._TASKS)

    monkeypatch.setattr(triggers, "get_task_states_on_loop", look_up)
    asyncio.run(cancel_twice())


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(("state", "end"), [("failed", "aborted"), ("deferred", "streaming")])
def test_killed_trigger_stops_only_the_run_of_an_ended_task(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, state: str, end: str, given: bool
) -> None:
    control = platform_sandbox.control
    kill(asking(control, a_thread() if given else None), monkeypatch, state)
    assert control.state().runs[-1].status == end
    assert len(control.state().aborts) == (end == "aborted")


@pytest.mark.parametrize("state", ["failed", *RUNS_AGAIN, "deferred"])
def test_killed_trigger_stops_the_run_at_once_if_a_clear_drops_the_record(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """On Airflow 3.4 the next try of a cleared task knows no run, and `on_kill` is called only if
    the task was marked or cleared. So the state, which takes seconds, is not looked up."""
    control = platform_sandbox.control
    trigger = asking(control)

    async def look_up(_: Any) -> str | None:
        raise AssertionError("the state of the task was looked up")

    monkeypatch.setattr(triggers, "MOVED_TRIGGER_IS_KILLED", False)
    monkeypatch.setattr(triggers, "get_task_states_on_loop", look_up)
    asyncio.run(trigger.on_kill())
    assert [run.status for run in control.state().runs] == ["aborted"]


def test_first_trigger_of_a_triggerer_has_airflow_read_a_state_before_any_kill(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look-up builds Airflow's API for ten seconds: too late for the first stop."""
    looked_up: list[Any] = []

    async def look_up(task_instance: Any) -> str | None:
        looked_up.append(task_instance)
        raise RuntimeError("this failure must not end the trigger")

    monkeypatch.setattr(triggers, "get_task_states_on_loop", look_up)
    monkeypatch.setattr(triggers.PlatformRunTrigger, "_looked_up", False)
    first, second = (asking(platform_sandbox.control) for _ in range(2))
    platform_sandbox.control.release()
    for trigger in (first, second):
        trigger.task_instance = SimpleNamespace(task_id="ask")  # type: ignore[assignment]
        assert event_of(trigger)["status"] == "success"
    assert looked_up == [first.task_instance]


@pytest.mark.parametrize(("state", "stopped"), [("failed", True), ("queued", False)])
def test_a_sync_is_cancelled_by_its_id_if_its_task_has_ended(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, state: str, stopped: bool
) -> None:
    control = platform_sandbox.control
    control.set(dbt_pace=60)
    trigger = triggered(PlatformDbtSyncOperator(task_id="sync", deferrable=True))
    kill(trigger, monkeypatch, state)
    assert [one.status == "CANCELLED" for one in control.state().syncs] == [stopped]


def test_late_kill_does_not_stop_the_next_question_of_the_thread(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task goes on in the thread that the agent made for the first one."""
    control = platform_sandbox.control
    trigger = asking(control)
    control.release()
    control.wait_until(lambda state: state.runs[-1].status == "finished")
    asking(control, trigger.ids["chat_id"])
    kill(trigger, monkeypatch, "failed")
    assert control.state().aborts == []
    assert control.state().runs[-1].status == "streaming"


def event_of(trigger: PlatformRunTrigger) -> dict[str, Any]:
    """The event that the trigger ends with."""

    async def run() -> Any:
        return [event.payload async for event in trigger.run()]

    (payload,) = asyncio.run(run())
    return dict(payload)


@pytest.mark.parametrize(("late", "stopped"), [(0.0, True), (600.0, False)])
def test_trigger_that_wakes_long_after_its_deadline_stops_nothing(
    platform_sandbox: Sandbox, late: float, stopped: bool
) -> None:
    control = platform_sandbox.control
    trigger = asking(control)
    trigger.deadline = time.time() - late
    event = event_of(trigger)
    assert event["error"]["type"] == "PlatformDeadlineError"
    assert event["stopped"] is stopped
    assert len(control.state().aborts) == stopped


def test_run_continues_if_the_task_state_cannot_be_read(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: Any) -> str | None:
        raise RuntimeError("no answer")

    control = platform_sandbox.control
    trigger = asking(control)
    monkeypatch.setattr(triggers, "get_task_states_on_loop", fails)
    asyncio.run(trigger.on_kill())
    assert control.state().aborts == []


def test_cancel_on_kill_false_stops_nothing(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = platform_sandbox.control
    control.set_breakpoint("mid_stream")
    operator = PlatformChatOperator(
        task_id="ask", prompt="revenue by month", deferrable=True, cancel_on_kill=False
    )
    kill(triggered(operator), monkeypatch, "failed")
    assert control.state().aborts == []


def test_a_stop_that_fails_is_logged_and_not_raised(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    control = platform_sandbox.control
    trigger = asking(control)
    control.fault("status", path="/abort$", status=403, count=None)
    kill(trigger, monkeypatch, "failed")
    assert "could not be stopped" in capfd.readouterr().out


def test_stop_decision_that_never_returns_leaves_the_run_alone(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def never(_: Any) -> str | None:
        await asyncio.Event().wait()
        return "failed"

    control = platform_sandbox.control
    trigger = asking(control)
    monkeypatch.setattr(triggers, "get_task_states_on_loop", never)
    monkeypatch.setattr(triggers, "TRIGGER_STATE_SECONDS", 0.1)
    asyncio.run(trigger.on_kill())
    assert control.state().aborts == []
    assert "state of the task could not be read" in capfd.readouterr().out


def test_stop_that_takes_longer_than_airflow_allows_is_abandoned(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    control = platform_sandbox.control
    trigger = asking(control)
    control.set_breakpoint("before_call", path="/abort$")
    monkeypatch.setattr(triggers, "TRIGGER_KILL_SECONDS", 0.5)
    kill(trigger, monkeypatch, "failed")
    assert "no time was left" in capfd.readouterr().out
    control.release()
