"""Airflow's own SQL operators on the `platform` connection, as tasks of real DAG runs."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.sql.operators.generic_transfer import GenericTransfer
from airflow.providers.common.sql.operators.sql import (
    BranchSQLOperator,
    SQLCheckOperator,
    SQLColumnCheckOperator,
    SQLExecuteQueryOperator,
    SQLIntervalCheckOperator,
    SQLTableCheckOperator,
    SQLThresholdCheckOperator,
    SQLValueCheckOperator,
)
from airflow.providers.common.sql.sensors.sql import SqlSensor
from airflow.sdk import DAG, task

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

CONN = {"conn_id": "platform_default"}
PAYMENT = "SELECT id, paid_on, paid_at, fee, settled, note FROM payments WHERE id = %(id)s"


def queries(sandbox: Sandbox) -> int:
    return sum("cubesql" in request.path for request in sandbox.control.state().requests)


def test_sql_operators_query_and_check_through_the_connection(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    seen: list[Any] = []
    with DAG(dag_id="sql_operators", params={"id": 7}) as dag:
        rows = SQLExecuteQueryOperator(
            task_id="rows",
            sql=PAYMENT,
            parameters={"id": "{{ params.id | int }}"},
            hook_params={"types": {"paid_at": "timestamp"}},
            **CONN,
        )

        @task
        def values(found: list[Any]) -> None:
            seen.extend(found)

        several = SQLExecuteQueryOperator(
            task_id="several",
            sql="SELECT 1 AS one; SELECT '100%' AS two;",
            split_statements=True,
            return_last=False,
            **CONN,
        )
        checks = [
            SQLCheckOperator(task_id="check", sql="SELECT COUNT(*), 1 FROM orders", **CONN),
            SQLValueCheckOperator(
                task_id="value", sql="SELECT COUNT(*) FROM orders", pass_value=480, **CONN
            ),
            SQLThresholdCheckOperator(
                task_id="threshold",
                sql="SELECT AVG(fee) FROM payments",
                min_threshold="SELECT MIN(fee) FROM payments",
                max_threshold=100.5,
                **CONN,
            ),
            SQLIntervalCheckOperator(
                task_id="interval",
                table="orders",
                metrics_thresholds={"COUNT(*) + 1": 2},
                date_filter_column="ordered_at",
                **CONN,
            ),
            SQLColumnCheckOperator(
                task_id="columns",
                table="payments",
                column_mapping={
                    "id": {"null_check": {"equal_to": 0}, "unique_check": {"equal_to": 0}},
                    "fee": {"min": {"geq_to": 0}, "max": {"less_than": 1000}},
                },
                **CONN,
            ),
            SQLTableCheckOperator(
                task_id="table",
                table="orders",
                checks={
                    "as_many_as_ever": {"check_statement": "COUNT(*) = 480"},
                    "positive": {"check_statement": "MIN(amount) > 0"},
                },
                **CONN,
            ),
            SqlSensor(
                task_id="sensor",
                sql="SELECT COUNT(*) FROM orders WHERE status = %(status)s",
                parameters={"status": "returned"},
                poke_interval=0.1,
                timeout=60,
                **CONN,
            ),
        ]
        branch = BranchSQLOperator(
            task_id="branch",
            sql="SELECT COUNT(*) > 0 FROM orders",
            follow_task_ids_if_true="several",
            follow_task_ids_if_false="rows",
            **CONN,
        )
        values(rows.output)
        checks >> branch >> several
        values(several.output)
    run = run_dag(dag)
    assert run.state == "success", [(one.task_id, one.error) for one in run.tasks if one.error]
    row, *others = sorted(seen, key=len, reverse=True)
    assert [*map(type, row)] == [int, date, datetime, Decimal, bool, str]
    assert row[0] == 7
    assert others == [[(1,)], [("100%",)]]


@pytest.mark.exhaustive
def test_sql_decorator_reads_rows_and_generic_transfer_is_refused(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    assert platform_sandbox
    pytest.importorskip("airflow.providers.common.sql.decorators", reason="an older SQL provider")
    with DAG(dag_id="sql_functions") as dag:

        @task.sql(**CONN)  # type: ignore[attr-defined]
        def made(status: str) -> str:
            return f"SELECT COUNT(*) FROM orders WHERE status = '{status}'"

        @task
        def counted(found: list[Any]) -> int:
            return int(found[0][0])

        counted(made("delivered"))
        GenericTransfer(
            task_id="into",
            sql="SELECT 1",
            destination_table="orders",
            source_conn_id="platform_default",
            destination_conn_id="platform_default",
        )
    run = run_dag(dag)
    assert run.xcom("counted") > 0
    [refused] = [one for one in run.tasks if one.task_id == "into"]
    assert "insert_rows is not supported: the service's SQL is read-only" in str(refused.error)


@pytest.mark.exhaustive
def test_failed_check_and_writing_statement_fail_their_tasks(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG(dag_id="sql_refusals") as dag:
        check = SQLCheckOperator(
            task_id="check", sql="SELECT COUNT(*) FROM orders WHERE status = 'lost'", **CONN
        )
        insert = SQLExecuteQueryOperator(
            task_id="insert", sql="INSERT INTO orders VALUES (1)", trigger_rule="all_done", **CONN
        )
        slip = SQLExecuteQueryOperator(
            task_id="slip",
            sql="SELECT 1",
            hook_params={"branch": "a"},
            trigger_rule="all_done",
            **CONN,
        )
        check >> insert >> slip
    run = run_dag(dag)
    errors = {one.task_id: str(one.error) for one in run.tasks}
    assert "Test failed" in errors["check"]
    assert "it begins with INSERT, and the service's SQL is read-only" in errors["insert"]
    assert "'branch' in hook_params is not a keyword of the hook" in errors["slip"]
    assert queries(platform_sandbox) == 1
