"""Branches in a DAG run against the sandbox: opened, asked, closed; both modes give the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.sensors.branches import PlatformBuildSensor
from tests.support.modes import in_both_modes, is_deferred

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

COUNT = "SELECT COUNT(*) AS orders FROM orders"
modes = pytest.mark.parametrize("deferrable", [False, True], ids=["on the worker", "deferred"])
soon: dict[str, Any] = {"poll_interval": 0.05, "retries": 0}


@pytest.fixture(autouse=True)
def builds(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(dbt_pace=0.02, build_delay=0.1, build_seconds=0.2, pace=0.01)


@pytest.mark.exhaustive
@modes
def test_a_synced_branch_is_opened_asked_queried_and_closed(
    deferrable: bool, run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG(dag_id="open_ask_close") as dag:
        sync = PlatformDbtSyncOperator(task_id="sync", ref="main", deferrable=deferrable, **soon)
        branch = PlatformOpenBranchOperator(
            task_id="open",
            branch_name=sync.output["branch_name"],
            deferrable=deferrable,
            **soon,
        )
        name = branch.output["branch_name"]
        ask = PlatformChatOperator(
            task_id="ask", prompt="total revenue", active_branch_name=name, retries=0
        )
        count = PlatformQueryOperator(
            task_id="count", sql=COUNT, branch_name=name, deferrable=deferrable, retries=0
        )
        close = PlatformCloseBranchOperator(
            task_id="close", branch_name=branch.output["opened_branch"]
        ).as_teardown(setups=branch)
        [ask, count] >> close
    run = run_dag(dag)
    assert [run.task(name).error for name in ("sync", "open", "ask", "count", "close")] == [
        None
    ] * 5
    opened = run.task("open").xcoms
    assert opened["return_value"]["opened_branch"] == run.task("sync").xcoms["branch_name"]
    assert opened["return_value"]["branch_name"] == opened["branch_name"]
    assert opened["status"] == "built"
    assert int(run.task("count").xcoms["return_value"]["rows"][0][0]) > 0
    assert run.task("ask").xcoms["queries"][0]["error"] is None
    assert run.task("close").xcoms["return_value"]["closed"] is True


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
