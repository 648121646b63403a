"""A DAG that builds pre-aggregations: what may be templated comes from the run's configuration."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)

with DAG("build", schedule=None):
    PlatformBuildPreAggregationsOperator(
        task_id="build",
        cubes=["{{ dag_run.conf.get('cube', 'customers') }}"],
        verify_sql="SELECT COUNT(*) FROM customers",
        platform_conn_id="{{ dag_run.conf['platform_conn_id'] }}",
        deferrable="{{ dag_run.conf['deferrable'] }}",
        timeout="{{ dag_run.conf.get('timeout', 1800) }}",
        poll_interval=0.2,
        retries=3,
        retry_delay=timedelta(seconds=0),
    )
