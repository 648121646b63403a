"""Branches in a DAG run against the sandbox: opened, asked, closed; both modes give the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.sensors.branches import PlatformBuildSensor
from tests.support.modes import in_both_modes, is_deferred

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture(autouse=True)
def builds(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(dbt_pace=0.02, build_delay=0.1, build_seconds=0.2, pace=0.01)


class TestSensor:
    @pytest.fixture
    def sense(self, request: pytest.FixtureRequest, run_dag: RunDag) -> Any:
        def run(**arguments: Any) -> FinishedTask:
            arguments = {"poke_interval": 0.05, "timeout": 30, **arguments}
            with DAG(dag_id="sense_build") as dag:
                PlatformBuildSensor(
                    task_id="sense", deferrable=is_deferred(request), retries=0, **arguments
                )
            return run_dag(dag).task("sense")

        return run

    @in_both_modes("sense")
    def test_sensor_returns_a_branch_that_somebody_else_opened(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.open_branch("theirs")
        found = sense(branch_name="theirs").xcoms["return_value"]
        assert (found["branch_name"], found["status"]) == ("theirs", "built")
        again = sense(branch_name="theirs", hash=found["hash"]).xcoms["return_value"]
        assert again == found

    def test_sensor_wakes_a_branch_that_sleeps(self, sense: Any, platform_sandbox: Sandbox) -> None:
        platform_sandbox.control.open_branch("theirs")
        platform_sandbox.control.advance(3600)
        assert sense(branch_name="theirs").xcoms["return_value"]["status"] == "built"

    def test_sensor_without_a_name_waits_for_production(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        found = sense().xcoms["return_value"]
        assert (found["branch_name"], found["mode"]) == ("main", "production")

    @in_both_modes("sense")
    def test_sensor_fails_for_a_branch_that_is_not_open(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.add_branch("closed")
        task = sense(branch_name="closed")
        assert task.error.startswith("AirflowFailException")
        assert "Branch is not active" in task.error

    @in_both_modes("sense")
    def test_a_commit_that_is_never_built_times_out(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        task = sense(hash="0" * 40, timeout=0.5)
        assert "timed out" in task.error
