"""The nightly pipeline: sync dbt to a branch, open it, ask the agent there, connect a report.

The branch shows that tonight's data model compiles and can be queried. The DAG always closes the
branch. After a success, it also deletes the branch. After a failure, it keeps the branch, so that
somebody can open and inspect it.

The DAG uses the connection `platform_default`. In the package's demo, this is the sandbox, a
simulated platform.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator

with DAG(
    dag_id="nightly_pipeline",
    description="dbt sync, a question to the agent, and a report in a spreadsheet",
    doc_md=__doc__,
    schedule=None,  # "0 3 * * *" for every night at three
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform"],
    params={
        "question": Param(
            "chart revenue by country",
            type="string",
            minLength=1,
            title="Question",
            description="What the agent is asked. The sandbox's agent understands questions like "
            "these; a platform's own understands yours.",
            examples=[
                "chart revenue by country",
                "chart orders per month",
                "top 5 products",
                "revenue by category, then only for Germany",
                "total revenue in March",
            ],
        ),
        "output_folder": Param(
            None,
            type=["null", "string"],
            title="Folder for files",
            description="Where rows and charts go: a path, or an address like "
            "s3://connection@bucket/answers. Empty: to XCom only.",
        ),
        "charts": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "enum": ["png", "svg", "html"]},
            title="Pictures",
            description="Formats of the charts in that folder, one on each line: png, svg, html. "
            "They need the extra charts.",
        ),
        # No default, because the report changes: it lists the spreadsheet from then on. A schedule
        # needs a default.
        "report_id": Param(
            type="integer",
            minimum=1,
            title="Report",
            description="The id of the report that is connected to the spreadsheet. In the "
            "sandbox: 101.",
        ),
        "external_workbook_id": Param(
            "nightly-revenue-sheet",
            type="string",
            minLength=1,
            title="Spreadsheet",
            description="The spreadsheet's id at its host.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    # Writes the data model to a new branch for this run. A retry picks up the running sync.
    sync = PlatformDbtSyncOperator(
        task_id="sync_dbt",
        branch_name="nightly-{{ dag_run.run_after | ts_nodash }}",
        poll_interval=1,
    )

    # Opens the branch, so that it can be queried, and waits for its build. If the model does not
    # compile, this task fails with the service's message.
    open_branch = PlatformOpenBranchOperator(
        task_id="open_branch",
        branch_name=sync.output["branch_name"],
        poll_interval=1,
    )

    # Asks on that branch, so that a broken model is detected here and not in production.
    ask = PlatformChatOperator(
        task_id="ask_agent",
        prompt="{{ params.question }}",
        active_branch_name=open_branch.output["branch_name"],
        max_rows=50,
        # With a folder: a file for each query that did not fail, and with `charts` a picture.
        output_path="{{ params.output_folder or '' }}",
        output_format="csv",
        charts="{{ (params.charts or []) | tojson }}",
    )

    # Closes the branch that `open_branch` opened, also if the question failed.
    close_branch = PlatformCloseBranchOperator(
        task_id="close_branch", branch_name=open_branch.output["opened_branch"]
    )

    # Deletes the branch only if everything succeeded. After a failure you can inspect it.
    delete_branch = PlatformDeleteBranchOperator(
        task_id="delete_branch",
        branch_name=sync.output["branch_name"],
    )

    # Reports to the platform which cell of the spreadsheet holds the report.
    connect = PlatformConnectReportOperator(
        task_id="connect_report",
        report_id="{{ params.report_id }}",
        external_workbook_id="{{ params.external_workbook_id }}",
        result_location="Revenue!A1",
    )

    @task
    def summarize(answer: str, queries: list[dict[str, Any]]) -> str:
        """Replace this with your own code: the answer and the rows are plain values."""
        rows = sum(len(query["rows"]) for query in queries)
        return f"{answer} ({len(queries)} queries, {rows} rows)"

    summary = summarize(answer=ask.output["answer"], queries=ask.output["queries"])
    ask >> connect
    ask >> close_branch.as_teardown(setups=[sync, open_branch])
    [close_branch, connect, summary] >> delete_branch
