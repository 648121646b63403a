"""The demo's Airflow process: runs one DAG and writes what came of it to a file as JSON.

``python -m airflow_provider_platform.sandbox.demo.run_one_dag FILE DAG_ID CONF CONNECTION
RESULT``; the environment says where AIRFLOW_HOME is. CONF holds the run's parameters as JSON,
CONNECTION is the file of a connection as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from airflow_provider_platform.sandbox.demo import dag_runs
from airflow_provider_platform.sandbox.demo.stored_settings import (
    export_connection,
    store_settings,
)
from airflow_provider_platform.sandbox.demo.task_log_writer import announced_task_logs


def main(file: str, dag_id: str, conf: str, connection: str, result: str) -> int:
    """Run the DAG; the exit code is 0 when there is a result, whatever the run's state."""
    dag_runs.initialise_database()
    store_settings(Path(connection))
    export_connection()
    with announced_task_logs():
        run = dag_runs.run_dag(dag_runs.load_dag(Path(file), dag_id), json.loads(conf))
    Path(result).write_text(json.dumps(asdict(run), default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
