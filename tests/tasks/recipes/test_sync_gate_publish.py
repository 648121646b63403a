"""The DAG `sync_gate_publish`: when it publishes, and when it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.models import DagBag

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.server import Sandbox


CONF = {"workbook_id": 301}
"""A workbook of the sandbox."""


@pytest.fixture
def dag() -> DAG:
    dags = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    return DagBag(dags / "sync_gate_publish.py").get_dag("sync_gate_publish")


def test_model_that_passes_the_gate_is_published(platform_sandbox: Sandbox, dag: DAG) -> None:
    assert dag.test(run_conf=CONF).state == "success"
    seen = platform_sandbox.control.state()
    assert len(seen.changed("branches", "merged")) == 1
    assert len(seen.changed("dashboards", "published")) == 1
    assert platform_sandbox.control.branches() == ["dev", "main"]


def test_a_closed_gate_publishes_nothing(platform_sandbox: Sandbox, dag: DAG) -> None:
    run = dag.test(run_conf=CONF | {"least_orders": 1_000_000})
    states = {task.task_id: str(task.state) for task in run.get_task_instances()}
    assert states == {
        "sync_dbt": "success",
        "open_branch": "success",
        "gate": "success",
        "close_branch": "success",
        "merge": "skipped",
        "publish_workbook": "skipped",
        "delete_branch": "skipped",
    }
    assert not platform_sandbox.control.state().changed("dashboards")


def test_a_sync_that_fails_ends_the_run(platform_sandbox: Sandbox, dag: DAG) -> None:
    for task in dag.tasks:
        task.retries = 0  # which would wait here as long as they do in production
    platform_sandbox.control.set(dbt_outcome="FAILED")
    assert dag.test(run_conf=CONF).state == "failed"
    assert not platform_sandbox.control.state().changed("branches", "merged")


def test_a_model_that_does_not_compile_is_not_merged(platform_sandbox: Sandbox, dag: DAG) -> None:
    for task in dag.tasks:
        task.retries = 0
    dag.get_task("sync_dbt").branch_name = "broken"  # the sandbox writes a broken model there
    run = dag.test(run_conf=CONF)
    states = {task.task_id: str(task.state) for task in run.get_task_instances()}
    assert (states["sync_dbt"], states["open_branch"]) == ("success", "failed")
    assert not platform_sandbox.control.state().changed("branches", "merged")


def test_a_lost_connection_starts_no_second_sync(platform_sandbox: Sandbox, dag: DAG) -> None:
    platform_sandbox.control.fault("drop", api="management", method="GET", path="dbt", count=2)
    assert dag.test(run_conf=CONF).state == "success"
    assert len(platform_sandbox.control.state().syncs) == 1
