"""Golden questions: every night, ask the agent questions whose results you know.

The task fails if a question that was right before is wrong each time it is asked, or if fewer than
nine of ten questions are right. Its XCom and its files have the reason of each question. The first
run that succeeds is the baseline of the next one.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

from airflow.sdk import DAG, Param

from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator

QUESTIONS = [
    {
        "name": "total_revenue",
        "question": "total revenue",
        "sql": "SELECT SUM(amount) AS revenue FROM orders",
    },
    {
        "name": "revenue_by_country",
        "question": "revenue by country",
        "sql": "SELECT c.country, SUM(o.amount) AS revenue FROM orders AS o "
        "JOIN customers AS c ON c.id = o.customer_id GROUP BY c.country",
    },
]

with DAG(
    dag_id="golden_questions",
    description="Questions whose results you know; fails if the agent's answers became worse",
    doc_md=__doc__,
    schedule=None,  # "0 4 * * *" for every night at four
    catchup=False,
    max_active_runs=1,
    tags=["analytics platform", "recipe"],
    params={
        "output_path": Param(
            str(Path(gettempdir()) / "golden_questions"),
            type="string",
            minLength=1,
            title="Folder",
            description="Where the reports go: a path or a URL like s3://my_conn@bucket/evaluation",
        ),
        "reset_baseline": Param(
            False,
            type="boolean",
            title="Reset the baseline",
            description="Accept tonight's answers, after a change that you want.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    PlatformEvaluationOperator(
        task_id="suite",
        questions=QUESTIONS,
        threshold=0.9,
        max_tokens=1_000_000,
        reset_baseline="{{ params.reset_baseline }}",
        output_path="{{ params.output_path }}/{{ dag_run.run_after | ds }}",
        deferrable=True,
    )
