"""SIGTERM to a worker does not mean that somebody ended its task."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.airflow.airflow_processes import kill, wait_ended
from tests.support.cluster.outcomes import assert_asked_once, wait_followed

if TYPE_CHECKING:
    import psutil

    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun
    from tests.support.cluster.cluster_server import Cluster

pytestmark = pytest.mark.cluster

GRACES = {"killed at once": 0.0, "killed after a while": 2.0, "ended in time": 30.0}
"""Seconds between the signal that a pod's main process gets and the end of the pod."""


def asking(ask: StartTask, sandbox: PatientControl) -> tuple[TaskRun, psutil.Process]:
    """A task whose question is being answered, and the process of its code."""
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=False)
    return task, task.processes.of_task(task.now())


def wait_taken_up(task: TaskRun, sandbox: PatientControl) -> None:
    """Until a later try follows the run; it gets its answer then."""
    task.wait("running", try_number=2, or_later=True)
    sandbox.wait_until(lambda state: len(state.subscriptions) == 2)
    sandbox.release()
    task.wait("success", try_number=2, or_later=True)


@pytest.mark.parametrize("grace", GRACES)
def test_retry_reattaches_after_an_eviction(
    ask: StartTask, sandbox: PatientControl, grace: str
) -> None:
    """Only the pod's main process, which watches over the task's, is sent the SIGTERM."""
    task, process = asking(ask, sandbox)
    supervisor = process.parent()
    assert supervisor is not None
    supervisor.send_signal(signal.SIGTERM)
    left = wait_ended([process], GRACES[grace])
    kill([supervisor, process] if left else [])
    wait_taken_up(task, sandbox)
    assert_asked_once(sandbox)


def test_a_worker_that_shuts_down_lets_its_task_end(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """Celery's warm shutdown: SIGTERM to the main process, which waits for its tasks."""
    task, process = asking(ask, sandbox)
    worker = cluster.process(cluster.worker_of(process))
    worker.send_signal(signal.SIGTERM)
    sandbox.release()
    task.wait("success", try_number=1)
    assert_asked_once(sandbox)
    assert wait_ended([worker], 30) == []


def test_retry_reattaches_after_the_grace_period_of_a_warm_shutdown(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    task, process = asking(ask, sandbox)
    worker = cluster.worker_of(process)
    cluster.process(worker).send_signal(signal.SIGTERM)
    wait_ended([process], 3)
    cluster.kill(worker)
    wait_taken_up(task, sandbox)
    assert_asked_once(sandbox)


def test_retry_reattaches_after_a_cold_shutdown(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """Celery's cold shutdown: SIGQUIT to the main process, which ends its children."""
    task, process = asking(ask, sandbox)
    cluster.stop(cluster.worker_of(process), signal.SIGQUIT)
    wait_taken_up(task, sandbox)
    assert_asked_once(sandbox)
