"""DAGs that wait in the triggerer for what is neither a chat nor a dbt sync of their own."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from airflow_provider_platform.sensors.reports import PlatformReportSensor

CONNECTION = "{{ dag_run.conf['platform_conn_id'] }}"

with DAG("wait_for_thread", schedule=None):
    PlatformChatThreadSensor(
        task_id="wait",
        chat_id="{{ dag_run.conf['chat_id'] }}",
        platform_conn_id=CONNECTION,
        deferrable=True,
        poke_interval=0.2,
        timeout=1800,
    )

# Mapped, because Airflow refuses a single task with `end_from_trigger` beside listeners, such as
# those of the OpenLineage provider.
with DAG("wait_for_report", schedule=None):
    PlatformReportSensor.partial(
        task_id="wait",
        platform_conn_id=CONNECTION,
        deferrable=True,
        end_from_trigger=True,
        poke_interval=0.2,
        timeout=1800,
    ).expand(name=["Written later"])

with DAG("export", schedule=None):
    PlatformExportDashboardOperator(
        task_id="export",
        dashboard="Sales overview",
        output_path="{{ dag_run.conf['output_path'] }}",
        platform_conn_id=CONNECTION,
        deferrable=True,
        poll_interval=0.2,
    )
