"""Comparisons of a branch with production in DAG runs against the sandbox."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.compare import PlatformCompareOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

BRANCH = "nightly"
BY_MONTH = "SELECT month, COUNT(*) AS orders, SUM(amount) AS revenue FROM orders GROUP BY 1"
TOTAL = "SELECT COUNT(*) AS orders, SUM(amount) AS revenue FROM orders"


@pytest.fixture(autouse=True)
def branch(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.open_branch(BRANCH)


def lack_december(sandbox: Sandbox) -> None:
    sandbox.control.set(branch_lacks_months=["2025-12"])


def compared(run_dag: RunDag, **arguments: Any) -> FinishedRun:
    arguments = {"branch_name": BRANCH, "retries": 0, **arguments}
    with DAG(dag_id="compared", params={"branch": BRANCH, "limit": 0.5}) as dag:
        PlatformCompareOperator(task_id="compare", **arguments)
    return run_dag(dag)


def result(run: FinishedRun) -> dict[str, Any]:
    assert run.state == "success", run.task("compare").error
    found: dict[str, Any] = run.xcom("compare")
    return found


def test_equal_numbers_are_the_same(run_dag: RunDag) -> None:
    found = result(compared(run_dag, queries={"months": BY_MONTH, "total": TOTAL}))
    assert (found["verdict"], found["compared"], found["moved"]) == ("same", 26, 0)
    assert [query["name"] for query in found["queries"]] == ["months", "total"]
    assert all(query["moved"] == [] for query in found["queries"])


def test_number_that_moves_beyond_the_tolerance_fails_the_task(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    lack_december(platform_sandbox)
    run = compared(run_dag, queries=[TOTAL], tolerance=0.05, retries=3)
    error = str(run.task("compare").error)
    assert "Branch nightly changes numbers by more than the tolerance. query 1: " in error
    assert "orders is 426, in production 480 (-11.25 %)" in error
    assert run.states["compare"] == "failed"  # not up_for_retry: the numbers would be the same


def test_numbers_that_move_within_the_tolerance_pass(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    lack_december(platform_sandbox)
    found = result(compared(run_dag, queries=[TOTAL], tolerance=0.5))
    assert (found["verdict"], found["compared"], found["moved"]) == ("within_tolerance", 2, 2)
    [query] = found["queries"]
    [orders] = [move for move in query["moved"] if move["column"] == "orders"]
    assert orders == {
        "key": {},
        "column": "orders",
        "production": "480",
        "branch": "426",
        "percent": -11.25,
    }


def test_difference_is_only_a_warning_if_the_task_asks_for_that(
    run_dag: RunDag, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    lack_december(platform_sandbox)
    found = result(compared(run_dag, queries={"months": BY_MONTH}, on_difference="warn"))
    assert (found["verdict"], found["queries"][0]["rows_missing"]) == ("moved", 1)
    assert "months: missing rows: 1." in capsys.readouterr().out


def test_measures_are_compared_by_their_dimensions(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    lack_december(platform_sandbox)
    arguments = {"measures": ["orders.revenue", "orders.count"], "by": ["orders.status"]}
    found = result(compared(run_dag, tolerance="{{ params.limit }}", **arguments))
    [query] = found["queries"]
    assert query["sql"] == (
        'SELECT "status", MEASURE("revenue") AS "revenue", MEASURE("count") AS "count" '
        'FROM "orders" GROUP BY 1 LIMIT 50000'
    )
    assert {move["key"]["status"] for move in query["moved"]} == {"delivered", "returned"}
    assert (query["name"], query["compared"], query["moved_count"]) == ("orders", 4, 4)


def test_queries_of_a_workbooks_reports_are_compared(run_dag: RunDag) -> None:
    found = result(compared(run_dag, workbook_id=301))
    assert len(found["queries"]) == 2
    assert found["verdict"] == "same"


def test_report_without_sql_is_refused(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    from airflow_provider_platform.hooks.platform import PlatformHook

    with PlatformHook() as hook:
        hook.call("updateReport", deployment_id=1, report_id=101, body={"sqlQuery": None})
    error = str(compared(run_dag, workbook_id=301).task("compare").error)
    assert re.search(r"workbook 301 has 2 reports, without SQL: .* \(101\)\. Give the", error)
    assert not any(
        one.path.endswith("/cubesql") for one in platform_sandbox.control.state().requests
    )


def test_arguments_are_templates_and_queries_may_be_files(
    run_dag: RunDag, tmp_path: Path, platform_sandbox: Sandbox
) -> None:
    (tmp_path / "total.sql").write_text("SELECT COUNT(*) AS n FROM orders -- {{ params.branch }}")
    with DAG(
        dag_id="templates", template_searchpath=str(tmp_path), params={"branch": BRANCH}
    ) as dag:
        PlatformCompareOperator(
            task_id="compare",
            branch_name="{{ params.branch }}",
            queries={"total": "total.sql"},
        )
    run = run_dag(dag)
    [query] = result(run)["queries"]
    assert query["sql"] == "SELECT COUNT(*) AS n FROM orders -- nightly"
    paths = [one.path for one in platform_sandbox.control.state().requests]
    assert [BRANCH in path for path in paths if path.endswith("/cubesql")] == [False, True]


def test_query_that_fails_on_the_branch_only_fails_the_task(
    run_dag: RunDag, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    platform_sandbox.control.add_branch("closed")
    run = compared(run_dag, branch_name="closed", queries={"total": TOTAL}, on_difference="warn")
    assert "Branch is not active" in str(run.task("compare").error)
    assert f"A query could not be compared: total: {TOTAL}" in capsys.readouterr().out


def test_production_beside_itself_is_refused_before_any_query(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    run = compared(run_dag, branch_name="main", queries=[TOTAL])
    assert "this is the production branch" in str(run.task("compare").error)
    paths = [one.path for one in platform_sandbox.control.state().requests]
    assert not any(path.endswith("/cubesql") for path in paths)


def test_log_says_which_branch_measures_and_numbers_were_compared(
    run_dag: RunDag, capsys: pytest.CaptureFixture[str]
) -> None:
    compared(run_dag, measures=["orders.count"], by=["orders.status"])
    log = capsys.readouterr().out
    assert (
        "Branch nightly beside production: orders: 2 numbers are the same (count by status): "
        in log
    )
    assert "count of status=delivered is " in log


def test_result_that_may_be_cut_is_never_the_same(
    run_dag: RunDag, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.set(data_default_rows=100)
    connection = platform_sandbox.control.connection()
    connection["extra"] = {**connection["extra"], "default_row_limit": 100}
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(connection))
    run = compared(run_dag, queries=["SELECT id, amount FROM orders"], keys=["id"])
    assert "Nothing was compared. The result may be incomplete" in str(run.task("compare").error)


@pytest.mark.parametrize("moves", [False, True])
def test_gate_merges_only_a_branch_whose_numbers_are_within_the_tolerance(
    run_dag: RunDag, platform_sandbox: Sandbox, moves: bool
) -> None:
    if moves:
        lack_december(platform_sandbox)
    platform_sandbox.control.add_branch("synced")
    with (
        DAG(dag_id="gated", default_args={"retries": 0}) as dag,
        branch_gate("synced", group_id="gate", poll_interval=0.05) as gate,
    ):
        PlatformCompareOperator(
            task_id="compare", branch_name=gate.branch_name, queries=[TOTAL], tolerance=0.05
        )
    run = run_dag(dag)
    assert run.states["gate.merge"] == ("upstream_failed" if moves else "success")
    merged = platform_sandbox.control.state().changed("branches", "merged")
    assert [str(entry.id) for entry in merged] == ([] if moves else ["synced"])
