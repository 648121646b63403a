"""A dbt sync is started once, whenever the worker dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

START = {"method": "POST", "path": "/dbt-sync$"}


def test_retry_starts_the_sync_if_killed_before_the_call(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_call", **START)
    task = sync()
    sandbox.wait_for_breakpoint("before_call")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("success", try_number=2)
    (one,) = sandbox.state().syncs
    assert task.result["sync_job_id"] == one.sync_job_id


def test_retry_finds_the_sync_in_the_history_if_killed_before_the_response(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_answer", **START)
    task = sync()
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    (one,) = sandbox.state().syncs
    assert task.result["sync_job_id"] == one.sync_job_id
    assert task.result["branch_name"] == one.branch_name


def test_retry_reattaches_to_the_sync_if_killed_while_waiting(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_call", method="GET", path="/dbt-sync/")
    task = sync()
    sandbox.wait_for_breakpoint("before_call")
    task.wait_record(phase="running")
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    (one,) = sandbox.state().syncs
    assert (one.status, one.sync_job_id) == ("COMPLETED", task.result["sync_job_id"])


def test_retry_reads_the_result_again_if_killed_before_the_xcom(
    sync: StartTask, sandbox: PatientControl
) -> None:
    task = sync(dag_id="sync_and_die")
    task.wait("success", try_number=2)
    (one,) = sandbox.state().syncs
    assert task.result["sync_job_id"] == one.sync_job_id
    assert task.result["result"]["cubeCount"] > 0


def test_lost_start_without_a_history_is_reported_as_an_unknown_outcome(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set(tenant="described")
    sandbox.set_breakpoint("before_answer", **START)
    task = sync()
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("failed", try_number=2)
    assert len(sandbox.state().syncs) == 1
    assert task.record["phase"] == "lost"
    assert "A sync may be running" in task.log(2)
    assert "clear the task" in task.log(2)


def test_task_cleared_after_an_unknown_outcome_starts_a_new_sync(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set(tenant="described")
    sandbox.set_breakpoint("before_answer", **START)
    task = sync()
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.release()
    task.wait("failed")
    task.clear()
    task.wait("success", try_number=3)
    assert len(sandbox.state().syncs) == 2


def test_task_cleared_after_success_starts_a_new_sync(
    sync: StartTask, sandbox: PatientControl
) -> None:
    task = sync()
    task.wait("success")
    task.clear()
    task.wait("success", try_number=2)
    first, second = sandbox.state().syncs
    assert (first.status, second.status) == ("COMPLETED", "COMPLETED")
    assert task.result["sync_job_id"] == second.sync_job_id
