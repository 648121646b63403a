"""DAGs that ask: every argument that may be templated comes from the run's configuration."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, ExceptionRetryPolicy, RetryAction, RetryRule, task

from airflow_provider_platform.operators.chat import PlatformChatOperator

FROM_CONF = {
    "prompt": "{{ dag_run.conf['prompt'] }}",
    "if_thread_busy": "{{ dag_run.conf.get('if_thread_busy', 'wait') }}",
    "platform_conn_id": "{{ dag_run.conf['platform_conn_id'] }}",
    "deferrable": "{{ dag_run.conf['deferrable'] }}",
    "timeout": "{{ dag_run.conf.get('timeout', 1800) }}",
    "poll_interval": "{{ dag_run.conf.get('poll_interval', 0.2) }}",
    "retries": 3,
    "retry_delay": timedelta(seconds=0),
}

with DAG("ask", schedule=None):
    PlatformChatOperator(task_id="ask", **FROM_CONF)

with DAG("ask_in_thread", schedule=None):
    PlatformChatOperator(task_id="ask", chat_id="{{ dag_run.conf['chat_id'] }}", **FROM_CONF)

with DAG("ask_variable", schedule=None):
    prompt = "{{ var.value.get(dag_run.conf['prompt_variable']) }}"
    PlatformChatOperator(task_id="ask", **{**FROM_CONF, "prompt": prompt})

with DAG("ask_once", schedule=None):
    PlatformChatOperator(task_id="ask", **{**FROM_CONF, "retries": 0})

with DAG("ask_by_policy", schedule=None):
    PlatformChatOperator(
        task_id="ask",
        retry_policy=ExceptionRetryPolicy(
            rules=[
                RetryRule(
                    exception="airflow_provider_platform.client.errors.ChatNoAnswerError",
                    action=RetryAction.FAIL,
                )
            ]
        ),
        **FROM_CONF,
    )

with DAG("ask_in_time", schedule=None):
    PlatformChatOperator(
        task_id="ask",
        **{**FROM_CONF, "retries": 0, "execution_timeout": timedelta(seconds=20)},
    )


@task
def before(ti: Any = None) -> None:
    """Succeeds, and fails after a clear."""
    if ti.try_number > 1:
        raise RuntimeError("this task fails after a clear")


with DAG("ask_after", schedule=None):
    before() >> PlatformChatOperator(task_id="ask", **FROM_CONF)

with DAG("ask_mapped", schedule=None):
    shared = {name: value for name, value in FROM_CONF.items() if name != "prompt"}
    PlatformChatOperator.partial(task_id="ask", **shared).expand(
        prompt=["revenue by country", "orders by status"]
    )

FOUR = ["revenue by country", "orders by status", "revenue by month", "top 5 products"]

with DAG("ask_four", schedule=None):
    PlatformChatOperator.partial(task_id="ask", **shared).expand(prompt=FOUR)

with DAG("ask_four_once", schedule=None):
    PlatformChatOperator.partial(task_id="ask", **{**shared, "retries": 0}).expand(prompt=FOUR)

with DAG("ask_patiently", schedule=None):
    PlatformChatOperator(task_id="ask", **{**FROM_CONF, "retry_delay": timedelta(seconds=60)})


def _kill_first_try(context: Any, _result: Any = None) -> None:
    """Between the end of the task's own code and its XComs."""
    if context["ti"].try_number == 1:
        os.kill(os.getpid(), signal.SIGKILL)


with DAG("ask_and_die", schedule=None):
    PlatformChatOperator(task_id="ask", **{**FROM_CONF, "post_execute": _kill_first_try})
