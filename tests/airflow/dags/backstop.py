"""A DAG whose trigger outlasts its deadline, with a backstop that comes soon."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG

from airflow_provider_platform.operators import _remote_run
from airflow_provider_platform.operators.chat import PlatformChatOperator

_remote_run.BACKSTOP_SECONDS = 1.0


class AskWithLateTrigger(PlatformChatOperator):
    def defer(self, *, trigger: Any, **kwargs: Any) -> None:
        trigger.deadline += 3600
        super().defer(trigger=trigger, **kwargs)


with DAG("ask_with_late_trigger", schedule=None):
    AskWithLateTrigger(
        task_id="ask",
        prompt="{{ dag_run.conf['prompt'] }}",
        platform_conn_id="{{ dag_run.conf['platform_conn_id'] }}",
        deferrable=True,
        timeout=10,
    )
