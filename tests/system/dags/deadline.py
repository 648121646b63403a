"""A DAG that asks and then waits for the message of its missed deadline."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator

TOLD = (
    PlatformAnswerNotifier,
    {
        "send_with": [{"class": "message_file.MessageFile", "name": "{{ dag_run.dag_run_id }}"}],
        "task_id": "ask",
        "title": "Late: {{ dag_run.dag_id }}",
    },
)

LATE = DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT,
    interval=timedelta(seconds=20),
    callback=AsyncCallback(*TOLD),
)

with DAG("ask_late", schedule=None, deadline=LATE):
    ask = PlatformChatOperator(
        task_id="ask",
        prompt="{{ dag_run.conf['prompt'] }}",
        platform_conn_id="{{ dag_run.conf['platform_conn_id'] }}",
    )

    @task.sensor(poke_interval=1, timeout=90, mode="poke")
    def told(run_id: Any = None) -> bool:
        return (Path(os.environ["AIRFLOW_HOME"]) / f"{run_id}.json").exists()

    ask >> told()
