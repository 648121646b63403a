"""Rebuild exactly the pre-aggregations that read the tables that were loaded.

The DAG runs when an asset gets an event: a dbt model that Cosmos ran, or a table that another task
loaded. The task builds the pre-aggregations that read the tables of these assets, by the
metadata of the data model. The proof is a query: the service says which pre-aggregations it read.

The DAG needs such an event. If you trigger it by hand, `build` fails, because it has no table.
"""

from __future__ import annotations

from airflow.sdk import DAG, Asset, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)

ORDERS = Asset("warehouse://acme/analytics/public/orders")
CUSTOMERS = Asset("warehouse://acme/analytics/public/customers")
QUERY = "SELECT month, SUM(amount) FROM orders GROUP BY month"

with DAG(
    dag_id="model_follows_data",
    description="Pre-aggregations follow the tables on which they stand",
    doc_md=__doc__,
    schedule=(ORDERS | CUSTOMERS),
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform", "recipe"],
):
    build = PlatformBuildPreAggregationsOperator(
        task_id="build",
        built_on=(  # an alias, which Cosmos uses, has no URI
            "{{ triggering_asset_events | map(attribute='uri') | select('defined') | list"
            " | tojson }}"
        ),
        deferrable=True,
    )

    @task.short_circuit
    def anything_built(table_count: int) -> bool:
        """Return False, which skips the proof, if nothing reads the tables."""
        return table_count > 0

    @task
    def prove() -> list[str]:
        """Fail if the service answers from the source tables, or without rows."""
        with PlatformHook() as hook:
            rows = hook.run_sql(QUERY, cache="must-revalidate")
            if not (rows.used_pre_aggregations and list(rows)):
                raise ValueError("The service answered without rows of a pre-aggregation.")
            return list(rows.used_pre_aggregations)

    anything_built(build.output["table_count"]) >> prove()  # type: ignore[arg-type]
