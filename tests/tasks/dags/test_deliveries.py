"""Deliveries against the sandbox: both ways to wait give the same XComs, errors
and states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from tests.support.modes import in_both_modes, is_deferred

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture
def run_now(request: pytest.FixtureRequest, run_dag: RunDag) -> Any:
    """Run a delivery in a DAG of its own; returns the finished task."""

    def run(**arguments: Any) -> FinishedTask:
        ids = {"delivery_id": "{{ params.id }}"}
        with DAG(dag_id="run", params={"id": 501, "nothing": None}) as dag:
            PlatformRunDeliveryOperator(
                task_id="run",
                deferrable=is_deferred(request),
                retries=0,
                **{**ids, "poll_interval": 0.1, **arguments},
            )
        return run_dag(dag).task("run")

    return run


@in_both_modes("run_now")
def test_delivery_result_is_the_same_in_both_modes(run_now: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(delivery_seconds=0.4)
    task = run_now(if_running="{{ params.nothing }}")
    assert task.error is None
    result = task.xcoms["return_value"]
    assert {key: task.xcoms[key] for key in result} == result
    assert result["started"] is True
    assert result["status"] == "succeeded"
