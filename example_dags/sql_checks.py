"""Check data with Airflow's own SQL operators, which use the `platform` connection as a database.

The sensor waits for the month's orders. The checks fail the run if the rows are wrong. The last
query gives its rows to the next task as Python values. The operators come from the provider
`common.sql`, which Airflow installs. They only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.sql.operators.sql import (
    SQLCheckOperator,
    SQLExecuteQueryOperator,
    SQLThresholdCheckOperator,
    SQLValueCheckOperator,
)
from airflow.providers.common.sql.sensors.sql import SqlSensor
from airflow.sdk import DAG, Param, task

if TYPE_CHECKING:
    from decimal import Decimal

CONN = {"conn_id": "platform_default"}

with DAG(
    dag_id="sql_checks",
    description="Wait for the orders of a month, check them, and list the countries with returns",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "month": Param(
            "2025-03",
            type="string",
            pattern=r"^\d{4}-\d{2}$",
            title="Month",
            description="The month to check",
        ),
    },
    default_args={"retries": 2},
) as dag:
    month = {"month": "{{ params.month }}"}

    orders_are_there = SqlSensor(
        task_id="orders_are_there",
        sql="SELECT COUNT(*) FROM orders WHERE month = %(month)s",
        parameters=month,
        mode="reschedule",
        poke_interval=300,
        timeout=6 * 3600,
        **CONN,
    )

    # Every value of the row must be true. The check operators render `sql`, not `parameters`.
    amounts_are_right = SQLCheckOperator(
        task_id="amounts_are_right",
        sql="""
            SELECT MIN(amount) > 0, COUNT(*) = COUNT(amount)
            FROM orders WHERE month = '{{ params.month }}'
        """,
        **CONN,
    )

    twelve_products = SQLValueCheckOperator(
        task_id="twelve_products",
        sql="SELECT COUNT(*) FROM products",
        pass_value=12,
        **CONN,
    )

    few_returns = SQLThresholdCheckOperator(
        task_id="few_returns",
        sql="""
            SELECT 100.0 * SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) / COUNT(*)
            FROM orders WHERE month = '{{ params.month }}'
        """,
        min_threshold=0,
        max_threshold=25,
        **CONN,
    )

    # To set a branch, a time zone or a timeout, use hook_params.
    returns = SQLExecuteQueryOperator(
        task_id="returns",
        sql="""
            SELECT c.country, COUNT(*) AS returned, SUM(p.fee) AS fee
            FROM orders o
            JOIN customers c ON c.id = o.customer_id
            JOIN payments p ON p.order_id = o.id
            WHERE o.month = %(month)s AND o.status IN %(states)s
            GROUP BY c.country ORDER BY returned DESC, c.country
        """,
        parameters={**month, "states": ["returned"]},
        hook_params={"timeout": 120, "on_truncated": "fail"},
        **CONN,
    )

    @task
    def total(rows: list[tuple[str, int, Decimal]]) -> dict[str, Any]:
        """Use the rows: tuples of Python values, so numbers need no conversion."""
        return {"countries": len(rows), "returned": sum(returned for _, returned, _ in rows)}

    orders_are_there >> [amounts_are_right, twelve_products, few_returns] >> returns
    total(returns.output)
