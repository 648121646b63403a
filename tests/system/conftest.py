"""A real Airflow and a sandbox in a process of its own, and starting tasks in the one against the
other.

Under pytest-xdist one Airflow serves all workers: their controller starts it. Each worker has a
sandbox and a connection of its own, so that tests do not meet there.
"""

from __future__ import annotations

import fcntl
import re
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.airflow_api import AirflowApi
from tests.system.airflow_processes import AirflowProcesses
from tests.system.airflow_server import DAGS, RunningAirflow, running_airflow
from tests.system.sandbox_server import PatientControl, running_sandbox
from tests.system.task_run import TaskRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psutil

    StartTask = Callable[..., TaskRun]

_SHARED = "running_airflow"
_stack = ExitStack()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called in the controller before each of its workers starts."""
    config = node.config
    if not hasattr(config, "_running_airflow"):
        config._running_airflow = _stack.enter_context(running_airflow())
    node.workerinput[_SHARED] = config._running_airflow.as_json()


def pytest_unconfigure(config: pytest.Config) -> None:
    _stack.close()


@pytest.fixture(scope="session")
def airflow(request: pytest.FixtureRequest) -> Iterator[RunningAirflow]:
    """The running Airflow."""
    shared = getattr(request.config, "workerinput", None)
    if shared is None:
        with running_airflow() as server:
            yield server
    elif _SHARED in shared:
        yield RunningAirflow.from_json(shared[_SHARED])
    else:
        pytest.fail("In parallel, name tests/system on the command line: it starts its Airflow.")


@pytest.fixture(scope="session")
def api(airflow: RunningAirflow) -> Iterator[AirflowApi]:
    """Airflow's REST API, its DAGs found and unpaused."""
    wanted = set(re.findall(r'DAG\("(\w+)"', "".join(p.read_text() for p in DAGS.glob("*.py"))))
    with AirflowApi(airflow.url) as client:
        deadline = time.monotonic() + 90
        while not wanted <= set(client.dags()):
            assert time.monotonic() < deadline, f"DAGs are missing: {client.dags()}"
            time.sleep(0.3)
        for dag_id in wanted:
            client.unpause(dag_id)
        yield client


@pytest.fixture(scope="session")
def processes(airflow: RunningAirflow) -> AirflowProcesses:
    return AirflowProcesses(airflow.session)


@pytest.fixture
def _part_of_triggerer(airflow: RunningAirflow, request: pytest.FixtureRequest) -> Iterator[None]:
    """All workers' tests share the triggerer; who kills it needs it alone."""
    alone = "only_triggerer" in request.fixturenames
    with (airflow.home / "triggerer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.fixture
def only_triggerer(processes: AirflowProcesses, _part_of_triggerer: None) -> list[psutil.Process]:
    """The triggerer and its children; no other test runs meanwhile."""
    (triggerer,) = processes.triggerers()
    return [triggerer, *triggerer.children(recursive=True)]


@pytest.fixture(scope="session")
def _sandbox_control() -> Iterator[PatientControl]:
    with running_sandbox() as control:
        yield control


@pytest.fixture
def sandbox(_sandbox_control: PatientControl) -> Iterator[PatientControl]:
    """The control of a sandbox that has seen nothing yet."""
    _sandbox_control.reset()
    yield _sandbox_control
    _sandbox_control.reset()


@pytest.fixture
def connection_id(api: AirflowApi, sandbox: PatientControl, worker_id: str) -> str:
    """A connection in the metadata database that leads to the sandbox."""
    name = f"platform_{worker_id}"
    api.put_connection(name, sandbox.connection())
    return name


@pytest.fixture
def start_task(
    api: AirflowApi,
    processes: AirflowProcesses,
    connection_id: str,
    sandbox: PatientControl,
    _part_of_triggerer: None,
) -> Iterator[StartTask]:
    """`start_task(dag_id, task_id, **conf)` triggers a DAG run; what is left of it is ended."""
    started: list[TaskRun] = []

    def start(dag_id: str, task_id: str, **conf: Any) -> TaskRun:
        whole = {"platform_conn_id": connection_id, "deferrable": False, **conf}
        run_id = api.start_run(dag_id, whole)
        task = TaskRun(api, processes, dag_id, run_id, task_id)
        started.append(task)
        return task

    yield start
    sandbox.release()
    for task in started:
        task.end()


@pytest.fixture
def ask(start_task: StartTask) -> StartTask:
    """`ask(prompt, *, dag_id="ask", deferrable=False, **conf)`: a task that asks the agent."""

    def start(prompt: str = "revenue by country", *, dag_id: str = "ask", **conf: Any) -> TaskRun:
        return start_task(dag_id, "ask", prompt=prompt, **conf)

    return start


@pytest.fixture
def sync(start_task: StartTask) -> StartTask:
    """`sync(*, dag_id="sync", deferrable=False, **conf)`: a task that starts a dbt sync."""

    def start(*, dag_id: str = "sync", **conf: Any) -> TaskRun:
        return start_task(dag_id, "sync", **conf)

    return start
