"""Examples that need another provider, an asset event or a person."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import Asset, AssetAlias

from airflow_provider_platform.sandbox.demo import dag_runs

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

EXAMPLES = Path(__file__).parents[3] / "example_dags" / "with_others"


@pytest.mark.skipif(
    find_spec("airflow.providers.common") is None
    or find_spec("airflow.providers.common.ai") is None,
    reason="the common-ai provider is not installed",
)
def test_an_agent_of_airflow_asks_ours(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {"conn_type": "pydanticai", "extra": {"model": "test"}}
    monkeypatch.setenv("AIRFLOW_CONN_PYDANTICAI_DEFAULT", json.dumps(model))
    run = run_dag(EXAMPLES / "agent_asks_platform.py")
    assert run.states == {"answer": "success"}
    assert "sandbox's agent" in str(run.xcom("answer"))
    assert len(platform_sandbox.control.state().messages) == 1


@pytest.mark.parametrize(
    ("table", "states"),
    [
        ("public/orders", {"build": "success", "anything_built": "success", "prove": "success"}),
        ("public/invoices", {"build": "success", "anything_built": "success", "prove": "skipped"}),
    ],
)
def test_the_model_follows_its_tables(
    platform_sandbox: Sandbox, run_dag: RunDag, table: str, states: dict[str, str]
) -> None:
    platform_sandbox.control.set(default_api_scopes=["meta", "data", "graphql", "jobs"])
    dag = dag_runs.load_dag(EXAMPLES / "model_follows_data.py", "model_follows_data")
    build = dag.get_task("build")
    build.built_on = f'["warehouse://acme/analytics/{table}"]'  # type: ignore[attr-defined]
    build.poll_interval = 0.1  # type: ignore[attr-defined]
    run = run_dag(dag)
    assert run.states == states, [task.error for task in run.tasks]
    if states["prove"] == "success":
        assert run.xcom("prove") == ["orders.revenue_by_month"]


def test_the_alias_of_an_asset_names_no_table() -> None:
    """Cosmos emits its assets through an alias, which Airflow lists beside them."""
    dag = dag_runs.load_dag(EXAMPLES / "model_follows_data.py", "model_follows_data")
    build = dag.get_task("build")
    events = {Asset("warehouse://acme/analytics/public/orders"): [], AssetAlias("cosmos"): []}
    built_on = build.built_on  # type: ignore[attr-defined]
    rendered = build.render_template(built_on, {"triggering_asset_events": events})
    assert json.loads(rendered) == ["warehouse://acme/analytics/public/orders"]


def test_a_run_without_an_event_builds_nothing(platform_sandbox: Sandbox, run_dag: RunDag) -> None:
    dag = dag_runs.load_dag(EXAMPLES / "model_follows_data.py", "model_follows_data")
    for task in dag.tasks:
        task.retries = 0
    run = run_dag(dag)
    assert "built_on has no value after rendering" in str(run.task("build").error)


def test_a_person_stands_between_the_checks_and_the_merge() -> None:
    pytest.importorskip("airflow.providers.standard.operators.hitl")
    dag = dag_runs.load_dag(EXAMPLES / "approve_merge.py", "approve_merge")
    approve = dag.get_task("branch_gate.approve")
    assert approve.upstream_task_ids == {"branch_gate.count"}
    assert "branch_gate.merge" in approve.get_flat_relative_ids(upstream=False)
    assert approve.fail_on_reject  # type: ignore[attr-defined]
