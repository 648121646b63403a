"""Reports and workbooks: wait for a report, clone a workbook, publish it, attach an AI thread."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.reports import (
    PlatformConnectReportOperator,
    PlatformDisconnectReportOperator,
    PlatformRefreshReportOperator,
)
from airflow_provider_platform.operators.workbooks import (
    PlatformAttachAiWidgetThreadOperator,
    PlatformDuplicateWorkbookOperator,
    PlatformPublishWorkbookOperator,
    PlatformUpdateWorkbookOperator,
)
from airflow_provider_platform.sensors.reports import PlatformReportSensor

with DAG(
    dag_id="reports_and_workbooks",
    description="A report in a spreadsheet, and a workbook of this month's own",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform"],
    params={
        # No defaults: an id of the sandbox is somebody else's resource on your tenant.
        "report": Param(
            type="string",
            minLength=1,
            title="Report",
            description="The name of the report that is waited for. In the sandbox: "
            "Revenue by country.",
        ),
        "external_workbook_id": Param(
            type="string",
            minLength=1,
            title="Spreadsheet",
            description="The id of your spreadsheet that shows the report; the report lists it "
            "until the last task. In the sandbox any name, such as monthly-sheet.",
        ),
        "workbook_id": Param(
            type="integer",
            minimum=1,
            title="Workbook",
            description="The id of the workbook that is cloned. Only the clone is changed. In the "
            "sandbox: 301.",
        ),
        "widget_id": Param(
            type="string",
            minLength=1,
            title="Widget",
            description="The id of the AI widget on the workbook's dashboard. In the sandbox: "
            "ai-1.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    wait = PlatformReportSensor(
        task_id="wait_for_report", name="{{ params.report }}", poke_interval=5, timeout=300
    )

    connect = PlatformConnectReportOperator(
        task_id="connect_report",
        report_id="{{ ti.xcom_pull(task_ids='wait_for_report')['id'] }}",
        external_workbook_id="{{ params.external_workbook_id }}",
        result_location="Revenue!A1",
        end_result_cell="C20",
        sheet_name="Revenue",
    )

    # After your own code has written the rows again.
    refresh = PlatformRefreshReportOperator(
        task_id="refresh_report",
        report_id=connect.output["id"],
        external_workbook_id="{{ params.external_workbook_id }}",
        result_location="Revenue!A1",
    )

    disconnect = PlatformDisconnectReportOperator(
        task_id="disconnect_report",
        report_id=connect.output["id"],
        external_workbook_id="{{ params.external_workbook_id }}",
        result_location="Revenue!A1",
    )

    # Cloned once: a retry takes the clone that an earlier try has made.
    clone = PlatformDuplicateWorkbookOperator(
        task_id="clone_workbook", workbook_id="{{ params.workbook_id }}"
    )

    rename = PlatformUpdateWorkbookOperator(
        task_id="rename_clone",
        workbook_id=clone.output["id"],
        name="Revenue, {{ dag_run.run_after | ds }}",
    )

    publish = PlatformPublishWorkbookOperator(
        task_id="publish_clone",
        workbook_id=clone.output["id"],
    )

    ask = PlatformChatOperator(task_id="ask_agent", prompt="top 5 products")

    attach = PlatformAttachAiWidgetThreadOperator(
        task_id="attach_thread",
        workbook_id=clone.output["id"],
        widget_id="{{ params.widget_id }}",
        thread_id=ask.output["chat_id"],
    )

    # An operation without an operator, by its path. The deployment is the connection's.
    workspace = PlatformApiOperator(
        task_id="list_workspace",
        method="GET",
        path="/v1/deployments/{deploymentId}/workspace",
        paginate=True,
        max_items=20,
    )

    wait >> connect >> refresh >> disconnect
    clone >> rename >> publish >> attach >> workspace
