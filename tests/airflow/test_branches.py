"""Branches are merged once and gates end correctly, whichever process is killed meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
BRANCH = "dbt-sync/main-1"
MERGE = {"method": "POST", "path": "/merge-to-default$"}
QUERY = {"api": "data", "path": "/cubesql$"}


@pytest.fixture(autouse=True)
def branch(sandbox: PatientControl) -> None:
    sandbox.add_branch(BRANCH)


@pytest.fixture
def merge(start_task: StartTask) -> StartTask:
    """`merge(deferrable=..., **conf)`: a task that merges the branch."""
    return lambda **conf: start_task("merge", "merge", branch_name=BRANCH, **conf)


def in_gate(run: TaskRun, name: str) -> TaskRun:
    """Another task of the same gate."""
    return replace(run, task_id=f"gate.{name}")


def merged(sandbox: PatientControl) -> list[str]:
    return [str(entry.id) for entry in sandbox.state().changed("branches", "merged")]


def merges_sent(sandbox: PatientControl) -> int:
    return sum(one.path.endswith("/merge-to-default") for one in sandbox.state().requests)


@MODES
def test_merge_waits_until_production_is_built(
    merge: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.report_build("main", "building")
    task = merge(deferrable=deferrable)
    task.wait_record(phase="running")
    task.wait("deferred" if deferrable else "running")
    sandbox.report_build("main", None)
    task.wait("success", try_number=1)
    assert (task.result["merged"], task.result["status"]) == (True, "built")
    assert merged(sandbox) == [BRANCH]


def test_worker_killed_before_the_merge_response_merges_once(
    merge: StartTask, sandbox: PatientControl
) -> None:
    """As in a gate, the branch is open, so that the service names its files: these show that
    production has the merge."""
    sandbox.open_branch(BRANCH)
    sandbox.set_breakpoint("before_answer", **MERGE)
    task = merge()
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    assert (task.result["merged"], task.result["branch_deleted"]) == (True, False)
    assert merged(sandbox) == [BRANCH]


def test_worker_killed_before_the_merge_response_does_not_guess_what_nothing_shows(
    merge: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_answer", **MERGE)
    task = merge(delete_branch=True)
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    task.wait("failed", try_number=2)
    assert "Look at the history of main" in task.log(2)
    assert merged(sandbox) == [BRANCH]


def test_worker_killed_while_waiting_for_production_merges_nothing_again(
    merge: StartTask, sandbox: PatientControl
) -> None:
    sandbox.report_build("main", "building")
    task = merge()
    task.wait_record(phase="running")
    task.kill()
    sandbox.report_build("main", None)
    task.wait("success", try_number=2)
    assert merges_sent(sandbox) == 1


def test_gate_merges_and_leaves_no_branch(start_task: StartTask, sandbox: PatientControl) -> None:
    run = start_task("gated", "gate.merge", branch_name=BRANCH)
    run.wait_run("success")
    assert merged(sandbox) == [BRANCH]
    assert sandbox.branches() == ["dev", "main"]


def test_cleared_check_reopens_the_branch_and_the_gate_continues(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.fault("status", status=400, count=None, **QUERY)
    check = start_task("gated", "gate.count", branch_name=BRANCH)
    check.wait_run("failed")
    assert (merged(sandbox), BRANCH in sandbox.branches()) == ([], True)
    assert in_gate(check, "close").result["closed"] is True
    sandbox.clear_faults()
    check.clear(with_downstream=True)
    check.wait_run("success")
    assert (merged(sandbox), sandbox.branches()) == ([BRANCH], ["dev", "main"])
