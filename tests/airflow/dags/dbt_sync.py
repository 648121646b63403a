"""DAGs that start a dbt sync: every argument that may be templated comes from the run's
configuration."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator

FROM_CONF = {
    "wait_for_completion": "{{ dag_run.conf.get('wait_for_completion', 'if_supported') }}",
    "platform_conn_id": "{{ dag_run.conf['platform_conn_id'] }}",
    "deferrable": "{{ dag_run.conf['deferrable'] }}",
    "timeout": "{{ dag_run.conf.get('timeout', 1800) }}",
    "poll_interval": "{{ dag_run.conf.get('poll_interval', 0.2) }}",
    "retries": 3,
    "retry_delay": timedelta(seconds=0),
}

with DAG("sync", schedule=None):
    PlatformDbtSyncOperator(task_id="sync", **FROM_CONF)

with DAG("sync_once", schedule=None):
    PlatformDbtSyncOperator(task_id="sync", **{**FROM_CONF, "retries": 0})


def _kill_first_try(context: Any, _result: Any = None) -> None:
    """Between the end of the task's own code and its XComs."""
    if context["ti"].try_number == 1:
        os.kill(os.getpid(), signal.SIGKILL)


with DAG("sync_and_die", schedule=None):
    PlatformDbtSyncOperator(task_id="sync", **{**FROM_CONF, "post_execute": _kill_first_try})

with DAG("sync_not_durable", schedule=None):
    PlatformDbtSyncOperator(task_id="sync", durable=False, **FROM_CONF)
