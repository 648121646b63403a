"""A quality check that fails the run: rules in SQL, and the rows that break them in the log.

Each rule is a query that gives the rows that should not be there; and a query with no rows, or
with too many, fails too. `AirflowFailException` keeps Airflow from trying again what a retry cannot
mend; a service that cannot be reached is tried again.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.query import PlatformQueryOperator

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowFailException

log = logging.getLogger(__name__)

RULES = {
    "every order has an amount": "SELECT id, amount FROM orders WHERE amount <= 0",
    "no customer without a country": "SELECT id, name FROM customers WHERE country IS NULL",
    "no order above the limit": "SELECT id, amount FROM orders WHERE amount > {limit}",
}

with DAG(
    dag_id="quality_check",
    description="Fails when rows break a rule, and says which",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "limit": Param(
            100000, type="number", title="Limit", description="The highest credible amount"
        ),
        "most_orders": Param(
            50000, type="integer", title="Most orders", description="More orders are not credible"
        ),
    },
    default_args={"retries": 2},
) as dag:

    @task
    def check(params: dict[str, Any]) -> int:
        """The number of rules that hold: all of them, or the task fails."""
        broken = {}
        with PlatformHook() as hook:
            for rule, sql in RULES.items():
                rows = list(hook.run_sql(sql.format(limit=float(params["limit"]))))
                if rows:
                    broken[rule] = rows
        for rule, rows in broken.items():
            log.error("%s: %s rows break it, as %s", rule, len(rows), rows[:5])
        if broken:
            raise AirflowFailException(f"Broken: {', '.join(broken)}.")
        return len(RULES)

    orders = PlatformQueryOperator(
        task_id="orders", sql="SELECT id FROM orders LIMIT 50000", max_rows=5
    )

    @task
    def count(found: dict[str, Any], params: dict[str, Any]) -> int:
        """How many rows the query has: some, and not too many."""
        rows = int(found["row_count"])
        if not 0 < rows <= params["most_orders"]:
            raise AirflowFailException(f"{rows} orders: expected 1 to {params['most_orders']}.")
        return rows

    check()
    count(orders.output)
