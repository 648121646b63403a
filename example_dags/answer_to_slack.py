"""A question every Monday, its answer in a Slack channel: text, table, and the chart as bars.

Slack's own notifier sends it: install `apache-airflow-providers-slack` and make its connection
`slack_default`. Without that provider the same message stands at the end of the task's log.
Given as data, the notifier is imported when it is used; a `SlackNotifier(...)` is as good.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator

SLACK = {
    "class": "airflow.providers.slack.notifications.slack.SlackNotifier",
    "slack_conn_id": "slack_default",
    "channel": "{{ params.channel }}",
    "username": "Analytics",
}

SLACK_IS_INSTALLED = find_spec("airflow.providers.slack") is not None


def write_to_log(answer: dict[str, Any]) -> None:
    """The message that a channel would get, for those who have no Slack."""
    logging.getLogger("airflow.task").info("%s", answer["text"])


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
            *([] if SLACK_IS_INSTALLED else [None]),
            type="string" if SLACK_IS_INSTALLED else ["null", "string"],
            title="Channel",
            description="Where the answer is posted. Without Slack's provider it is written to the "
            "task's log, and no channel is needed.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    send_with = SLACK if SLACK_IS_INSTALLED else write_to_log

    PlatformChatOperator(
        task_id="ask_agent",
        prompt="{{ params.question }}",
        # Once for the run, whatever came of it; a try that is followed by another says nothing.
        on_success_callback=PlatformAnswerNotifier(send_with, title="Revenue, {{ run_id }}"),
        on_failure_callback=PlatformAnswerNotifier(send_with),
    )
