"""An orphaned run of an earlier DAG run in a given thread is found and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.operators._submission import orphaned_runs as _orphaned_runs
from airflow_provider_platform.operators._submission.orphaned_runs import (
    RECORD_KEY,
    find_orphaned_run,
)
from tests.unit.operators.remote_tasks import chat
from tests.unit.operators.task_context import TaskInstance, TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl


class OfARun(TaskInstance):
    """The task instance of one DAG run; XComs of earlier ones are found, as in Airflow."""

    def __init__(self, run_id: str, stored: dict[str, Any]) -> None:
        super().__init__(1, 2)
        self.run_id = run_id
        self._stored = stored

    def xcom_push(self, key: str, value: Any) -> None:
        self._stored[key] = value

    def xcom_pull(self, *, key: str, include_prior_dates: bool, **_: Any) -> Any:
        return self._stored.get(key) if include_prior_dates else None


@pytest.fixture
def xcoms() -> dict[str, Any]:
    return {}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The states of the task by DAG run."""
    found: dict[str, str] = {}
    monkeypatch.setattr(_orphaned_runs, "get_task_states", lambda ti: found[ti.run_id])
    return found


def in_run(run_id: str, xcoms: dict[str, Any]) -> Any:
    context = TaskTries().context()
    context["ti"] = OfARun(run_id, xcoms)
    return context


@pytest.fixture
def orphaned_run(control: SandboxControl, xcoms: dict[str, Any]) -> dict[str, Any]:
    """The ids of a run under way that a deferred task of DAG run "first" asked for."""
    chat_id = chat().execute(TaskTries().context())["chat_id"]
    control.set_breakpoint("mid_stream", text="month")
    asking = chat(prompt="revenue by month", chat_id=chat_id, deferrable=True)
    ids: dict[str, Any] = deferral(asking.execute, in_run("first", xcoms)).kwargs["run"]
    return ids


@pytest.mark.parametrize("state", ["failed", "success", "removed"])
def test_next_dag_run_stops_the_run_of_an_ended_task(
    control: SandboxControl,
    orphaned_run: dict[str, Any],
    xcoms: dict[str, Any],
    states: dict[str, str],
    state: str,
) -> None:
    states["first"] = state
    asking = chat(prompt="revenue by country", chat_id=orphaned_run["chat_id"])
    found = asking.execute(in_run("second", xcoms))
    assert [run.status for run in control.state().runs] == ["finished", "aborted", "finished"]
    assert found["message_id"] == control.state().runs[-1].message_id
    assert xcoms[RECORD_KEY]["run_id"] == "second"


@pytest.mark.parametrize("state", ["running", "deferred", "up_for_retry", "queued"])
def test_run_of_an_active_task_is_not_stopped(
    control: SandboxControl,
    task: Any,
    orphaned_run: dict[str, Any],
    xcoms: dict[str, Any],
    states: dict[str, str],
    state: str,
) -> None:
    states["first"] = state
    tries = TaskTries()
    tries.context = lambda: in_run("second", xcoms)  # type: ignore[method-assign]
    asking = task(chat(prompt="revenue by country", chat_id=orphaned_run["chat_id"]), tries)
    control.wait_until(lambda state: [m.outcome for m in state.messages].count("busy") >= 3)
    assert control.state().aborts == []
    control.release()
    assert asking.end() is None
    assert [run.status for run in control.state().runs] == ["finished"] * 3


def test_later_message_of_the_thread_is_not_stopped(
    control: SandboxControl,
    task: Any,
    orphaned_run: dict[str, Any],
    xcoms: Any,
    states: dict[str, str],
) -> None:
    """The task has ended, its run too, and somebody else asks there by now."""
    states["first"] = "failed"
    control.release()
    control.wait_until(lambda state: state.runs[-1].status == "finished")
    control.set_breakpoint("mid_stream", text="product")
    other = task(chat(prompt="and by product?", chat_id=orphaned_run["chat_id"]), TaskTries())
    control.wait_for_breakpoint("mid_stream")
    tries = TaskTries()
    tries.context = lambda: in_run("second", xcoms)  # type: ignore[method-assign]
    asking = task(chat(prompt="revenue by country", chat_id=orphaned_run["chat_id"]), tries)
    control.wait_until(lambda state: [m.outcome for m in state.messages].count("busy") >= 3)
    assert control.state().aborts == []
    control.release()
    assert (other.end(), asking.end()) == (None, None)


def noted(**changes: Any) -> dict[str, Any]:
    return {"chat_id": "c", "message_id": "1", "run_id": "first", **changes}


@pytest.mark.parametrize(
    "note",
    [
        None,
        "text",
        {},
        noted(chat_id="another"),
        noted(message_id=None),
        noted(run_id=None),
        noted(run_id="second"),
        noted(run_id="nobody knows"),
    ],
)
def test_run_that_cannot_be_identified_is_left_alone(states: dict[str, str], note: Any) -> None:
    states.update(first="failed", second="failed")
    assert find_orphaned_run(OfARun("second", {RECORD_KEY: note}), "c") is None
    assert find_orphaned_run(OfARun("second", {RECORD_KEY: noted()}), "c") == noted()
    assert find_orphaned_run(object(), "c") is None


def test_run_in_a_new_thread_is_not_recorded_as_orphan(
    control: SandboxControl, xcoms: dict[str, Any]
) -> None:
    chat().execute(in_run("first", xcoms))
    assert RECORD_KEY not in xcoms
