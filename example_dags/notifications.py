"""A weekly dashboard by mail: create the schedule, add a recipient, and check that it is on.

A schedule has no name. So this DAG cannot distinguish its own schedule from a colleague's schedule
with the same format and filters. If such a schedule exists, the DAG fails and does not change it.
If you know that the schedule is this DAG's own, run the DAG with `if_exists` `update`: it keeps the
schedule as the DAG says, adds the recipient and creates no second schedule. In a DAG of your own,
give the schedule a `key` instead. Notifications need an administrator's token in the connection
`platform_default`.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformListNotificationsOperator,
    PlatformNotificationRecipientsOperator,
)
from airflow_provider_platform.sensors.notifications import PlatformNotificationSensor

with DAG(
    dag_id="notifications",
    description="A weekly dashboard, its recipients, and who gets what",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform"],
    params={
        # No defaults, because the mail goes to people: choose the dashboard and the recipient.
        "dashboard_id": Param(
            type="integer",
            minimum=1,
            title="Dashboard",
            description="The id of the published dashboard that is sent. In the sandbox: 501.",
        ),
        "email": Param(
            type="string",
            format="idn-email",
            title="Recipient",
            description="The address of a user of the account. In the sandbox: "
            "analyst@acme.example.com.",
        ),
        "if_exists": Param(
            "fail",
            enum=["fail", "update"],
            title="If such a schedule exists",
            description="update only if it is this DAG's own: its times are changed.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    create = PlatformCreateNotificationOperator(
        task_id="create_weekly_mail",
        dashboard_id="{{ params.dashboard_id }}",
        schedule_type="WEEKLY",
        day_of_week=1,
        hour=7,
        minute=30,
        timezone="Europe/Berlin",
        notification_format="pdf",
        if_exists="{{ params.if_exists }}",
    )

    recipients = PlatformNotificationRecipientsOperator(
        task_id="add_recipients",
        notification_id=create.output["id"],
        add=[{"type": "USER", "email": "{{ params.email }}"}],
    )

    enabled = PlatformNotificationSensor(
        task_id="is_enabled",
        notification_id=create.output["id"],
        is_enabled=True,
        poke_interval=5,
        timeout=60,
    )

    listed = PlatformListNotificationsOperator(
        task_id="who_gets_the_dashboard",
        dashboard_id="{{ params.dashboard_id }}",
        max_items=50,
    )

    create >> recipients >> enabled >> listed
