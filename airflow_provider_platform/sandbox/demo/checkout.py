"""Where the demo finds the example pipeline and keeps its files: in a checkout of the project."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
FOLDER = CHECKOUT / ".demo"
HOME = FOLDER / "airflow"
DAG_ID = "nightly_pipeline"
DAG_FILE = CHECKOUT / "example_dags" / f"{DAG_ID}.py"


def shown(path: Path) -> str:
    """The path as a reader in the checkout's folder would type it."""
    return str(path.relative_to(CHECKOUT))
