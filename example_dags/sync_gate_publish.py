"""Sync, gate, publish: check the new data model on a branch before anybody sees it.

A dbt sync writes the model to a branch. Nobody can query the branch until it is open. The DAG opens
the branch and runs the gate's SQL on it, not on production. If the gate opens, the DAG merges the
branch, waits until production is built from the merge, publishes the workbook and deletes the
branch. If the gate closes or a task fails, the DAG keeps the branch, so that you can inspect it. It
always closes the branch.

The tasks that wait for the sync and the builds use no worker slot while they wait (`deferrable`).
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformMergeBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.workbooks import PlatformPublishWorkbookOperator

log = logging.getLogger(__name__)

with DAG(
    dag_id="sync_gate_publish",
    description="A dbt sync that is published only if its numbers hold",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform", "recipe"],
    params={
        # No default, because everybody sees what is published.
        "workbook_id": Param(
            type="integer",
            minimum=1,
            title="Workbook",
            description="The id of the workbook that is published. In the sandbox: 301.",
        ),
        "least_orders": Param(
            100, type="integer", title="Least orders", description="Fewer orders close the gate"
        ),
    },
    default_args={"retries": 2},
) as dag:
    sync = PlatformDbtSyncOperator(
        task_id="sync_dbt",
        branch_name="candidate-{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
    )

    # If the model does not compile, this task fails with the service's message.
    open_branch = PlatformOpenBranchOperator(
        task_id="open_branch",
        branch_name=sync.output["branch_name"],
        deferrable=True,
    )

    @task.short_circuit
    def gate(branch: str, params: dict[str, Any]) -> bool:
        """Return whether to continue. False (a closed gate) skips the tasks after this one."""
        sql = "SELECT COUNT(*) AS orders FROM orders"
        [[orders]] = PlatformHook().run_sql(sql, branch_name=branch)
        found, least = int(orders), params["least_orders"]
        if found < least:
            log.warning(
                "The gate is closed: branch %s has %s orders, fewer than the least of %s. Nothing "
                "is merged or published; the branch is kept.",
                branch,
                found,
                least,
            )
            return False
        log.info("The gate is open: %s orders, at least %s", found, least)
        return True

    # Closes the branch in any case. After a closed gate or a failure, the branch is not deleted.
    close_branch = PlatformCloseBranchOperator(
        task_id="close_branch", branch_name=open_branch.output["opened_branch"]
    )

    # Merges the commit that the gate checked, and waits for production's build. Until the build is
    # complete, production uses the old model.
    merge = PlatformMergeBranchOperator(
        task_id="merge",
        branch_name=sync.output["branch_name"],
        hash=open_branch.output["hash"],
        message="Checked by Airflow, run {{ run_id }}",
        deferrable=True,
    )
    publish = PlatformPublishWorkbookOperator(
        task_id="publish_workbook", workbook_id="{{ params.workbook_id }}"
    )
    delete_branch = PlatformDeleteBranchOperator(
        task_id="delete_branch",
        branch_name=sync.output["branch_name"],
    )

    gated = gate(open_branch.output["branch_name"])
    gated >> merge >> publish
    gated >> close_branch.as_teardown(setups=[sync, open_branch])
    [publish, close_branch] >> delete_branch
