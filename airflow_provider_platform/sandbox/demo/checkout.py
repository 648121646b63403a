"""Where the demo finds the example pipeline and keeps its files.

In a checkout of the project that is the checkout itself; the installed package brings the examples
with it and keeps what it makes in the folder that it is run in.
"""

from __future__ import annotations

import ast
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[2]
DAG_ID = "nightly_pipeline"
IN_CHECKOUT = (_PACKAGE.parent / "example_dags" / f"{DAG_ID}.py").exists()
CHECKOUT = _PACKAGE.parent if IN_CHECKOUT else Path.cwd()
FOLDER = Path(os.environ.get("PLATFORM_DEMO_FOLDER") or CHECKOUT / ".demo")
# A metadata database serves one release of Airflow.
HOME = FOLDER / f"airflow-{'.'.join(version('apache-airflow').split('.')[:2])}"
DAG_FILE = (_PACKAGE.parent if IN_CHECKOUT else _PACKAGE) / "example_dags" / f"{DAG_ID}.py"
_MODULE = "python -m airflow_provider_platform.sandbox.demo"
DEMO_COMMAND = "make demo" if IN_CHECKOUT else _MODULE
FRESH_COMMAND = "make demo ARGS=--fresh" if IN_CHECKOUT else f"{_MODULE} --fresh"
UI_MODULE = "airflow_provider_platform.sandbox.demo.airflow_ui"
UI_COMMAND = "make ui" if IN_CHECKOUT else f"python -m {UI_MODULE}"


DEMO_DAGS = (DAG_ID, "model_to_production")
"""The DAGs that the demo can run."""
PARAMETERS: dict[str, dict[str, Any]] = {
    DAG_ID: {"report_id": 101},
    "deliveries": {"delivery_id": 502},
    "model_to_production": {"delivery_id": 501, "workbook_id": 301, "dashboard_id": 501},
    "notifications": {"dashboard_id": 501, "email": "analyst@acme.example.com"},
    "reports_and_workbooks": {
        "report": "Revenue by country",
        "external_workbook_id": "monthly-sheet",
        "workbook_id": 301,
        "widget_id": "ai-1",
    },
    "sync_gate_publish": {"workbook_id": 301},
    "waits_and_exports": {"dashboard_id": 501, "integration_id": 3, "consent_status": "active"},
}
"""What the sandbox has for the parameters of the example DAGs that have no default, because they
name resources of the author's own account."""


def dag_file(dag_id: str) -> Path:
    """The file of one of these DAGs."""
    return DAG_FILE.with_name(f"{dag_id}.py")


def menu() -> str:
    """The DAGs that the demo can run, each with what it does: the first line of its file."""
    rows = []
    for dag_id in DEMO_DAGS:
        says = ast.get_docstring(ast.parse(dag_file(dag_id).read_text())) or ""
        rows.append(f"  {dag_id:<{max(map(len, DEMO_DAGS))}}  {says.splitlines()[0]}")
    return "\n".join(["The DAGs:", *rows])


def shown(path: Path) -> str:
    """The path as a reader in the demo's folder would type it."""
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)
