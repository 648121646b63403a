"""A question every Monday, its answer in a Slack channel: text, table, and the chart as bars.

Slack's own notifier sends it: install `apache-airflow-providers-slack` and make its connection
`slack_default`. Given as data, it is imported when it is used; a `SlackNotifier(...)` is as good.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator

SLACK = {
    "class": "airflow.providers.slack.notifications.slack.SlackNotifier",
    "slack_conn_id": "slack_default",
    "channel": "{{ params.channel }}",
    "username": "Analytics",
}

with DAG(
    dag_id="answer_to_slack",
    description="a question to the agent, its answer in Slack",
    doc_md=__doc__,
    schedule=None,  # "0 8 * * MON" for every Monday at eight
    catchup=False,
    tags=["analytics platform"],
    params={
        "question": Param(
            "chart revenue by category",
            type="string",
            minLength=1,
            title="Question",
            description="What the agent is asked.",
            examples=["chart revenue by category", "chart orders per month", "top 5 products"],
        ),
        # No default: people read it. Give it one together with a schedule, which needs defaults.
        "channel": Param(
            type="string",
            minLength=1,
            title="Channel",
            description="Where the answer is posted.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    PlatformChatOperator(
        task_id="ask_agent",
        prompt="{{ params.question }}",
        # Once for the run, whatever came of it; a try that is followed by another says nothing.
        on_success_callback=PlatformAnswerNotifier(SLACK, title="Revenue, {{ run_id }}"),
        on_failure_callback=PlatformAnswerNotifier(SLACK),
    )
