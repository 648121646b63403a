"""A DAG that runs a delivery: what may be templated comes from the run's configuration."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator

FROM_CONF = {
    "if_running": "{{ dag_run.conf.get('if_running', 'follow') }}",
    "platform_conn_id": "{{ dag_run.conf['platform_conn_id'] }}",
    "deferrable": "{{ dag_run.conf['deferrable'] }}",
    "timeout": "{{ dag_run.conf.get('timeout', 1800) }}",
    "poll_interval": 0.2,
    "retries": 3,
    "retry_delay": timedelta(seconds=0),
}

with DAG("deliver", schedule=None):
    PlatformRunDeliveryOperator(
        task_id="run", delivery_id="{{ dag_run.conf.get('id', 501) }}", **FROM_CONF
    )
