"""Deliveries start once, even if the worker dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
START = {"method": "POST", "path": "/runs$"}
LONG = 3600
"""Seconds of a run by the sandbox's clock, which only a test moves that far."""


def starts(sandbox: PatientControl) -> int:
    return len(sandbox.state().changed("report-delivery-runs"))


def slow(sandbox: PatientControl) -> None:
    sandbox.set(delivery_seconds=LONG)


def test_killed_worker_starts_no_second_run(start_task: StartTask, sandbox: PatientControl) -> None:
    slow(sandbox)
    task = start_task("deliver", "run")
    task.wait_record(phase="running")
    task.kill()
    sandbox.advance(LONG)
    task.wait("success", try_number=2)
    assert task.result["started"] is True
    assert starts(sandbox) == 1


def test_worker_killed_before_the_answer_starts_no_second_run(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_answer", **START)
    task = start_task("deliver", "run")
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("success", try_number=2)
    assert task.result["started"] is True
    assert starts(sandbox) == 1


def test_worker_killed_before_the_start_starts_one_run(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_call", **START)
    task = start_task("deliver", "run")
    sandbox.wait_for_breakpoint("before_call")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("success", try_number=2)
    assert starts(sandbox) == 1


@MODES
def test_task_marked_failed_logs_that_its_run_continues(
    start_task: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    slow(sandbox)
    task = start_task("deliver", "run", deferrable=deferrable)
    task.wait_record(phase="running")
    if deferrable:
        task.wait("deferred")
        task.wait_trigger()
    task.mark("failed")
    task.until(lambda _: "so the run continues" in task.logs(), "the line about its run")
    assert starts(sandbox) == 1
    task.clear()
    task.wait_record(phase="running", try_number=2)
    sandbox.advance(LONG)
    task.wait("success")
    assert task.result["started"] is False
    assert starts(sandbox) == 1
