"""The Airflow of the cluster tests: a cluster on this machine, one for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.airflow.fixtures import *  # noqa: F403 - pytest finds them by their names here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.cluster.cluster_server import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=1, help="how often each cluster test is run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    rounds = metafunc.config.getoption("rounds")
    if rounds > 1:
        metafunc.fixturenames.append("round_number")
        metafunc.parametrize("round_number", range(1, rounds + 1))


@pytest.fixture(scope="session")
def _running() -> Iterator[Cluster]:
    pytest.importorskip("airflow.providers.celery", reason="make test-cluster has the environment")
    from tests.support.cluster.cluster_server import running_cluster
    from tests.support.cluster.servers import MissingServers, check_installed

    try:
        check_installed()
        with running_cluster() as cluster:
            yield cluster
    except MissingServers as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def airflow(_running: Cluster) -> RunningAirflow:
    """The running Airflow."""
    return _running.airflow


@pytest.fixture(autouse=True)
def cluster(_running: Cluster) -> Iterator[Cluster]:
    """The cluster, whole again after each test."""
    yield _running
    _running.mend()
