"""Sync, gate, publish: the new data model is checked on a branch before anybody sees it.

The sync and the wait for it hold no worker (`deferrable`). The branch that the sync has written
answers nobody until it is opened; then the gate runs its SQL there, not on production. Only behind
the gate the branch is merged and the workbook published.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, PokeReturnValue, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.workbooks import PlatformPublishWorkbookOperator

with DAG(
    dag_id="sync_gate_publish",
    description="A dbt sync that is published only if its numbers hold",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "workbook_id": Param(
            301, type="integer", title="Workbook", description="The workbook to publish"
        ),
        "least_orders": Param(
            100, type="integer", title="Least orders", description="Fewer orders close the gate"
        ),
    },
    default_args={"retries": 2},
) as dag:
    sync = PlatformDbtSyncOperator(
        task_id="sync_dbt",
        branch_name="candidate-{{ dag_run.run_after | ds_nodash }}",
        deferrable=True,
    )

    @task
    def open_branch(branch: str) -> str:
        """Switch the branch's staging environment on: a branch answers nobody before."""
        from airflow_provider_platform.client.management.data_model.branches import (
            SetBranchStagingEnvironmentRequest,
            set_branch_staging_environment,
        )

        body = SetBranchStagingEnvironmentRequest(enabled=True, branch_name=branch)
        PlatformHook().run(set_branch_staging_environment(body=body))
        return branch

    @task.sensor(poke_interval=5, timeout=900)
    def built(branch: str) -> PokeReturnValue:
        """Wait until the branch is built; gives its name. A model that does not compile fails."""
        from airflow_provider_platform.client.management.deployments.deployments import (
            BuildStatusQuery,
            get_build_status,
        )

        query = BuildStatusQuery(branch_name=branch)
        build = PlatformHook().run(get_build_status(query=query))
        if build.status in ("failed", "cancelled"):
            raise RuntimeError(f"The build of {branch} {build.status}: {build.error_text}")
        return PokeReturnValue(is_done=build.status == "built", xcom_value=branch)

    @task.short_circuit
    def gate(branch: str, params: dict[str, Any]) -> bool:
        """Whether to go on; the tasks behind a closed gate are skipped."""
        sql = "SELECT COUNT(*) AS orders FROM orders"
        [[orders]] = PlatformHook().run_sql(sql, branch_name=branch)
        return int(orders) >= params["least_orders"]

    @task
    def merge(branch: str) -> None:
        """Take the branch into production."""
        from airflow_provider_platform.client.management.data_model.branches import (
            MergeToDefaultBranchRequest,
            merge_to_default,
        )

        body = MergeToDefaultBranchRequest(
            branch_name=branch, message="Checked by Airflow", remove_branch_after_merge=True
        )
        PlatformHook().run(merge_to_default(body=body))

    publish = PlatformPublishWorkbookOperator(
        task_id="publish_workbook", workbook_id="{{ params.workbook_id }}"
    )

    branch = built(open_branch(sync.output["branch_name"]))
    gate(branch) >> merge(branch) >> publish
