"""What all tests share: an Airflow of their own, and running a DAG in it.

Airflow reads its environment when it is first imported, and every test process (pytest-xdist
starts several) needs a home of its own: the assignments below come before any such import.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo.dag_runs import isolated

TESTS = Path(__file__).parent
AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="airflow-home-"))
(AIRFLOW_HOME / "dags").mkdir()
_variables = isolated(os.environ, AIRFLOW_HOME, AIRFLOW_HOME / "dags")
os.environ.clear()
os.environ.update(_variables)

from airflow_provider_platform.sandbox.demo import dag_runs  # noqa: E402
from tests.support import hypothesis_profiles  # noqa: E402

hypothesis_profiles.load_profile()

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun

    RunDag = Callable[..., FinishedRun]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    with _no_garbage():
        return (yield)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Make objects without the garbage collector, and keep it away from them afterwards. Tests,
    modules and routes never become garbage. Looking through them took half the time of collecting
    the tests, and up to a second in each later pass."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(AIRFLOW_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """The AIRFLOW_HOME of this test process."""
    return AIRFLOW_HOME


@pytest.fixture(scope="session")
def _platform_airflow_database(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Makes the metadata database of this test process. Test processes that run side by side make
    one and copy it: that takes a fraction of Airflow's migrations. No commit waits for the disk."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", _do_not_wait_for_the_disk)
    if worker_id == "master":
        dag_runs.ensure_database()
        return
    shared = tmp_path_factory.getbasetemp().parent / "airflow.db"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shared.exists():
            shutil.copy(shared, AIRFLOW_HOME / "airflow.db")
        dag_runs.ensure_database()
        if not shared.exists():
            with (
                closing(sqlite3.connect(AIRFLOW_HOME / "airflow.db")) as made,
                closing(sqlite3.connect(shared)) as copy,
            ):
                made.backup(copy)


def _do_not_wait_for_the_disk(connection: Any, _: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(scope="session")
def airflow_db(_platform_airflow_database: None) -> None:
    """The metadata database of this test process, ready to run DAGs."""
    from tests.support.releases import airflow_httpx

    supervisor = import_module("airflow.sdk.execution_time.supervisor")
    # Airflow 3.3 makes the API of `DAG.test` once, its predecessors for each task, which takes
    # them longer than the task.
    if not hasattr(supervisor.in_process_api_server, "cache_info"):
        supervisor.in_process_api_server = cache(supervisor.in_process_api_server)
    # The first request to this API makes its routes.
    with (
        _no_garbage(),
        airflow_httpx().Client(
            transport=supervisor.in_process_api_server().transport, base_url="http://in-process"
        ) as client,
    ):
        client.get("/health")


@pytest.fixture(autouse=True)
def _short_pauses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the sandbox, which is in the same process, a shorter time than for the service:
    before a request is sent again, before the first poll of a trigger, and for records that may
    still come."""
    of_the_sandbox = request.path.is_relative_to(TESTS / "tasks" / "sandbox")
    if "platform_sandbox" in request.fixturenames and not of_the_sandbox:
        client = "airflow_provider_platform.client"
        resources = "airflow_provider_platform.resources"
        monkeypatch.setattr(f"{client}.repeats.FIRST_PAUSE", 0.01)
        monkeypatch.setattr(f"{resources}.sql.query.REPEAT_PAUSE", 0.01)
        monkeypatch.setattr(f"{resources}.pre_aggregations.REPEAT_PAUSE", 0.01)
        monkeypatch.setattr(f"{resources}.chat.call.EARLY_END", 0.0)
        monkeypatch.setattr(f"{resources}.chat.call.LATE_MESSAGE_GRACE", 0.15)
        monkeypatch.setattr(f"{resources}.chat.thread.LIVE_SECONDS", 0.3)
        monkeypatch.setattr(f"{resources}.notifications.SECOND_POLL_AFTER", 0.1)
        monkeypatch.setattr(f"{resources}.merges.FILES_PAUSE", 0.1)
        monkeypatch.setattr(f"{resources}.evaluations.service.RESULTS_PAUSE", 0.1)
        monkeypatch.setattr(f"{client}.polling.FAILURE_PAUSE", 0.0)
        monkeypatch.setattr(f"{client}.polling.first_pause", _no_pause)


async def _no_pause(*_: Any) -> None:
    """Poll at once: nothing else waits."""


@pytest.fixture(autouse=True)
def _forgotten_secrets() -> Iterator[None]:
    """Forget the secrets of a test. For each new secret, Airflow compiles one pattern of all."""
    yield
    masker = sys.modules.get("airflow.sdk._shared.secrets_masker")
    if masker is not None:
        masker.reset_secrets_masker()


@pytest.fixture
def run_dag(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> RunDag:
    """`run_dag(dag, conf=None)`: run a DAG object, or the DAG `dag_id` of a file, to its end."""
    sleep = time.sleep

    def short_sleep(seconds: float) -> None:
        """`DAG.test` sleeps for a second before each scheduling pass that finds no task to run."""
        of_dag_test = sys._getframe(1).f_globals["__name__"] == "airflow.sdk.definitions.dag"
        sleep(0.02 if of_dag_test else seconds)

    monkeypatch.setattr(time, "sleep", short_sleep)

    def run(
        dag: DAG | Path, dag_id: str | None = None, conf: dict[str, Any] | None = None
    ) -> FinishedRun:
        if isinstance(dag, Path):
            dag = dag_runs.load_dag(dag, dag_id or dag.stem)
        return dag_runs.run_dag(dag, conf)

    return run
