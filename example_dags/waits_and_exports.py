"""Sensors that wait for a sync, a thread and a consent, and a dashboard as a file.

The first sensor waits for a sync that another task started. The second waits until a thread is
free, and the third until a user has given consent. Then the DAG exports a dashboard to a file, and
creates, changes and deletes a schedule. Each sensor has a timeout. Without one, a sensor waits for
a week.
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
        # No defaults: an id of the sandbox is somebody else's resource on your tenant.
        "dashboard_id": Param(
            type="integer",
            minimum=1,
            title="Dashboard",
            description="The dashboard to export, and to make a schedule of. In the sandbox: 501.",
        ),
        "integration_id": Param(
            type="integer",
            minimum=1,
            title="Integration",
            description="The OAuth integration. In the sandbox: 3.",
        ),
        "consent_status": Param(
            type="string",
            minLength=1,
            title="Status of a consent",
            description="The status that a usable token has on your tenant. The service documents "
            "no values: look at GET /v1/user-oauth-tokens. In the sandbox: active.",
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
    # `files` leaves no branch behind.
    start = PlatformDbtSyncOperator(
        task_id="start_sync", wait_for_completion=False, output_mode="files"
    )

    # Polls in the triggerer, about every ten seconds and for an hour.
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
        timeout=1800,
    )

    # The same thread: the agent knows what was asked before.
    again = PlatformChatOperator(
        task_id="ask_again", prompt="only for Germany", chat_id=ask.output["chat_id"]
    )

    consent = PlatformUserOAuthTokenSensor(
        task_id="wait_for_consent",
        integration_id="{{ params.integration_id }}",
        target_statuses=["{{ params.consent_status }}"],
        deferrable=True,
        poke_interval=60,
        timeout=3600,
    )

    export = PlatformExportDashboardOperator(
        task_id="export_dashboard",
        dashboard_id="{{ params.dashboard_id }}",
        output_path="{{ params.output_path }}",
        format="pdf",
        deferrable=True,
    )

    # The key distinguishes this DAG's schedule from colleagues' schedules. `fail`: a
    # schedule with the same settings and times is a colleague's, so this DAG must not change it.
    create = PlatformCreateNotificationOperator(
        task_id="create_daily_mail",
        dashboard_id="{{ params.dashboard_id }}",
        schedule_type="DAILY",
        hour=6,
        minute=0,
        key="waits_and_exports",
        if_exists="fail",
    )

    # An hour later, and without the agent's summary.
    update = PlatformUpdateNotificationOperator(
        task_id="send_later",
        notification_id=create.output["id"],
        schedule_type="DAILY",
        hour=7,
        minute=0,
        notification_ai_summary=False,
    )

    delete = PlatformDeleteNotificationOperator(
        task_id="delete_daily_mail",
        notification_id=create.output["id"],
    )

    start >> synced >> ask >> free >> again
    consent >> export
    # Setup and teardown: what was created is deleted even if a task between them fails, and if
    # nothing was created, nothing is deleted.
    create >> update >> delete.as_teardown(setups=create, on_failure_fail_dagrun=True)
