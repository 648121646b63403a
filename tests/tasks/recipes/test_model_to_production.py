"""The DAG `model_to_production`: the whole night, and each of its steps when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo import dag_runs
from airflow_provider_platform.sandbox.demo.home import PARAMETERS

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

FILE = Path(__file__).parents[3] / "example_dags" / "model_to_production.py"
IN_GATE = [
    "gate.open",
    "gate.built",
    "gate.commit",
    "gate.compare_numbers",
    "gate.ask_agent",
    "gate.answer_agrees",
    "gate.merge",
]
STEPS = [
    "sync_dbt",
    *IN_GATE,
    "build_pre_aggregations",
    "deliver_report",
    "publish_workbook",
    "export_dashboard",
]
CLOSED = ["gate.close", "gate.delete"]


@pytest.fixture(autouse=True)
def tenant(platform_sandbox: Sandbox) -> None:
    scopes = ["meta", "data", "graphql", "jobs"]
    platform_sandbox.control.set(default_api_scopes=scopes, pace=0.01)


@pytest.fixture
def dag() -> DAG:
    """The DAG as it is printed, without retries, which wait for minutes."""
    dag = dag_runs.load_dag(FILE, FILE.stem)
    for task in dag.tasks:
        task.retries = 0
    build: Any = dag.get_task("build_pre_aggregations")
    build.poll_interval, build.missing_grace = 0.1, 0.5
    return dag


def conf(folder: Path, **params: Any) -> dict[str, Any]:
    return {**PARAMETERS[FILE.stem], "output_path": str(folder / "dashboard.pdf"), **params}


def changes(sandbox: Sandbox) -> list[tuple[str, str]]:
    """What reached readers."""
    seen = sandbox.control.state()
    reached = [("branches", "merged"), ("dashboards", "published")]
    return [one for one in reached if seen.changed(*one)]


def test_night_ends_with_the_new_model_in_production_and_no_branch(
    dag: DAG, platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    run = run_dag(dag, conf=conf(tmp_path))
    assert run.states == dict.fromkeys([*STEPS, *CLOSED], "success")
    assert changes(platform_sandbox) == [("branches", "merged"), ("dashboards", "published")]
    assert platform_sandbox.control.branches() == ["dev", "main"]
    assert run.xcom("build_pre_aggregations")["verified"] is True
    assert (tmp_path / "dashboard.pdf").read_bytes().startswith(b"%PDF")
    # The question and the SQL that proved the branch were asked of the branch.
    branch = run.xcom("sync_dbt", "branch_name")
    assert [one.branch for one in platform_sandbox.control.state().runs] == [branch]


REVIEW = {
    "path": "/publish",
    "status": 400,
    "message": "This dashboard requires review before publishing",
    "count": None,
}
NOT_ACTIVATED = {
    "path": "/report-deliveries",
    "status": 404,
    "message": "Not Found",
    "count": None,
}
MERGED = [("branches", "merged")]
FAILURES: list[Any] = [
    ("sync_dbt", {"dbt_outcome": "FAILED"}, {}, "dbt", []),
    ("gate.open", "switching staging on", {}, "the service answered 403", []),
    ("gate.built", {"build_outcome": "failed"}, {}, "ended as failed", []),
    ("gate.compare_numbers", {"branch_lacks_months": ["2025-12"]}, {}, "in production", []),
    ("gate.ask_agent", {}, {"question": "sql: SELECT missing FROM orders"}, "no such column", []),
    ("gate.answer_agrees", {}, {"question": "total revenue in March"}, "SQL finds a revenue", []),
    ("gate.merge", {"merge_outcome": "conflict"}, {}, "conflicts with main", []),
    ("build_pre_aggregations", {"jobs_outcome": "no_rows"}, {}, "verify_sql", MERGED),
    ("deliver_report", {"delivery_outcome": "failed"}, {}, "overwrite filled cells", MERGED),
    ("publish_workbook", {}, {"workbook_id": 399}, "404", MERGED),
    ("export_dashboard", {"export_outcome": "failed"}, {}, "export", None),
]


@pytest.mark.parametrize(
    ("task_id", "settings", "params", "words", "reached"),
    FAILURES,
    ids=[f"{one[0]}-{one[3]}" for one in FAILURES],
)
def test_step_that_fails_says_why_and_nothing_runs_after_it(
    task_id: str,
    settings: dict[str, Any] | str,
    params: dict[str, Any],
    words: str,
    reached: list[tuple[str, str]] | None,
    dag: DAG,
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    tmp_path: Path,
) -> None:
    if isinstance(settings, dict):
        platform_sandbox.control.set(**settings)
    else:
        staging = {"method": "PUT", "path": "/staging-environment$"}
        platform_sandbox.control.fault("status", status=403, count=None, **staging)
    run = run_dag(dag, conf=conf(tmp_path, **params))
    assert run.state == run.states[task_id] == "failed"
    assert words in str(run.task(task_id).error)
    after = dag.get_task(task_id).get_flat_relative_ids(upstream=False) - {*CLOSED}
    assert {run.states[name] for name in after} <= {"upstream_failed"}
    if reached is not None:
        assert changes(platform_sandbox) == reached
    if run.states["sync_dbt"] == "success":
        kept = run.xcom("sync_dbt", "branch_name") in platform_sandbox.control.branches()
        assert kept == (run.states["gate.merge"] != "success")


def test_dashboard_that_requires_review_is_left_to_a_person_and_exported(
    dag: DAG, platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    platform_sandbox.control.fault("status", **REVIEW)
    run = run_dag(dag, conf=conf(tmp_path))
    assert (run.state, run.states["publish_workbook"]) == ("success", "skipped")
    assert changes(platform_sandbox) == MERGED
    assert (tmp_path / "dashboard.pdf").read_bytes().startswith(b"%PDF")


def test_night_ends_without_a_delivery_where_deliveries_are_not_activated(
    dag: DAG, platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    platform_sandbox.control.fault("status", **NOT_ACTIVATED)
    run = run_dag(dag, conf=conf(tmp_path))
    assert (run.state, run.states["deliver_report"]) == ("success", "skipped")
    assert changes(platform_sandbox) == [("branches", "merged"), ("dashboards", "published")]
    assert (tmp_path / "dashboard.pdf").read_bytes().startswith(b"%PDF")
