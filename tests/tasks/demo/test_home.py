"""The demo's folder: filled-in forms of the examples, stored connections, one demo at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo import dag_runs, home
from airflow_provider_platform.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXAMPLES = sorted(file.stem for file in home.EXAMPLES.glob("*.py"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The demo's folder and home for this test, with the test's environment kept."""
    monkeypatch.setattr(home, "FOLDER", tmp_path)
    monkeypatch.setattr(home, "HOME", tmp_path / "airflow")
    before, umask = dict(os.environ), os.umask(0o022)
    yield tmp_path
    os.umask(umask)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def sandbox() -> Sandbox:
    sandbox = Sandbox()
    sandbox.url = "http://127.0.0.1:4711"
    return sandbox


@pytest.mark.parametrize("dag_id", EXAMPLES)
def test_each_example_dag_has_all_parameters_in_the_demo(dag_id: str, airflow_db: None) -> None:
    dag = dag_runs.load_dag(home.EXAMPLES / f"{dag_id}.py", dag_id)
    home.dag_policy(dag)
    for owner in (dag, *dag.tasks):
        owner.params.validate()
    assert None not in [dag.params[name] for name in home.PARAMETERS.get(dag_id, {})]


@pytest.mark.parametrize("dag_id", sorted(home.PARAMETERS))
def test_example_dag_names_no_id_of_an_account_without_the_demo(
    dag_id: str, airflow_db: None
) -> None:
    params = dag_runs.load_dag(home.EXAMPLES / f"{dag_id}.py", dag_id).params
    assert set(home.PARAMETERS[dag_id]) <= set(params)
    for name in home.PARAMETERS[dag_id]:
        param = params.get_param(name)
        assert not param.has_value or param.value is None


@pytest.mark.exhaustive
def test_airflow_of_the_demo_fills_in_the_forms(folder: Path) -> None:
    with home.prepared():
        read = (
            "from airflow_provider_platform.sandbox.demo import dag_runs, home\n"
            "dag_runs.ensure_database()\n"
            "dag = dag_runs.load_dag(home.EXAMPLES / 'deliveries.py', 'deliveries')\n"
            "print('form', dict(dag.params), [dict(task.params) for task in dag.tasks][0])"
        )
        done = subprocess.run(
            [sys.executable, "-c", read], capture_output=True, text=True, check=True
        )
    assert "form {'delivery_id': 502} {'delivery_id': 502}" in done.stdout


def test_two_demos_do_not_run_in_one_folder(folder: Path) -> None:
    with home.prepared(), pytest.raises(home.DemoError, match="Another demo"), home.prepared():
        pass
    with home.prepared():
        pass


@pytest.fixture
def _nothing_stored(airflow_db: None) -> Iterator[None]:
    from airflow.models import Connection
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    yield
    with create_session() as session:
        session.query(Connection).filter(Connection.conn_id.in_(home.CONN_IDS)).delete()
        session.query(Pool).filter_by(pool=home.POOL).delete()


def stored(conn_id: str) -> dict[str, Any]:
    from airflow.models import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        row = session.query(Connection).filter_by(conn_id=conn_id).one()
        names = ("conn_type", "host", "password", "port")
        return {name: getattr(row, name) for name in names} | {"extra": row.extra_dejson}


@pytest.mark.usefixtures("_nothing_stored")
@pytest.mark.parametrize("conn_id", home.CONN_IDS)
def test_stored_connection_follows_the_sandbox(sandbox: Sandbox, conn_id: str) -> None:
    home.store_connections(sandbox)
    assert stored(conn_id) == {**sandbox.connection(), "port": 443}
    sandbox.url = "http://127.0.0.1:4712"
    home.store_connections(sandbox)
    assert stored(conn_id) == {**sandbox.connection(), "port": 443}


@pytest.mark.usefixtures("_nothing_stored")
def test_connection_of_a_user_is_kept(sandbox: Sandbox) -> None:
    from airflow.models import Connection
    from airflow.utils.session import create_session

    home.store_connections(sandbox)
    with create_session() as session:
        row = session.query(Connection).filter_by(conn_id="platform_default").one()
        row.description, row.host = "mine", "https://acme.example.com/api"
    home.store_connections(sandbox)
    assert stored("platform_default")["host"] == "https://acme.example.com/api"
    assert stored("platform_next")["host"] == f"{sandbox.url}/api"


@pytest.mark.usefixtures("_nothing_stored")
def test_pool_of_the_examples_counts_deferred_tasks(sandbox: Sandbox) -> None:
    from airflow.models.pool import Pool

    home.store_connections(sandbox)
    pool = Pool.get_pool(home.POOL)
    assert (pool.slots, pool.include_deferred) == (4, True)


BUSY_TIMEOUT = """
from airflow import settings
from sqlalchemy import text
with settings.engine.connect() as connection:
    print("waits", connection.execute(text("PRAGMA busy_timeout")).scalar(), "ms")
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("part", "milliseconds"), [("scheduler", 120_000), ("api-server", 5_000)])
def test_only_the_api_server_has_a_short_database_timeout(
    folder: Path, part: str, milliseconds: int
) -> None:
    with home.prepared():
        printed = subprocess.run(
            [sys.executable, "-c", BUSY_TIMEOUT, part], capture_output=True, text=True, check=True
        )
    assert f"waits {milliseconds} ms" in printed.stdout


def test_only_this_user_can_read_the_files_of_the_demo(folder: Path) -> None:
    with home.prepared():
        (folder / "airflow" / "airflow.cfg").write_text("secret")
        found = {path.stat().st_mode & 0o077 for path in folder.rglob("*")}
    assert found == {0}
