"""An Airflow of its own for this process, and DAG runs in it from beginning to end.

The demo and the tests use it. Airflow reads its environment when it is first imported: set the
variables of `isolated` before that.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from airflow.sdk import DAG


RETURN_VALUE = "return_value"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def isolated(variables: Mapping[str, str], home: Path, dags: Path) -> dict[str, str]:
    """``variables`` for an Airflow with its home in ``home`` and its DAG files in ``dags``.

    The caller's Airflow settings and connections are dropped, because they may lead to a production
    database. Requests to loopback addresses bypass the caller's proxies.
    """
    others = {
        name: value
        for name, value in variables.items()
        if not name.startswith(("AIRFLOW_", "_AIRFLOW_", "__AIRFLOW_"))
    }
    bypassed = [variables[name] for name in ("NO_PROXY", "no_proxy") if variables.get(name)]
    no_proxy = ",".join((*bypassed, *_LOOPBACK))
    return others | {
        "AIRFLOW_HOME": os.fspath(home),
        "AIRFLOW__CORE__DAGS_FOLDER": os.fspath(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }


@dataclass(frozen=True)
class FinishedTask:
    """One task instance of a finished run."""

    task_id: str
    map_index: int
    """-1 for a task that is not mapped."""
    state: str
    seconds: float | None
    error: str | None
    """What the last try failed with."""
    xcoms: dict[str, Any] = field(default_factory=dict)
    """Its XComs by key, as plain JSON."""

    @property
    def name(self) -> str:
        return self.task_id if self.map_index < 0 else f"{self.task_id}[{self.map_index}]"


@dataclass(frozen=True)
class FinishedRun:
    """A DAG run that has ended, its tasks in the order in which they depend on each other."""

    dag_id: str
    run_id: str
    state: str
    tasks: list[FinishedTask]

    def task(self, task_id: str, map_index: int = -1) -> FinishedTask:
        """The task instance. Raises `KeyError`."""
        for task in self.tasks:
            if (task.task_id, task.map_index) == (task_id, map_index):
                return task
        raise KeyError(f"{self.dag_id} has no task instance {task_id} (map index {map_index})")

    def xcom(self, task_id: str, key: str = RETURN_VALUE, map_index: int = -1) -> Any:
        """The XCom of a task instance. Raises `KeyError`."""
        return self.task(task_id, map_index).xcoms[key]

    @property
    def states(self) -> dict[str, str]:
        return {task.name: task.state for task in self.tasks}


def ensure_database() -> None:
    """Make the metadata database, with its DAG bundles. An existing database stays as it is."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session
    from sqlalchemy import inspect

    with create_session() as session:
        there = inspect(session.get_bind()).has_table("alembic_version")
    if not there:
        initdb()
        DagBundlesManager().sync_bundles_to_db()


def load_dag(file: Path, dag_id: str) -> DAG:
    """The DAG of a DAG file. Raises `ValueError` with the import error if there is none."""
    bag = _dag_bag_module().DagBag(file)
    dag = bag.get_dag(dag_id)
    if dag is None:
        errors = "\n".join(bag.import_errors.values()) or f"it defines {sorted(bag.dag_ids)}"
        raise ValueError(f"{file.name} gives no DAG {dag_id!r}: {errors}")
    loaded: DAG = dag
    # As a DAG processor reads it from that folder: it is the same version then.
    loaded.relative_fileloc = file.name
    return loaded


def run_dag(
    dag: DAG,
    conf: dict[str, Any] | None = None,
    starting: Callable[[Any], None] | None = None,
) -> FinishedRun:
    """Run every task of ``dag`` in this process, deferred ones too, and wait for the end.

    The run is a row of the metadata database like any other. ``conf`` is the run's configuration.
    ``starting`` is called with each task instance before it runs.
    """
    order = [task.task_id for task in dag.topological_sort()]
    _store(dag)
    with _listening(starting) as errors:
        run = dag.test(run_conf=conf)
    xcoms = _xcoms(run.dag_id, run.run_id)
    tasks = [
        FinishedTask(
            task_id=instance.task_id,
            map_index=instance.map_index,
            state=str(instance.state),
            seconds=_seconds(instance),
            error=errors.get((instance.task_id, instance.map_index)),
            xcoms=xcoms.get((instance.task_id, instance.map_index), {}),
        )
        for instance in run.get_task_instances()
    ]
    tasks.sort(key=lambda task: (order.index(task.task_id), task.map_index))
    return FinishedRun(dag_id=run.dag_id, run_id=run.run_id, state=str(run.state), tasks=tasks)


def _seconds(instance: Any) -> float | None:
    if instance.start_date is None or instance.end_date is None:
        return None
    return float((instance.end_date - instance.start_date).total_seconds())


@contextmanager
def _listening(starting: Callable[[Any], None] | None) -> Iterator[dict[tuple[str, int], str]]:
    """Call ``starting``, and collect the errors of task instances by task id and map index."""
    import pluggy

    errors: dict[tuple[str, int], str] = {}
    implements = pluggy.HookimplMarker("airflow")

    class Listener:
        @implements
        def on_task_instance_running(self, task_instance: Any) -> None:
            if starting is not None:
                starting(task_instance)

        @implements
        def on_task_instance_failed(self, task_instance: Any, error: Any) -> None:
            named = (
                f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
            )
            errors[task_instance.task_id, task_instance.map_index] = str(named)

    # The task SDK got a manager of its own in 3.2.
    module = _first_module("airflow.sdk.listener", "airflow.listeners.listener")
    plugins = module.get_listener_manager().pm
    listener = Listener()
    plugins.register(listener)
    try:
        yield errors
    finally:
        plugins.unregister(listener)


def _store(dag: DAG) -> None:
    """Write the DAG to the database; releases before 3.1 run one without."""
    module = _dag_bag_module()
    if not hasattr(module, "sync_bag_to_db"):
        return
    bag = module.DagBag(dag_folder=None, collect_dags=False)
    bag.bag_dag(dag)
    module.sync_bag_to_db(bag, "dags-folder", None)


def _xcoms(dag_id: str, run_id: str) -> dict[tuple[str, int], dict[str, Any]]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    found: dict[tuple[str, int], dict[str, Any]] = {}
    with create_session() as session:
        rows = session.query(XComModel).filter_by(dag_id=dag_id, run_id=run_id)
        for row in rows:
            value = XComModel.deserialize_value(row)
            found.setdefault((row.task_id, row.map_index), {})[row.key] = value
    return found


def _dag_bag_module() -> Any:
    """Where the installed release keeps ``DagBag`` (moved in 3.2)."""
    return _first_module("airflow.dag_processing.dagbag", "airflow.models.dagbag")


def _first_module(*names: str) -> Any:
    """The first of the modules that the installed release has."""
    for name in names[:-1]:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    return import_module(names[-1])
