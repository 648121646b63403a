"""From model to production: sync, prove on the branch, merge, build, deliver, publish and export.

Readers get only what was proved. A dbt sync writes tonight's data model to a branch. The gate opens
the branch, waits for its build, and proves it: no number may move too far from production, and the
agent's answer must agree with SQL. Only then does the gate merge the branch and wait until
production is built from it. If a check fails, nothing is merged, and the gate keeps the branch, so
that you can inspect it.

After the merge, the DAG builds the pre-aggregations of the new model, so that the first reader of
the day does not wait. It then delivers a report to its spreadsheet, publishes the workbook and
exports the dashboard. If the dashboard requires review, a person must publish it: the task is
skipped, and the DAG run goes on.

The tasks that wait for the service use no worker slot while they wait (`deferrable`).
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.compare import PlatformCompareOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from airflow_provider_platform.operators.workbooks import PlatformPublishWorkbookOperator

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowFailException

REVENUE = "SELECT SUM(amount) AS revenue FROM orders"
CENT = Decimal("0.01")


def is_near(value: Any, number: Any) -> bool:
    """Whether a value of an answer is this number, to the cent."""
    try:
        return abs(Decimal(str(value)) - Decimal(str(number))) < CENT
    except InvalidOperation:  # not a number
        return False


with DAG(
    dag_id="model_to_production",
    description="A dbt sync that is proved, merged, built, delivered, published and exported",
    doc_md=__doc__,
    schedule=None,  # "0 3 * * *" for every night at three
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform", "recipe"],
    params={
        "tolerance": Param(
            0.05,
            type="number",
            minimum=0,
            title="Tolerance",
            description="How far orders and revenue may move from production: 0.05 is 5 %.",
        ),
        "question": Param(
            "total revenue",
            type="string",
            minLength=1,
            title="Question",
            description="A question whose answer is one number: the revenue that SQL finds too.",
        ),
        "pre_aggregation": Param(
            "orders.revenue_by_month",
            type="string",
            pattern=r"^[^.]+\.[^.]+$",
            title="Pre-aggregation",
            description="The one to build, as cube.pre_aggregation. The default is the sandbox's.",
        ),
        "delivery_id": Param(
            type="integer",
            minimum=1,
            title="Delivery",
            description="The report delivery to run. In the sandbox: 501.",
        ),
        "workbook_id": Param(
            type="integer",
            minimum=1,
            title="Workbook",
            description="The workbook to publish. In the sandbox: 301.",
        ),
        "dashboard_id": Param(
            type="integer",
            minimum=1,
            title="Dashboard",
            description="The dashboard of the workbook, to export. In the sandbox: 501.",
        ),
        "output_path": Param(
            str(Path(gettempdir()) / "model_to_production.pdf"),
            type="string",
            minLength=1,
            title="File",
            description="Where the exported dashboard goes: a path, or a URL as "
            "s3://my_conn@bucket/dashboard.pdf",
        ),
    },
    default_args={"retries": 2},
) as dag:
    # Writes the data model to a new branch for this run. A retry picks up the running sync.
    sync = PlatformDbtSyncOperator(
        task_id="sync_dbt",
        branch_name="model-{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
    )

    # Opens the branch, waits for its build, and merges it only if all tasks inside succeed.
    with branch_gate(
        sync.output["branch_name"],
        group_id="gate",
        message="Proved by Airflow, run {{ run_id }}",
        deferrable=True,
    ) as gate:
        # Fails if a number on the branch moves too far from production.
        PlatformCompareOperator(
            task_id="compare_numbers",
            branch_name=gate.branch_name,
            measures=["orders.count", "orders.revenue"],
            by=["orders.status"],
            tolerance="{{ params.tolerance }}",
        )

        ask = PlatformChatOperator(
            task_id="ask_agent",
            prompt="{{ params.question }}",
            active_branch_name=gate.branch_name,
            max_rows=5,
            deferrable=True,
        )

        @task
        def answer_agrees(queries: list[dict[str, Any]], branch: str) -> str:
            """The revenue on the branch. Fails if the agent finds another number than SQL."""
            [[revenue]] = PlatformHook().run_sql(REVENUE, branch_name=branch)
            found = [value for query in queries for row in query["rows"] for value in row]
            if len(found) != 1 or not is_near(found[0], revenue):
                raise AirflowFailException(
                    f"On branch {branch} SQL finds a revenue of {revenue}, and the agent {found}."
                )
            return str(revenue)

        answer_agrees(ask.output["queries"], gate.branch_name)

    # For production, which has the new model now. A build that is done can be empty, so SQL must
    # find a value of a measure that this pre-aggregation has.
    build = PlatformBuildPreAggregationsOperator(
        task_id="build_pre_aggregations",
        pre_aggregations=["{{ params.pre_aggregation }}"],
        verify_sql=REVENUE,
        deferrable=True,
    )

    # A run that began before the merge delivers the old model. So the task does not follow such a
    # run. A retry starts a new one when that run is over. Where deliveries are not activated, the
    # task is skipped.
    deliver = PlatformRunDeliveryOperator(
        task_id="deliver_report",
        delivery_id="{{ params.delivery_id }}",
        if_running="fail",
        on_not_activated="skip",
        deferrable=True,
        retries=3,
        retry_delay=timedelta(minutes=10),
    )

    # If the dashboard requires review, only a person can publish it. The task is then skipped. It
    # runs also if the delivery was skipped.
    publish = PlatformPublishWorkbookOperator(
        task_id="publish_workbook",
        workbook_id="{{ params.workbook_id }}",
        on_review_required="skip",
        trigger_rule="none_failed",
    )

    # Also if publishing was skipped: the published dashboard shows the new model's numbers.
    export = PlatformExportDashboardOperator(
        task_id="export_dashboard",
        dashboard_id="{{ params.dashboard_id }}",
        output_path="{{ params.output_path }}",
        format="pdf",
        deferrable=True,
        trigger_rule="none_failed",
    )

    gate >> build >> deliver >> publish >> export
