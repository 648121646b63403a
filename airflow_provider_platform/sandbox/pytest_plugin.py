"""The pytest fixture ``platform_sandbox``. Imports only pytest until a test requests the
fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.server import Sandbox


@pytest.fixture(scope="session")
def _platform_sandbox_server() -> Iterator[Sandbox]:
    from airflow_provider_platform.sandbox.server import Sandbox

    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def _platform_airflow_database() -> None:
    from airflow_provider_platform.sandbox.demo.dag_runs import ensure_database

    ensure_database()


@pytest.fixture
def platform_sandbox(
    _platform_sandbox_server: Sandbox,
    _platform_airflow_database: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sandbox]:
    """A fresh sandbox, to which the connection ``platform_default`` points during the test.

    If Airflow's home has no metadata database, the fixture creates it, so that DAGs can run.
    """
    sandbox = _platform_sandbox_server
    sandbox.control.reset()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", sandbox.connection_json())
    yield sandbox
    sandbox.control.reset()
