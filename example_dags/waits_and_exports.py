"""Waiting for what others do, and a dashboard as a file.

A sync that is not waited for by the task that starts it, a thread that becomes free, a user's
consent; then a dashboard rendered into a file, and a schedule changed and deleted.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

from airflow.sdk import DAG, Param

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformDeleteNotificationOperator,
    PlatformUpdateNotificationOperator,
)
from airflow_provider_platform.sensors.account import PlatformUserOAuthTokenSensor
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from airflow_provider_platform.sensors.dbt_sync import PlatformDbtSyncSensor

with DAG(
    dag_id="waits_and_exports",
    description="The sensors, an export, and the end of a schedule",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform"],
    params={
        "dashboard_id": Param(
            501, type="integer", title="Dashboard", description="The dashboard to export"
        ),
        "integration_id": Param(
            3, type="integer", title="Integration", description="The OAuth integration"
        ),
        "output_path": Param(
            str(Path(gettempdir()) / "dashboard.pdf"),
            type="string",
            title="File",
            description="Where to write it: a path, or a URL as s3://my_conn@bucket/dashboard.pdf",
        ),
    },
    default_args={"retries": 2},
) as dag:
    start = PlatformDbtSyncOperator(task_id="start_sync", wait_for_completion=False)

    # Polls in the triggerer, at most every ten seconds and for an hour.
    synced = PlatformDbtSyncSensor(
        task_id="wait_for_sync",
        sync_job_id=start.output["sync_job_id"],
        deferrable=True,
        poke_interval=10,
        timeout=3600,
    )

    ask = PlatformChatOperator(task_id="ask_agent", prompt="revenue by month")

    free = PlatformChatThreadSensor(
        task_id="wait_for_thread",
        chat_id=ask.output["chat_id"],
        mode="reschedule",
        poke_interval=10,
    )

    # The same thread: the agent knows what was asked before.
    again = PlatformChatOperator(
        task_id="ask_again", prompt="only for Germany", chat_id=ask.output["chat_id"]
    )

    consent = PlatformUserOAuthTokenSensor(
        task_id="wait_for_consent",
        integration_id="{{ params.integration_id }}",
        target_statuses=["active"],
        deferrable=True,
        poke_interval=60,
    )

    export = PlatformExportDashboardOperator(
        task_id="export_dashboard",
        dashboard_id="{{ params.dashboard_id }}",
        output_path="{{ params.output_path }}",
        format="pdf",
        deferrable=True,
    )

    create = PlatformCreateNotificationOperator(
        task_id="create_daily_mail",
        dashboard_id="{{ params.dashboard_id }}",
        schedule_type="DAILY",
        hour=6,
        minute=0,
    )

    # An hour later, and without the agent's summary.
    update = PlatformUpdateNotificationOperator(
        task_id="send_later",
        notification_id="{{ ti.xcom_pull(task_ids='create_daily_mail')['id'] }}",
        schedule_type="DAILY",
        hour=7,
        minute=0,
        notification_ai_summary=False,
    )

    delete = PlatformDeleteNotificationOperator(
        task_id="delete_daily_mail",
        notification_id="{{ ti.xcom_pull(task_ids='create_daily_mail')['id'] }}",
    )

    start >> synced >> ask >> free >> again
    consent >> export
    create >> update >> delete
