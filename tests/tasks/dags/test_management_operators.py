"""Management operators in a DAG run: outputs of tasks as arguments, templates, plain JSON XComs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, task

from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformDeleteNotificationOperator,
    PlatformListNotificationsOperator,
    PlatformNotificationRecipientsOperator,
    PlatformUpdateNotificationOperator,
)

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


def test_notification_is_created_changed_and_deleted_in_a_dag(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG(dag_id="notifications", params={"hour": 7}) as dag:

        @task
        def recipients() -> list[dict[str, Any]]:
            return [{"type": "USER", "email": "analyst@acme.example.com"}]

        create = PlatformCreateNotificationOperator(
            task_id="create",
            dashboard_id="{{ 501 }}",
            schedule_type="DAILY",
            hour="{{ params.hour }}",
            day_of_week="{{ '' }}",
            timezone="Europe/Berlin",
            filters=[{"member": "orders.status", "operator": "equals", "value": ["{{ 'paid' }}"]}],
        )
        add = PlatformNotificationRecipientsOperator(
            task_id="add",
            notification_id="{{ ti.xcom_pull('create')['id'] }}",
            add=recipients(),  # type: ignore[arg-type]
        )
        update = PlatformUpdateNotificationOperator(
            task_id="update",
            notification_id="{{ ti.xcom_pull('create')['id'] }}",
            is_enabled="{{ false }}",
        )
        listed = PlatformListNotificationsOperator(
            task_id="list", recipient_email="{{ 'analyst@acme.example.com' }}"
        )
        delete = PlatformDeleteNotificationOperator(
            task_id="delete", notification_id="{{ ti.xcom_pull('create')['id'] }}"
        )
        create >> add >> update >> listed >> delete
    run = run_dag(dag)
    assert run.state == "success"
    created = run.xcom("create")
    assert created["cronExpression"] == "0 7 * * *"
    assert created["filters"][0]["value"] == ["paid"]
    assert [recipient["type"] for recipient in run.xcom("add")] == ["USER"]
    assert run.xcom("update")["isEnabled"] is False
    assert [item["id"] for item in run.xcom("list")] == [created["id"]]
    assert platform_sandbox.control.state().changed("notifications", "deleted")
