"""The recipes as DAG files of this process's Airflow, where an author's tests look for them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parents[3] / "example_dags"


@pytest.fixture(autouse=True)
def dag_file(airflow_home: Path, airflow_db: None) -> Iterator[Path]:
    file = airflow_home / "dags" / "sync_gate_publish.py"
    shutil.copy(EXAMPLES / file.name, file)
    yield file
    file.unlink()
