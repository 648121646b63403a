"""What a task does not notice, or its retry makes up for: whatever the cluster loses on the way,
each question is asked once."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.cluster.dags.chats import CHATS, QUESTIONS
from tests.support.cluster.cluster_server import WORKERS
from tests.support.cluster.outcomes import assert_asked_once, followers, wait_followed

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun
    from tests.support.cluster.cluster_server import Cluster

pytestmark = pytest.mark.cluster

_LONG = 240.0


def start_both(ask: StartTask, sandbox: PatientControl) -> tuple[TaskRun, TaskRun]:
    """Start a chat on a worker and one in the triggerer. The sandbox stops both in the middle of
    their answers. Their retries outlast a restart."""
    asked = {"revenue by country": False, "revenue by month": True}
    for text in asked:
        sandbox.set_breakpoint("mid_stream", text=text)
    running, deferred = (
        ask(text, dag_id="ask_patiently", deferrable=deferrable)
        for text, deferrable in asked.items()
    )
    sandbox.wait_until(lambda state: len(state.runs) == 2)
    wait_followed(running, deferrable=False)
    wait_followed(deferred, deferrable=True)
    return running, deferred


def test_retry_reattaches_after_a_killed_worker(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=False)
    cluster.kill(cluster.worker_of(task.processes.of_task(task.now())))
    task.wait("running", try_number=2)
    sandbox.release()
    task.wait("success", try_number=2)
    assert_asked_once(sandbox)


def test_chat_survives_a_killed_triggerer(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """Its chats move to the other one."""
    for text in QUESTIONS:
        sandbox.set_breakpoint("mid_stream", text=text)
    tasks = [ask(text, deferrable=True) for text in QUESTIONS]
    for text, task in zip(QUESTIONS, tasks, strict=True):
        wait_followed(task, deferrable=True)
        # Submitted, and taken over by a trigger.
        sandbox.wait_until(lambda _, text=text: followers(sandbox, text) >= 2)
    before = sum(followers(sandbox, text) for text in QUESTIONS)
    cluster.kill(cluster.triggerers_with_connections_to(sandbox.url)[0])
    sandbox.wait_until(lambda _: sum(followers(sandbox, text) for text in QUESTIONS) > before)
    sandbox.release()
    for task in tasks:
        task.wait("success", try_number=1)
    assert_asked_once(sandbox, len(QUESTIONS))


def test_task_delivered_twice_asks_once(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """Redis takes a worker that has not acknowledged in time for dead; a running task has not.

    The second worker is refused, in one of two ways. The task runs already; or the message's
    token, which lives as long as a task may be queued, has expired. That counts as a failure of the
    task, and Airflow ends the running try: its retry takes the run up.
    """
    sandbox.set_breakpoint("mid_stream")
    task = ask()
    sandbox.wait_for_breakpoint("mid_stream")
    wait_followed(task, deferrable=False)
    refused = ("already running elsewhere", "Invalid auth token")

    def refusals() -> int:
        return sum(cluster.log(name).count(words) for name in WORKERS for words in refused)

    before = refusals()
    task.until(lambda _: refusals() > before, "the second delivery", timeout=_LONG)
    sandbox.release()
    task.wait("success", try_number=1, or_later=True)
    assert_asked_once(sandbox)


def test_chat_survives_a_restart_of_postgresql(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """It ends the scheduler, the DAG processor and the triggerers; they are started again."""
    running, deferred = start_both(ask, sandbox)
    before = cluster.starts("scheduler")
    with cluster.without("postgres", signal.SIGINT):
        cluster.wait_started("scheduler", before + 1)
    cluster.postgres.wait()
    cluster.wait_healthy()
    sandbox.release()
    for task in (running, deferred):
        task.wait("success", timeout=_LONG)
    assert_asked_once(sandbox, 2)


def test_chat_survives_a_restart_of_redis(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """One chat ends while there is no broker to queue its task with."""
    running, deferred = start_both(ask, sandbox)
    with cluster.without("redis", signal.SIGTERM):
        sandbox.release()
        running.wait("success", try_number=1)
        deferred.wait("scheduled", "queued", "up_for_retry")
    cluster.redis.wait()
    deferred.wait("success", timeout=_LONG)
    assert_asked_once(sandbox, 2)


def test_many_chats_survive_a_killed_triggerer(
    start_task: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    sandbox.set_breakpoint("mid_stream", count=CHATS)
    tasks = start_task("ask_many", "ask", deferrable=True)
    sandbox.wait_until(
        lambda state: len({one.message_id for one in state.subscriptions[CHATS:]}) == CHATS,
        timeout=_LONG,
    )
    cluster.kill(cluster.triggerers_with_connections_to(sandbox.url)[0])
    sandbox.release()
    tasks.mapped(0).wait_run("success", timeout=_LONG)
    assert_asked_once(sandbox, CHATS)
