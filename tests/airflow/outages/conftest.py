"""An Airflow of their own for the tests that end parts of it which other tests need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.airflow.airflow_server import RunningAirflow, running_airflow
from tests.support.airflow.fixtures import *  # noqa: F403 - fixtures of this folder, on its Airflow

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psutil

    from tests.support.airflow.airflow_processes import AirflowProcesses


@pytest.fixture(scope="session")
def airflow() -> Iterator[RunningAirflow]:
    """The running Airflow."""
    with running_airflow() as server:
        yield server


@pytest.fixture
def triggerer(processes: AirflowProcesses) -> list[psutil.Process]:
    """The triggerer and its children."""
    (top,) = processes.triggerers()
    return [top, *top.children(recursive=True)]
