"""Where the demo finds the example pipeline and keeps its files.

In a checkout of the project that is the checkout itself; the installed package brings the examples
with it and keeps what it makes in the folder that it is run in.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

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
UI_COMMAND = "make ui" if IN_CHECKOUT else f"{_MODULE}.ui"


def shown(path: Path) -> str:
    """The path as a reader in the demo's folder would type it."""
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)
