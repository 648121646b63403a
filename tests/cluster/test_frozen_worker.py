"""A worker freezes until Airflow declares it dead, and wakes up after a retry has taken over."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.airflow.airflow_processes import wait_ended
from tests.support.cluster.outcomes import assert_asked_once, assert_stopped, wait_followed

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.cluster.cluster_server import Cluster

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("frozen", ["the task", "the whole worker"])
def test_end_of_a_frozen_worker_leaves_the_run_to_the_retry(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster, frozen: str
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=False)
    process = task.processes.of_task(task.now())
    supervisor = process.parent()
    assert supervisor is not None
    worker = cluster.worker_of(process)
    stopped = [supervisor, process] if frozen == "the task" else cluster.tree(worker)
    for one in stopped:
        one.suspend()
    try:
        task.wait("running", try_number=2, or_later=True, timeout=180)
        sandbox.wait_until(lambda state: len(state.subscriptions) == 2)
    finally:
        for one in stopped:
            with suppress(psutil.NoSuchProcess):  # the worker ended it first
                one.resume()
    assert wait_ended([process], 60) == [], "the frozen try goes on"
    sandbox.release()
    task.wait("success", try_number=2, or_later=True)
    assert_asked_once(sandbox)


def test_run_of_a_task_ended_while_frozen_is_stopped_when_the_worker_wakes(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=False)
    process = task.processes.of_task(task.now())
    supervisor = process.parent()
    assert supervisor is not None
    for one in (supervisor, process):
        one.suspend()
    try:
        task.mark("failed")
        assert sandbox.state().aborts == []
    finally:
        for one in (supervisor, process):
            one.resume()
    sandbox.wait_until(lambda state: state.runs[0].status == "aborted", timeout=30)
    assert_stopped(sandbox)
