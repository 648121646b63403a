"""Compare a new data model with production before anybody sees it.

A dbt sync writes the model to a branch. Nobody can query the branch until it is open. The DAG opens
the branch and counts orders on the branch and on production. If the branch has fewer orders than
production, `compare` fails, and the DAG keeps the branch. It closes the branch in any case, and
deletes it after a success. If your release of the platform cannot open a branch, the DAG fails.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.sensors.branches import PlatformBuildSensor

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowFailException

COUNT = "SELECT COUNT(*) AS orders FROM orders"

with DAG(
    dag_id="branches",
    description="Counts orders on a synced branch and on production",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform", "recipe"],
    default_args={"retries": 2},
) as dag:
    sync = PlatformDbtSyncOperator(
        task_id="sync_dbt",
        branch_name="compare-{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
    )
    open_branch = PlatformOpenBranchOperator(
        task_id="open_branch",
        branch_name=sync.output["branch_name"],
        deferrable=True,
    )
    on_branch = PlatformQueryOperator(
        task_id="count_on_branch", sql=COUNT, branch_name=open_branch.output["branch_name"]
    )
    close_branch = PlatformCloseBranchOperator(
        task_id="close_branch", branch_name=open_branch.output["opened_branch"]
    )
    delete_branch = PlatformDeleteBranchOperator(
        task_id="delete_branch",
        branch_name=sync.output["branch_name"],
    )

    # During a build, for example after a merge, production still counts with the old model.
    production_is_built = PlatformBuildSensor(
        task_id="production_is_built", timeout=timedelta(minutes=15), deferrable=True
    )
    on_production = PlatformQueryOperator(task_id="count_on_production", sql=COUNT)

    @task
    def compare(branch: dict[str, Any], production: dict[str, Any]) -> dict[str, int]:
        """How many orders each data model counts. Fails if the branch has fewer."""
        counts = {"branch": branch["rows"][0][0], "production": production["rows"][0][0]}
        if counts["branch"] < counts["production"]:
            # A retry would count the same.
            raise AirflowFailException(f"The branch has fewer orders than production: {counts}.")
        return counts

    production_is_built >> on_production
    compared = compare(on_branch.output, on_production.output)
    on_branch >> close_branch.as_teardown(setups=[sync, open_branch])
    [close_branch, compared] >> delete_branch
