"""Check the data, then write it to a spreadsheet, with the schedule of the delivery paused.

The delivery has a schedule of its own for readers, and this DAG delivers the newest data. While the
DAG runs, the schedule is paused. Put your load between `pause` and `count`, so that no scheduled
run reads half of the data. A run that began before the pause may have read older data: the task
does not follow it (`if_running="fail"`). A retry starts a new run when that run is over.

The platform's support activates deliveries for an account.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator

with DAG(
    dag_id="deliveries",
    description="A report delivery run after a check",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform"],
    params={
        "delivery_id": Param(
            None,
            type="integer",
            title="Delivery",
            description="The id of the report delivery to run. In the sandbox: 502.",
        ),
    },
):
    pause = PlatformApiOperator(
        task_id="pause", operation="pauseReportDelivery", id="{{ params.delivery_id }}"
    )
    count = PlatformQueryOperator(task_id="count", sql="SELECT COUNT(*) AS orders FROM orders")

    @task
    def check(result: dict[str, Any]) -> int:
        """Deliver only if there are orders."""
        orders = int(result["rows"][0][0])
        if orders == 0:
            raise ValueError("There are no orders to deliver.")
        return orders

    deliver = PlatformRunDeliveryOperator(
        task_id="deliver",
        delivery_id="{{ params.delivery_id }}",
        if_running="fail",
        deferrable=True,
        retries=3,
        retry_delay=timedelta(minutes=10),
    )
    resume = PlatformApiOperator(
        task_id="resume", operation="resumeReportDelivery", id="{{ params.delivery_id }}"
    ).as_teardown(setups=[pause])

    checked = check(count.output)  # type: ignore[arg-type]
    pause >> count
    checked >> deliver >> resume
