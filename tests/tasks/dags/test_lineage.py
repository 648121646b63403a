"""What the tasks of both modes report to Airflow's lineage collector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.compat.lineage import hook as compat
from airflow.sdk import DAG

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.compare import PlatformCompareOperator
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from airflow_provider_platform.operators.query import PlatformQueryOperator

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

SQL = "SELECT id FROM orders"
BAD = "SELECT nonsense FROM orders"
COUNT = "SELECT COUNT(*) FROM orders"
SUM = "SELECT SUM(amount) FROM orders"
TOTAL = "SELECT SUM(amount) AS revenue FROM orders"


@pytest.mark.parametrize("deferrable", [False, True])
def test_operators_report_each_query_once(
    run_dag: RunDag,
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    deferrable: bool,
) -> None:
    reported: list[str] = []
    control = platform_sandbox.control
    control.set(default_api_scopes=["meta", "data", "graphql", "jobs"])

    class Collector:
        def add_extra(self, context: Any, key: str, value: dict[str, Any]) -> None:
            reported.append(value["sql"])

    monkeypatch.setattr(compat, "get_hook_lineage_collector", Collector)
    with DAG(dag_id="lineage", default_args={"retries": 0}) as dag:
        given: dict[str, Any] = {"deferrable": deferrable}
        query = PlatformQueryOperator(task_id="query", sql=SQL, **given)
        bad = PlatformQueryOperator(task_id="bad", sql=BAD, trigger_rule="all_done", **given)
        given["poll_interval"] = 0.05
        ask = PlatformChatOperator(
            task_id="ask", prompt="revenue by country", trigger_rule="all_done", **given
        )
        fails = PlatformChatOperator(
            task_id="fails", prompt=f"sql: {BAD}", trigger_rule="all_done", **given
        )
        control.open_branch("feature/a")
        compare = PlatformCompareOperator(
            task_id="compare", queries=[COUNT], branch_name="feature/a", trigger_rule="all_done"
        )
        build = PlatformBuildPreAggregationsOperator(
            task_id="build", pre_aggregations=["orders.revenue_by_month"], verify_sql=SUM, **given
        )
        questions = [{"name": "r", "question": f"sql: {SUM}", "sql": TOTAL}]
        golden = PlatformEvaluationOperator(task_id="golden", questions=questions, **given)
        query >> bad >> ask >> fails >> compare >> build >> golden
    run = run_dag(dag)
    states = {task.task_id: task.state for task in run.tasks}
    failed = {name for name, state in states.items() if state != "success"}
    assert failed == {"bad", "fails"}, [task.error for task in run.tasks]
    asked = [query["sql"] for query in run.xcom("ask", "queries")]
    assert asked
    assert reported == [SQL, BAD, *asked, BAD, COUNT, SUM, TOTAL, SUM]
