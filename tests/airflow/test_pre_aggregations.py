"""Builds of pre-aggregations start once, even if the worker dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
LONG = 3600
"""Seconds of a build by the sandbox's clock, which only a test moves that far."""


@pytest.fixture(autouse=True)
def _the_scope_is_on(sandbox: PatientControl) -> None:
    sandbox.set(default_api_scopes=["meta", "data", "graphql", "jobs"])


def starts(sandbox: PatientControl) -> int:
    return len(sandbox.state().changed("pre-aggregation-jobs"))


def test_a_killed_worker_starts_no_build_again(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set(jobs_build_seconds=LONG)
    task = start_task("build", "build")
    task.wait_record(phase="running")
    task.kill()
    sandbox.advance(LONG)
    task.wait("success", try_number=2)
    assert starts(sandbox) == 1


def test_error_after_a_worker_killed_before_the_tokens_names_possible_builds(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_answer", method="POST", path="/jobs$")
    task = start_task("build", "build")
    sandbox.wait_for_breakpoint("before_answer")
    task.kill()
    sandbox.wait_gone()
    sandbox.release()
    task.wait("failed", try_number=2)
    assert starts(sandbox) == 1
    assert task.record["phase"] == "lost"
    assert "they may be running" in task.log(2)
    assert "Clear the task to start the builds again" in task.log(2)


def test_a_retry_follows_builds_that_were_too_slow(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set(jobs_build_seconds=LONG)
    task = start_task("build", "build", deferrable=True, timeout=10)
    task.until(lambda now: now["try_number"] >= 2, "its second try")
    sandbox.advance(LONG)
    task.wait("success")
    assert starts(sandbox) == 1
    assert "customers_by_country" in task.log(1)
    assert "no operation that stops builds" in task.log(1)


@MODES
def test_task_marked_failed_logs_that_its_builds_continue(
    start_task: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set(jobs_build_seconds=LONG)
    task = start_task("build", "build", deferrable=deferrable)
    task.wait_record(phase="running")
    if deferrable:
        task.wait("deferred")
        task.wait_trigger()
    task.mark("failed")
    task.until(lambda _: "so the run continues" in task.logs(), "the line about its builds")
    assert starts(sandbox) == 1
    task.clear()
    sandbox.set(jobs_build_seconds=0)
    task.wait("success")
    assert starts(sandbox) == 2
