"""The examples that need another provider, an asset event or a person, on a running Airflow."""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.airflow.task_run import PATIENCE, TaskRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.airflow_processes import AirflowProcesses
    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

TABLE = "warehouse://acme/analytics/public/orders"


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    return found


@pytest.fixture
def _alone(airflow: RunningAirflow) -> Iterator[None]:
    """One test at a time in all workers: the examples share the default connection."""
    with (airflow.home / "examples.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def example(
    _alone: None, api: AirflowApi, processes: AirflowProcesses, sandbox: PatientControl
) -> Iterator[Callable[..., TaskRun]]:
    """`example(dag_id, task_id, start=...)`: a task of the run that `start` causes."""
    api.put_connection("platform_default", sandbox.connection())
    started: list[TaskRun] = []

    def run(dag_id: str, task_id: str, start: Callable[[], Any] | None = None) -> TaskRun:
        wait_for(lambda: dag_id in api.dags())
        api.unpause(dag_id)
        before = set(api.runs(dag_id))
        start() if start else api.start_run(dag_id, {})
        # An event of an earlier attempt may cause a run too.
        run_id, *_ = wait_for(lambda: set(api.runs(dag_id)) - before)
        started.append(TaskRun(api, processes, dag_id, run_id, task_id))
        return started[-1]

    yield run
    for task in started:
        task.end()


def test_an_agent_of_airflow_asks_ours(
    example: Callable[..., TaskRun], api: AirflowApi, sandbox: PatientControl
) -> None:
    pytest.importorskip("airflow.providers.common.ai", reason="the common-ai provider")
    api.put_connection(
        "pydanticai_default", {"conn_type": "pydanticai", "extra": {"model": "test"}}
    )
    task = example("agent_asks_platform", "answer")
    task.wait("success")
    assert "sandbox's agent" in str(task.result)
    assert len(sandbox.state().messages) == 1


def test_pre_aggregations_follow_an_asset_event(
    example: Callable[..., TaskRun], api: AirflowApi, sandbox: PatientControl
) -> None:
    sandbox.set(default_api_scopes=["meta", "data", "graphql", "jobs"])
    task = example("model_follows_data", "prove", lambda: api.asset_event(TABLE))
    task.wait_run("success")
    assert task.result == ["orders.revenue_by_month"]


@pytest.mark.parametrize(("option", "merged"), [("Approve", 1), ("Reject", 0)])
def test_a_person_decides_on_the_merge(
    example: Callable[..., TaskRun],
    api: AirflowApi,
    sandbox: PatientControl,
    option: str,
    merged: int,
) -> None:
    sandbox.set(build_seconds=0.1, dbt_pace=0.1)
    task = example("approve_merge", "branch_gate.approve")
    task.until(lambda now: now["state"] in ("awaiting_input", "deferred"), "a question")
    assert not sandbox.state().changed("branches", "merged")
    api.approve(task.dag_id, task.run_id, task.task_id, option)
    task.wait_run("success" if merged else "failed")
    assert len(sandbox.state().changed("branches", "merged")) == merged
