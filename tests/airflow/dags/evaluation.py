"""A suite of six questions, two at a time, from the run's configuration."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator

with DAG("evaluate", schedule=None):
    PlatformEvaluationOperator(
        task_id="suite",
        questions=[
            {
                "name": f"question {number}",
                "question": f"question {number}",
                "sql": "SELECT COUNT(*) AS orders FROM orders",
            }
            for number in range(1, 7)
        ],
        parallel=2,
        platform_conn_id="{{ dag_run.conf['platform_conn_id'] }}",
        deferrable="{{ dag_run.conf['deferrable'] }}",
        poll_interval=0.2,
        timeout=1800,
        retries=3,
        retry_delay=timedelta(seconds=0),
    )
