"""Builds of pre-aggregations against the sandbox: both ways to wait give the same XComs and
errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, Asset

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from tests.support.modes import in_both_modes, is_deferred

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

MONTHS = "orders.revenue_by_month"


@pytest.fixture
def build(request: pytest.FixtureRequest, run_dag: RunDag, platform_sandbox: Sandbox) -> Any:
    """Build pre-aggregations in a DAG of its own; returns the finished task."""
    platform_sandbox.control.set(default_api_scopes=["meta", "data", "graphql", "jobs"])

    def run(**arguments: Any) -> FinishedTask:
        with DAG(dag_id="build", params={"month": "2025-03", "nothing": None}) as dag:
            PlatformBuildPreAggregationsOperator(
                task_id="build",
                deferrable=is_deferred(request),
                retries=0,
                **{"poll_interval": 0.1, "missing_grace": 0.3, **arguments},
            )
        return run_dag(dag).task("build")

    return run


def starts(sandbox: Sandbox) -> int:
    return len(sandbox.control.state().changed("pre-aggregation-jobs"))


@in_both_modes("build")
def test_result_and_its_keys_are_the_same_in_both_modes(
    build: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(jobs_build_seconds=0.3, jobs_gap_seconds=0.2)
    task = build(
        pre_aggregations=[MONTHS],
        date_range=["{{ params.month }}-01", "{{ params.month }}-31"],
        contexts='[{"securityContext": {"tenant": "acme"}}]',
        verify_sql="SELECT SUM(amount) FROM orders WHERE month = '{{ params.month }}'",
    )
    assert task.error is None
    result = task.xcoms["return_value"]
    assert {key: task.xcoms[key] for key in result} == result
    assert (result["status"], result["verified"], result["table_count"]) == ("done", True, 2)
    names = [name.rsplit("_", 1)[0] for name in result["tables"]]
    assert names == [
        "prod_pre_aggregations.orders_revenue_by_month20250301",
        "prod_pre_aggregations.orders_order_lines",
    ]
    assert len(result["tokens"]) == 2
    assert starts(platform_sandbox) == 1


def test_pre_aggregations_that_stand_on_a_table_are_built(
    build: Any, platform_sandbox: Sandbox
) -> None:
    tables = ["warehouse://acme/db/public/orders", "public.customers", "invoices"]
    task = build(built_on=tables)
    assert task.error is None
    tables_built = {name.rpartition(".")[2] for name in task.xcoms["tables"]}
    assert any(name.startswith("orders_revenue_by_month") for name in tables_built)
    assert any(name.startswith("customers_by_country") for name in tables_built)
    assert not any(name.startswith("products") for name in tables_built)
    [job] = platform_sandbox.control.state().changed("pre-aggregation-jobs")
    assert job.fields == ["contexts", "preAggregations", "timezones"]


def test_nothing_is_started_if_nothing_stands_on_the_tables(
    build: Any, platform_sandbox: Sandbox
) -> None:
    task = build(built_on=Asset("x://acme/invoices"))
    assert task.error is None
    assert (task.xcoms["table_count"], task.xcoms["tokens"]) == (0, [])
    task = build(built_on="invoices", on_unknown="fail")
    assert "No pre-aggregation of a public cube reads invoices" in str(task.error)
    task = build(built_on="{{ params.nothing }}")
    assert "built_on has no value after rendering" in str(task.error)
    assert starts(platform_sandbox) == 0


def test_metadata_that_the_token_may_not_read_is_named(
    build: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(default_api_scopes=["data", "jobs"])
    assert "API scope is missing: meta" in str(build(built_on="orders").error)


@pytest.mark.parametrize("name", ["built_on", "cubes", "pre_aggregations", "data_sources"])
def test_empty_list_does_not_build_everything(name: str) -> None:
    with pytest.raises(PlatformInputError, match=f"{name} is empty"):
        PlatformBuildPreAggregationsOperator(task_id="build", **{name: []})
