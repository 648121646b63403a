"""DAGs that ask on a cluster: what may be templated comes from the run's configuration."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_platform.operators.chat import PlatformChatOperator

CHATS = 24
QUESTIONS = ("revenue by country", "orders by status", "revenue by month", "revenue by segment")

FROM_CONF = {
    "platform_conn_id": "{{ dag_run.conf['platform_conn_id'] }}",
    "deferrable": "{{ dag_run.conf['deferrable'] }}",
    "timeout": "{{ dag_run.conf.get('timeout', 600) }}",
    "poll_interval": 0.5,
    "retries": 3,
    "retry_delay": timedelta(seconds=2),
}
PROMPT = "{{ dag_run.conf['prompt'] }}"

with DAG("ask", schedule=None):
    PlatformChatOperator(task_id="ask", prompt=PROMPT, **FROM_CONF)

with DAG("ask_once", schedule=None):
    PlatformChatOperator(task_id="ask", prompt=PROMPT, **{**FROM_CONF, "retries": 0})

with DAG("ask_in_time", schedule=None):
    PlatformChatOperator(
        task_id="ask",
        prompt=PROMPT,
        **{**FROM_CONF, "retries": 0, "execution_timeout": timedelta(seconds=20)},
    )

# Delays of minutes, in the measure of these tests: an outage must not use up the tries.
with DAG("ask_patiently", schedule=None):
    PlatformChatOperator(
        task_id="ask", prompt=PROMPT, **{**FROM_CONF, "retry_delay": timedelta(seconds=40)}
    )

with DAG("ask_four", schedule=None):
    PlatformChatOperator.partial(task_id="ask", **FROM_CONF).expand(prompt=list(QUESTIONS))

with DAG("ask_many", schedule=None, max_active_tasks=CHATS):
    PlatformChatOperator.partial(task_id="ask", **FROM_CONF).expand(
        prompt=[f"top {number + 1} products" for number in range(CHATS)]
    )
