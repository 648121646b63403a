"""The demo's Airflow process: runs one DAG and writes what came of it to a file as JSON.

``python -m airflow_provider_platform.sandbox.demo.airflow_process FILE DAG_ID RESULT``; the
environment says where AIRFLOW_HOME is.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from airflow_provider_platform.sandbox.demo import dag_runs


def main(file: str, dag_id: str, result: str) -> int:
    """Run the DAG; the exit code is 0 when there is a result, whatever the run's state."""
    dag_runs.initialise_database()
    run = dag_runs.run_dag(dag_runs.load_dag(Path(file), dag_id))
    Path(result).write_text(json.dumps(asdict(run), default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
