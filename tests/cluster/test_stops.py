"""On a cluster too, a task that is ended leaves nothing running on the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.outcomes import (
    assert_stopped,
    assert_stopped_and_asked_anew,
    wait_followed,
)

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.journal import SandboxState
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.cluster

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["running", "deferred"])
SECONDS = 30.0
"""How long a stop may take in all, Airflow's own part of it included."""


def first_is_stopped(state: SandboxState) -> bool:
    return state.runs[0].status == "aborted"


@MODES
@pytest.mark.parametrize("state", ["failed", "success"])
def test_task_marked_as_ended_stops_its_run(
    ask: StartTask, sandbox: PatientControl, deferrable: bool, state: str
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=deferrable)
    task.mark(state)
    sandbox.wait_until(first_is_stopped, timeout=SECONDS)
    assert task.state == state
    assert_stopped(sandbox)


@MODES
def test_cleared_task_stops_its_run_and_asks_again(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask(deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=deferrable)
    task.clear()
    sandbox.wait_until(first_is_stopped, timeout=SECONDS)
    task.wait("success", try_number=2)
    assert_stopped_and_asked_anew(sandbox)


@MODES
@pytest.mark.parametrize("dag_id", ["ask_once", "ask_in_time"])
def test_task_beyond_its_timeout_stops_its_run(
    ask: StartTask, sandbox: PatientControl, deferrable: bool, dag_id: str
) -> None:
    """By the operator's own `timeout`, and by Airflow's `execution_timeout`."""
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id=dag_id, deferrable=deferrable, timeout=8 if dag_id == "ask_once" else 300)
    sandbox.wait_for_breakpoint("mid_stream")
    sandbox.wait_until(first_is_stopped, timeout=2 * SECONDS)
    task.wait("failed")
    assert_stopped(sandbox)
