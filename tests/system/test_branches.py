"""A branch is merged once, wherever the worker dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.system.fixtures import StartTask
    from tests.system.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
BRANCH = "dbt-sync/main-1"
MERGE = {"method": "POST", "path": "/merge-to-default$"}


@pytest.fixture(autouse=True)
def branch(sandbox: PatientControl) -> None:
    sandbox.add_branch(BRANCH)


@pytest.fixture
def merge(start_task: StartTask) -> StartTask:
    """`merge(deferrable=..., **conf)`: a task that merges the branch."""
    return lambda **conf: start_task("merge", "merge", branch_name=BRANCH, **conf)


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


@MODES
def test_killed_before_the_call_the_branch_is_merged_once(
    merge: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.hold("before_call", **MERGE)
    task = merge(deferrable=deferrable)
    sandbox.wait_held("before_call")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("success", try_number=2)
    assert merged(sandbox) == [BRANCH]


@MODES
@pytest.mark.parametrize("delete", [False, True], ids=["kept", "deleted"])
def test_killed_between_call_and_answer_the_merge_is_found_and_made_once(
    merge: StartTask, sandbox: PatientControl, deferrable: bool, delete: bool
) -> None:
    sandbox.hold("before_answer", **MERGE)
    task = merge(deferrable=deferrable, delete_branch=delete)
    sandbox.wait_held("before_answer")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    assert (task.result["merged"], task.result["branch_deleted"]) == (True, delete)
    assert merged(sandbox) == [BRANCH]


def test_killed_while_waiting_for_production_nothing_is_merged_again(
    merge: StartTask, sandbox: PatientControl
) -> None:
    sandbox.report_build("main", "building")
    task = merge()
    task.wait_record(phase="running")
    task.kill()
    sandbox.report_build("main", None)
    task.wait("success", try_number=2)
    assert merges_sent(sandbox) == 1
