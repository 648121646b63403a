"""The result of a task key by key, as downstream tasks get it: also what has no value, on every
release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformNotificationRecipientsOperator,
)
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.operators.workbooks import PlatformDuplicateWorkbookOperator

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

QUESTION = "Revenue by country"


def succeeded(run: FinishedRun) -> FinishedRun:
    """The run. Without retries: `DAG.test` would sit out their delays."""
    assert run.state == "success", {task.name: task.error for task in run.tasks}
    return run


@pytest.mark.parametrize("deferrable", [False, True])
def test_missing_usage_is_none_downstream(
    run_dag: RunDag, platform_sandbox: Sandbox, deferrable: bool
) -> None:
    platform_sandbox.control.fault("no_usage")
    with DAG(dag_id="no_usage") as dag:
        ask = PlatformChatOperator(task_id="ask", prompt=QUESTION, deferrable=deferrable)

        @task
        def take(usage: Any, answer: str) -> list[Any]:
            return [usage, answer]

        @task
        def pull(ti: Any = None) -> list[Any]:
            return [ti.xcom_pull("ask", key="usage"), ti.xcom_pull("ask")["usage"]]

        take(ask.output["usage"], ask.output["answer"])
        ask >> pull()
    run = succeeded(run_dag(dag))
    result = run.xcom("ask")
    assert result["usage"] is None
    assert run.task("ask").xcoms.get("usage") is None
    assert {key: run.xcom("ask", key) for key in result if key != "usage"} == {
        key: value for key, value in result.items() if key != "usage"
    }
    assert run.xcom("take") == [None, result["answer"]]
    assert run.xcom("pull") == [None, None]


def test_missing_sync_result_is_none_downstream(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    with DAG(dag_id="no_result") as dag:
        sync = PlatformDbtSyncOperator(task_id="sync", wait_for_completion=False)

        @task
        def take(status: Any, result: Any, branch_name: str) -> list[Any]:
            return [status, result, branch_name]

        take(sync.output["status"], sync.output["result"], sync.output["branch_name"])
    run = succeeded(run_dag(dag))
    result = run.xcom("sync")
    assert result["status"] is None
    assert result["sync_job_id"] == run.xcom("sync", "sync_job_id")
    assert run.xcom("take") == [None, None, result["branch_name"]]


def test_multiple_outputs_works_with_post_execute(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    """`multiple_outputs` and `post_execute` are Airflow's own parameters."""
    seen: list[Any] = []

    def after(context: Any, result: Any) -> None:
        seen.append(result["name"])

    with DAG(dag_id="author") as dag:
        PlatformApiOperator(
            task_id="read",
            method="GET",
            path="/v1/deployments/1/reports/101",
            response_filter=lambda report: {"name": report["name"], "folder": None},
            multiple_outputs=True,
            post_execute=after,
        )
    run = succeeded(run_dag(dag))
    assert seen == [run.xcom("read", "name")] == [run.xcom("read")["name"]]
    assert run.task("read").xcoms.get("folder") is None


def test_every_object_is_pushed_key_by_key(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    with DAG(dag_id="objects") as dag:
        create = PlatformCreateNotificationOperator(
            task_id="create", dashboard_id=501, schedule_type="DAILY", hour=7
        )
        who = PlatformNotificationRecipientsOperator(
            task_id="who",
            notification_id=create.output["id"],
            add=[{"type": "USER", "email": "analyst@acme.example.com"}],
        )
        clone = PlatformDuplicateWorkbookOperator(task_id="clone", workbook_id=301)
        query = PlatformQueryOperator(task_id="query", sql="SELECT 1 AS one", deferrable=False)

        @task
        def take(workbook: Any, rows: Any) -> list[Any]:
            return [workbook, rows]

        who >> take(clone.output["id"], query.output["rows"])
    run = succeeded(run_dag(dag))
    created = run.xcom("create")
    assert run.xcom("create", "id") == created["id"]
    assert [recipient["email"] for recipient in run.xcom("who")] == ["analyst@acme.example.com"]
    assert run.xcom("take") == [run.xcom("clone")["id"], run.xcom("query")["rows"]]
