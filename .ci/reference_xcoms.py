"""Writes docs/reference/xcoms.json: what the tasks of the example DAGs return against the sandbox.

One example for each operator and sensor, long lists cut. Run when a result gets another shape:
`make xcoms`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from airflow_provider_platform.sandbox.demo.dag_runs import isolated
from airflow_provider_platform.sandbox.demo.home import PARAMETERS

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "example_dags"
RECORDED = PROJECT / "docs" / "reference" / "xcoms.json"
ITEMS = 2
LONGEST = 160
SLACK = {"answer_to_slack": {"channel": "#revenue"}}
"""Needed only where Slack's provider is installed."""


def main() -> int:
    """Run every example DAG and keep the first result of each kind of task."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= isolated(os.environ, Path(home), EXAMPLES)
        found = record()
    RECORDED.write_text(json.dumps(found, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{RECORDED.relative_to(PROJECT)}: {', '.join(sorted(found))}")
    return 0


def record() -> dict[str, Any]:
    from airflow_provider_platform.sandbox.demo import dag_runs
    from airflow_provider_platform.sandbox.server import Sandbox

    dag_runs.ensure_database()
    found: dict[str, Any] = {}
    for file in sorted(EXAMPLES.glob("*.py")):
        with Sandbox(default_api_scopes=("meta", "data", "graphql", "jobs")) as sandbox:
            for name in ("DEFAULT", "NEXT"):
                os.environ[f"AIRFLOW_CONN_PLATFORM_{name}"] = sandbox.connection_json()
            dag = dag_runs.load_dag(file, file.stem)
            run = dag_runs.run_dag(dag, (PARAMETERS | SLACK).get(file.stem))
        for task in run.tasks:
            operator = dag.get_task(task.task_id)
            kind = getattr(operator, "custom_operator_name", None) or operator.task_type
            if "return_value" in task.xcoms and str(kind).startswith(
                ("Platform", "@task.platform")
            ):
                found.setdefault(kind, cut(task.xcoms["return_value"]))
    return found


def cut(value: Any) -> Any:
    """Return the value with only the first items of its lists, and with long strings shortened."""
    if isinstance(value, dict):
        return {name: cut(item) for name, item in value.items()}
    if isinstance(value, list):
        return [cut(item) for item in value[:ITEMS]]
    if isinstance(value, str):
        value = value.replace(tempfile.gettempdir(), "/tmp")
        return f"{value[:LONGEST]}…" if len(value) > LONGEST else value
    return value


if __name__ == "__main__":
    sys.exit(main())
