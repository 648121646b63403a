"""DAGs that merge a branch, alone and in a gate around a query."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_platform.operators.branches import PlatformMergeBranchOperator, branch_gate
from airflow_provider_platform.operators.query import PlatformQueryOperator

FROM_CONF: dict[str, Any] = {
    "platform_conn_id": "{{ dag_run.conf['platform_conn_id'] }}",
    "deferrable": "{{ dag_run.conf['deferrable'] }}",
    "poll_interval": 0.2,
}
BRANCH = "{{ dag_run.conf['branch_name'] }}"
AGAIN: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(seconds=0)}

with DAG("merge", schedule=None):
    PlatformMergeBranchOperator(
        task_id="merge",
        branch_name=BRANCH,
        delete_branch="{{ dag_run.conf.get('delete_branch', False) }}",
        **FROM_CONF,
        **AGAIN,
    )

with (
    DAG("gated", schedule=None),
    branch_gate(BRANCH, group_id="gate", **FROM_CONF, default_args=AGAIN) as gate,
):
    PlatformQueryOperator(
        task_id="count",
        sql="SELECT COUNT(*) AS orders FROM orders",
        branch_name=gate.branch_name,
        platform_conn_id=FROM_CONF["platform_conn_id"],
        retries=0,
    )
