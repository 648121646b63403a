"""Ask a question every Monday and post the answer to Slack: text, table, and the chart as bars.

Airflow's Slack notifier sends the message. Install `apache-airflow-providers-slack` and create the
connection `slack_default`. Without that provider, the message is at the end of the task's log. The
DAG names the notifier as data, so that it is imported only when it is used. You can also write
`SlackNotifier(...)`.
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
    """Log the message, for people who have no Slack."""
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
        # No default, because people read the channel. A schedule needs a default.
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
        # One message for each run, after success or failure. A try that has a retry sends none.
        on_success_callback=PlatformAnswerNotifier(send_with, title="Revenue, {{ run_id }}"),
        on_failure_callback=PlatformAnswerNotifier(send_with),
    )
