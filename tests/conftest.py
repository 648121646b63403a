"""What all tests share: an Airflow of their own, and running a DAG in it from beginning to end.

Airflow reads its environment when it is first imported, and every test process (pytest-xdist
starts several) needs a home of its own: the assignments below come before any such import.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo.airflow_home import isolated

AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="airflow-home-"))
(AIRFLOW_HOME / "dags").mkdir()
_variables = isolated(os.environ, AIRFLOW_HOME, AIRFLOW_HOME / "dags")
os.environ.clear()
os.environ.update(_variables)

from airflow_provider_platform.sandbox.demo import dag_runs  # noqa: E402
from tests import hypothesis_profiles  # noqa: E402

hypothesis_profiles.load_profile()

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun

    RunDag = Callable[..., FinishedRun]


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(AIRFLOW_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """The AIRFLOW_HOME of this test process."""
    return AIRFLOW_HOME


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """The metadata database of this test process."""
    dag_runs.ensure_database()
    supervisor = import_module("airflow.sdk.execution_time.supervisor")
    # Airflow 3.3 makes the API of `DAG.test` once, its predecessors for each task, which takes
    # them longer than the task.
    if not hasattr(supervisor.in_process_api_server, "cache_info"):
        supervisor.in_process_api_server = cache(supervisor.in_process_api_server)


@pytest.fixture
def run_dag(airflow_db: None) -> RunDag:
    """`run_dag(dag, conf=None)`: run a DAG object, or the DAG `dag_id` of a file, to its end."""

    def run(
        dag: DAG | Path, dag_id: str | None = None, conf: dict[str, Any] | None = None
    ) -> FinishedRun:
        if isinstance(dag, Path):
            dag = dag_runs.load_dag(dag, dag_id or dag.stem)
        return dag_runs.run_dag(dag, conf)

    return run
