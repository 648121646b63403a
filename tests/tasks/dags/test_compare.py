"""Comparisons of a branch with production in DAG runs against the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.compare import PlatformCompareOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

BRANCH = "nightly"
TOTAL = "SELECT COUNT(*) AS orders, SUM(amount) AS revenue FROM orders"


def test_arguments_are_templates_and_queries_may_be_files(
    run_dag: RunDag, tmp_path: Path, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.open_branch(BRANCH)
    (tmp_path / "total.sql").write_text("SELECT COUNT(*) AS n FROM orders -- {{ params.branch }}")
    with DAG(
        dag_id="compare_templates", template_searchpath=str(tmp_path), params={"branch": BRANCH}
    ) as dag:
        PlatformCompareOperator(
            task_id="compare",
            branch_name="{{ params.branch }}",
            queries={"total": "total.sql"},
        )
    run = run_dag(dag)
    [query] = run.xcom("compare")["queries"]
    assert query["sql"] == "SELECT COUNT(*) AS n FROM orders -- nightly"
    paths = [one.path for one in platform_sandbox.control.state().requests]
    assert [BRANCH in path for path in paths if path.endswith("/cubesql")] == [False, True]


def test_gate_does_not_merge_a_branch_whose_numbers_move_beyond_the_tolerance(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(branch_lacks_months=["2025-12"])
    platform_sandbox.control.add_branch("synced")
    with (
        DAG(dag_id="gated", default_args={"retries": 0}) as dag,
        branch_gate("synced", group_id="gate", poll_interval=0.05) as gate,
    ):
        PlatformCompareOperator(
            task_id="compare", branch_name=gate.branch_name, queries=[TOTAL], tolerance=0.05
        )
    run = run_dag(dag)
    assert run.states["gate.merge"] == "upstream_failed"
    assert platform_sandbox.control.state().changed("branches", "merged") == []
