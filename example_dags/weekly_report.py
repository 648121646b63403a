"""Every Monday: an answer, its rows as Parquet and its chart as a picture, the dashboard as a PDF.

Each run writes all files into one folder, together with `message.html`, a message that shows the
picture. The folder is on a local path or in a storage that Airflow supports. To send the message
with Airflow's notifiers, see `answer_to_slack`. Needs the extras `files` and `charts`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import Any

from airflow.sdk import DAG, ObjectStoragePath, Param

from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator

# The folder of the answer: one for the DAG, the run and the task, in the folder that you give.
RUN_FOLDER = "{{ ti.xcom_pull('ask_agent', key='manifest') | replace('/manifest.json', '') }}"


def write_message(answer: dict[str, Any]) -> None:
    """Write the answer as a page: its words, the picture, the first rows."""
    folder = ObjectStoragePath(answer["result"]["manifest"]).parent
    (folder / "message.html").write_text(answer["page"])


with DAG(
    dag_id="weekly_report",
    description="A question, its rows, its chart, the dashboard and the message about them",
    doc_md=__doc__,
    schedule=None,  # "0 6 * * MON" for every Monday at six
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "question": Param(
            "chart revenue by country",
            type="string",
            minLength=1,
            title="Question",
            description="What the agent is asked.",
            examples=["chart revenue by country", "chart orders per month"],
        ),
        "dashboard_id": Param(
            501,
            type="integer",
            minimum=1,
            title="Dashboard",
            description="The id of the dashboard that is exported.",
        ),
        "folder": Param(
            str(Path(gettempdir()) / "weekly_report"),
            type="string",
            minLength=1,
            title="Folder",
            description="Where the files go: a path, or an address like s3://connection@bucket/reports.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    ask = PlatformChatOperator(
        task_id="ask_agent",
        prompt="{{ params.question }}",
        output_path="{{ params.folder }}",
        charts=["png"],
        deferrable=True,
    )

    # The message is written when all other files exist.
    export = PlatformExportDashboardOperator(
        task_id="export_dashboard",
        dashboard_id="{{ params.dashboard_id }}",
        output_path=f"{RUN_FOLDER}/dashboard.pdf",
        format="pdf",
        deferrable=True,
        on_success_callback=PlatformAnswerNotifier(
            write_message, task_id="ask_agent", title="The week, {{ dag_run.run_after | ds }}"
        ),
    )

    ask >> export
