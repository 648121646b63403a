"""A quality check that fails the run: rules in SQL, and the rows that break them in the log.

Each rule is a query that returns the rows that break the rule. If a query returns rows, the task
`check` fails with `AirflowFailException`, without a retry, because a retry would find the same
rows. If the service cannot be reached, Airflow retries the task.

The task `count` fails if there are no orders, or too many. The service returns at most 10,000 rows
of a query, or 50,000 if it has a `LIMIT`, so a longer result cannot be counted. Therefore the query
asks for one row more than the allowed number. If your deployment has other limits, set them in the
connection (`default_row_limit`, `max_row_limit`). Otherwise a result that the service has cut can
look complete, and the check passes.
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
    "every order has an amount": (
        "SELECT id, amount FROM orders WHERE amount IS NULL OR amount <= 0"
    ),
    "no customer without a country": "SELECT id, name FROM customers WHERE country IS NULL",
    "no order above {limit:,.0f}": "SELECT id, amount FROM orders WHERE amount > {limit}",
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
            10_000,
            type="integer",
            minimum=1,
            maximum=49_999,
            title="Most orders",
            description="More orders are not credible",
        ),
    },
    default_args={"retries": 2},
) as dag:

    @task
    def check(params: dict[str, Any]) -> int:
        """The number of rules that hold: all of them, or the task fails."""
        broken = []
        with PlatformHook() as hook:
            for rule, sql in RULES.items():
                limit = float(params["limit"])
                result = hook.run_sql(sql.format(limit=limit))
                rows = list(result)
                if rows:
                    more = "at least " if result.truncated else ""
                    said = f"{rule.format(limit=limit)}: {more}{len(rows)} rows break it"
                    log.error("%s, as %s", said, rows[:5])
                    broken.append(said)
        if broken:
            raise AirflowFailException(f"{'; '.join(broken)}.")
        return len(RULES)

    orders = PlatformQueryOperator(
        task_id="orders",
        sql="SELECT id FROM orders LIMIT {{ params.most_orders + 1 }}",
        max_rows=5,
        on_truncated="fail",
    )

    @task
    def count(found: dict[str, Any], params: dict[str, Any]) -> int:
        """How many rows the query has: some, and not too many."""
        rows, most = int(found["row_count"]), int(params["most_orders"])
        if rows > most or found["truncated"]:
            raise AirflowFailException(f"More than {most} orders: expected 1 to {most}.")
        if rows == 0:
            raise AirflowFailException(f"No orders: expected 1 to {most}.")
        return rows

    check()
    count(orders.output)
