"""How long a task takes from `execute` to its first connection to the service, in a new process.

The process has imported what Airflow's task process has at that moment: supervisor, task runner and
the module of the operator. Measured are the clock and the processor time of this process; the best
of several processes counts, because the first reads the modules from disk.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from types import SimpleNamespace
from typing import Any

ROUNDS = 5
TASKS = {
    "chat": "a question",
    "dbt sync": "the start of a sync",
}


def main() -> None:
    """Print milliseconds."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",  # a worker has bytecode
            "AIRFLOW_HOME": home,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        }
        for kind, name in TASKS.items():
            times = []
            for _ in range(ROUNDS):
                done = subprocess.run(
                    [sys.executable, __file__, kind],
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                times.append([float(word) for word in done.stdout.split()[-2:]])
            clock, worked = (min(column) * 1e3 for column in zip(*times, strict=True))
            print(f"{name}: {clock:.0f} ms by the clock, {worked:.0f} ms of processor time")


def operator_of(kind: str) -> Any:
    """A task of the kind; its module is imported here, as a DAG file does."""
    if kind == "chat":
        from airflow_provider_platform.operators.chat import PlatformChatOperator

        return PlatformChatOperator(task_id="t", prompt="revenue by country", deferrable=False)
    from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator

    return PlatformDbtSyncOperator(task_id="t", branch_name="b", deferrable=False)


class TaskInstance:
    """What an operator needs of its task instance."""

    dag_id, task_id, run_id, map_index, try_number, max_tries, start_date = *"dtr", -1, 1, 0, None

    def __init__(self, task: Any) -> None:
        self.task = task

    def xcom_push(self, key: str, value: Any) -> None:
        """Forget it."""


def execute(kind: str) -> None:
    """Run the task against a service that takes the first connection and ends the process."""
    import airflow.sdk.execution_time.supervisor
    import airflow.sdk.execution_time.task_runner  # noqa: F401

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    os.environ["AIRFLOW_CONN_PLATFORM_DEFAULT"] = json.dumps(
        {
            "conn_type": "platform",
            "host": f"{url}/api",
            "password": "token-of-a-benchmark",
            "extra": {
                "chat_url": f"{url}/agents/1/chat",
                "chat_service_token": "x.y.z",
                "deployment_id": 1,
            },
        }
    )
    operator = operator_of(kind)
    began = time.perf_counter(), time.process_time()

    def take_connection() -> None:
        listener.accept()
        took = time.perf_counter() - began[0], time.process_time() - began[1]
        print(*took, flush=True)
        os._exit(0)

    threading.Thread(target=take_connection, daemon=True).start()
    operator.execute({"ti": TaskInstance(operator), "dag_run": SimpleNamespace(clear_number=0)})


if __name__ == "__main__":
    execute(sys.argv[1])
