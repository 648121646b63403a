"""Whoever has the OpenLineage provider sees the queries of a task, in both modes alike."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.support.airflow.task_run import TaskRun

pytest.importorskip("airflow.providers.openlineage", reason="the OpenLineage provider")

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.airflow_processes import AirflowProcesses
    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = ("worker", "deferred")
Event = dict[str, Any]
TASKS = ["run_sql", "sql_hook"]
TASKS += [f"{name}_{mode}" for name in ("chat", "query", "failing") for mode in MODES]


def queries(events: list[Event], task_id: str) -> list[tuple[Any, ...]]:
    """What the events of a task's queries say, without ids and times."""
    return [
        (
            event["eventType"],
            event["job"]["name"].removeprefix(f"lineage.{task_id}."),
            event["job"]["facets"]["sql"]["query"],
            sorted((dataset["namespace"], dataset["name"]) for dataset in event["inputs"]),
            sorted(event["run"]["facets"]),
        )
        for event in events
        if event["job"]["name"].startswith(f"lineage.{task_id}.query.")
    ]


def root(event: Event) -> str | None:
    """The id of the DAG run that a task's or a query's event belongs to."""
    parent = event["run"]["facets"].get("parent")
    return parent and parent["root"]["run"]["runId"]


def wait_for_ends(file: Path, run_id: str) -> list[Event]:
    """The events of a DAG run, when each task has reported its end: it does so after its state is
    known. The file has events of other runs too, and may end within a line."""
    deadline = time.monotonic() + 90
    while True:
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        this_run = {
            event["run"]["runId"]
            for event in events
            if (run := event["run"]["facets"].get("airflowDagRun"))
            and run["dagRun"]["run_id"] == run_id
        }
        events = [event for event in events if root(event) in this_run]
        ended = {
            event["job"]["name"] for event in events if event["eventType"] in ("COMPLETE", "FAIL")
        }
        if {f"lineage.{task_id}" for task_id in TASKS} <= ended:
            return events
        assert time.monotonic() < deadline, ended
        time.sleep(0.5)


def test_queries_of_both_modes_are_reported_once_with_their_tables(
    airflow: RunningAirflow,
    api: AirflowApi,
    processes: AirflowProcesses,
    connection_id: str,
    sandbox: PatientControl,
) -> None:
    secret = sandbox.info()["management_token"]
    run_id = api.start_run("lineage", {"platform_conn_id": connection_id})
    first = TaskRun(api, processes, "lineage", run_id, "run_sql")
    first.wait_run("failed")  # the queries that fail
    events = wait_for_ends(airflow.home / "lineage.jsonl", run_id)
    assert secret not in json.dumps(events)

    namespace = f"platform://{urlsplit(sandbox.connection()['host']).netloc}"
    orders, customers, products = (
        (namespace, f"public.{table}") for table in ("orders", "customers", "products")
    )
    for task_id, tables in (
        ("chat", {orders, customers, products}),
        ("query", {orders, customers}),
        ("failing", {orders}),
    ):
        on_worker, deferred = (queries(events, f"{task_id}_{mode}") for mode in MODES)
        end = "FAIL" if task_id == "failing" else "COMPLETE"
        assert [(event[0], event[1]) for event in on_worker] == [
            ("START", "query.1"),
            (end, "query.1"),
        ]
        assert on_worker == deferred
        assert set(on_worker[0][3]) == tables
    twice = queries(events, "run_sql")
    assert Counter(event[2] for event in twice if event[0] == "COMPLETE") == {
        "SELECT count(*) FROM orders": 2,
        "SELECT id FROM orders WHERE status = '***'": 1,
    }
    assert [event[0] for event in queries(events, "sql_hook")] == ["START", "COMPLETE"]
    for mode in MODES:
        [ended] = [
            event
            for event in events
            if event["job"]["name"] == f"lineage.chat_{mode}" and event["eventType"] == "COMPLETE"
        ]
        assert [dataset["name"].lstrip("/") for dataset in ended["outputs"]] == ["answer.json"]
