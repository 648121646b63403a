"""What every test on a running Airflow is given: its API, a sandbox in a process of its own, and
starting tasks in the one against the other. Whoever uses this says which Airflow, with the fixture
`airflow`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.support.airflow.airflow_api import AirflowApi
from tests.support.airflow.airflow_processes import AirflowProcesses
from tests.support.airflow.sandbox_server import PatientControl, running_sandbox
from tests.support.airflow.task_run import PATIENCE, TaskRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.airflow.airflow_server import RunningAirflow

    StartTask = Callable[..., TaskRun]

__all__ = [
    "api",
    "ask",
    "connection_id",
    "processes",
    "sandbox",
    "sandbox_control",
    "start_task",
    "started",
    "sync",
]


@pytest.fixture(scope="session")
def api(airflow: RunningAirflow) -> Iterator[AirflowApi]:
    """Airflow's REST API, its DAGs found and unpaused."""
    files = (airflow.home / "dags").glob("*.py")
    wanted = set(re.findall(r'DAG\("(\w+)"', "".join(file.read_text() for file in files)))
    with AirflowApi(airflow.url) as client:
        deadline = time.monotonic() + PATIENCE
        while not wanted <= set(client.dags()):
            assert time.monotonic() < deadline, f"DAGs are missing: {client.dags()}"
            time.sleep(0.3)
        for dag_id in wanted:
            client.unpause(dag_id)
        yield client


@pytest.fixture(scope="session")
def processes(airflow: RunningAirflow) -> AirflowProcesses:
    return AirflowProcesses(airflow.session)


@pytest.fixture(scope="session")
def sandbox_control() -> Iterator[PatientControl]:
    with running_sandbox() as control:
        yield control


@pytest.fixture
def sandbox(sandbox_control: PatientControl) -> Iterator[PatientControl]:
    """The control of a sandbox that has seen nothing yet."""
    sandbox_control.reset()
    yield sandbox_control
    sandbox_control.reset()


@pytest.fixture
def connection_id(api: AirflowApi, sandbox: PatientControl) -> str:
    """A connection in the metadata database that leads to the sandbox. Each attempt of a test has
    its own: a process that an earlier one has left has old credentials, which the sandbox refuses.
    """
    name = f"platform_{uuid4().hex}"
    api.put_connection(name, sandbox.connection())
    return name


@pytest.fixture
def started() -> list[TaskRun]:
    """What `start_task` has started."""
    return []


@pytest.fixture
def start_task(
    api: AirflowApi,
    processes: AirflowProcesses,
    connection_id: str,
    sandbox: PatientControl,
    started: list[TaskRun],
) -> Iterator[StartTask]:
    """`start_task(dag_id, task_id, **conf)` triggers a DAG run; what is left of it is ended."""

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
    """`ask(prompt, *, dag_id="ask", deferrable=False, **conf)`: a task that asks the agent, in a
    thread with `chat_id`."""

    def start(
        prompt: str = "revenue by country", *, dag_id: str | None = None, **conf: Any
    ) -> TaskRun:
        dag_id = dag_id or ("ask_in_thread" if "chat_id" in conf else "ask")
        return start_task(dag_id, "ask", prompt=prompt, **conf)

    return start


@pytest.fixture
def sync(start_task: StartTask) -> StartTask:
    """`sync(*, dag_id="sync", deferrable=False, **conf)`: a task that starts a dbt sync."""

    def start(*, dag_id: str = "sync", **conf: Any) -> TaskRun:
        return start_task(dag_id, "sync", **conf)

    return start
