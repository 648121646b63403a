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
SUM = "SELECT SUM(amount) FROM orders"
TOTAL = "SELECT SUM(amount) AS revenue FROM orders"
CUSTOMERS = "SELECT COUNT(*) FROM customers"


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL that tasks report to Airflow's collector."""
    reported: list[str] = []

    class Collector:
        def add_extra(self, context: Any, key: str, value: dict[str, Any]) -> None:
            reported.append(value["sql"])

    monkeypatch.setattr(compat, "get_hook_lineage_collector", Collector)
    return reported


def failed(run: Any) -> set[str]:
    return {task.task_id for task in run.tasks if task.state != "success"}


@pytest.mark.parametrize("deferrable", [False, True])
def test_operators_report_each_query_once(
    run_dag: RunDag, platform_sandbox: Sandbox, reported: list[str], deferrable: bool
) -> None:
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
        query >> bad >> ask >> fails
    run = run_dag(dag)
    assert failed(run) == {"bad", "fails"}
    asked = [query["sql"] for query in run.xcom("ask", "queries")]
    assert asked
    assert reported == [SQL, BAD, *asked, BAD]


@pytest.mark.parametrize("deferrable", [False, True])
def test_comparisons_builds_and_golden_questions_report_theirs(
    run_dag: RunDag, platform_sandbox: Sandbox, reported: list[str], deferrable: bool
) -> None:
    control = platform_sandbox.control
    control.set(default_api_scopes=["meta", "data", "graphql", "jobs"], jobs_outcome="no_rows")
    control.set(jobs_outcome_of=["customers.by_country"])
    control.open_branch("feature/a")
    token = platform_sandbox.connection()["password"]
    count = "SELECT COUNT(*) FROM orders WHERE status <> '{}'"
    with DAG(dag_id="lineage_of_others", default_args={"retries": 0}) as dag:
        given: dict[str, Any] = {"deferrable": deferrable, "poll_interval": 0.05}
        compare = PlatformCompareOperator(
            task_id="compare", queries=[count.format(token)], branch_name="feature/a"
        )
        tables = {"orders.revenue_by_month": SUM, "customers.by_country": CUSTOMERS}
        builds = [
            PlatformBuildPreAggregationsOperator(
                task_id=name, pre_aggregations=[name], verify_sql=sql, missing_grace=0.1, **given
            )
            for name, sql in {**tables, "products.by_category": None}.items()
        ]
        questions = [
            {"name": "right", "question": f"sql: {SUM}", "sql": TOTAL},
            {"name": "bad", "question": f"sql: {BAD}", "sql": TOTAL},
            {"name": "bad truth", "question": f"sql: {SUM}", "sql": BAD},
        ]
        golden = PlatformEvaluationOperator(
            task_id="golden", questions=questions, threshold=0.0, min_measured=0.0, **given
        )
        compare >> builds
        builds[0] >> builds[1]
        builds[2] >> golden
    run = run_dag(dag)
    assert failed(run) == {"customers.by_country"}, [task.error for task in run.tasks]
    sent = [count.format("***"), SUM, CUSTOMERS, TOTAL, SUM]
    assert sorted(reported) == sorted(sent)
