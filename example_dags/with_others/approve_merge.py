"""A person approves a data model between the checks and the merge.

The sync writes the model to a branch. The gate opens the branch, checks it and asks a person, with
Airflow's own operator. If the person approves, the gate merges and deletes the branch. If the
person rejects or does not answer in time, nothing is merged: the branch is closed and kept.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG

from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator

with DAG(
    dag_id="approve_merge",
    description="A merge that a person approves",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform", "recipe"],
):
    sync = PlatformDbtSyncOperator(
        task_id="sync_dbt",
        branch_name="candidate-{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
    )
    with branch_gate(sync.output["branch_name"], deferrable=True) as gate:
        count = PlatformQueryOperator(
            task_id="count",
            sql="SELECT COUNT(*) FROM orders",
            branch_name=gate.branch_name,
        )
        approve = ApprovalOperator(
            task_id="approve",
            subject="Merge the branch into production?",
            body="Orders on the branch: {{ ti.xcom_pull('branch_gate.count')['rows'][0][0] }}",
            fail_on_reject=True,
            response_timeout=timedelta(hours=12),
            retries=0,
        )
        count >> approve
