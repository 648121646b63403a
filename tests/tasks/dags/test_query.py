"""Queries in Airflow, from the DAG to its XComs and asset events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Asset, task

from airflow_provider_platform.operators.query import PlatformQueryOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


def activate(asset: Asset) -> None:
    """What the DAG processor does: Airflow 3.0 runs no task with an asset that it has not seen."""
    from airflow.models.asset import AssetActive, AssetModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(AssetModel(name=asset.name, uri=asset.uri, group="asset", extra={}))
        session.flush()
        session.add(AssetActive.for_asset(asset))


def test_queries_of_a_dag_write_files_assets_and_results(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "orders.csv"
    asset = Asset(name="orders", uri=path.as_uri())
    activate(asset)
    facts: dict[str, Any] = {}
    with DAG(dag_id="queries", params={"rows": 3}) as dag:
        write = PlatformQueryOperator(
            task_id="write",
            sql="SELECT id, amount FROM orders",
            output_path=str(tmp_path / "{{ dag.dag_id }}" / ".." / path.name),
            output_format="csv",
            outlets=[asset],
            deferrable=False,
            post_execute=lambda context, result: facts.update(
                context["outlet_events"][asset].extra
            ),
        )
        later = PlatformQueryOperator(
            task_id="later",
            sql="SELECT id FROM orders WHERE id <= %(last)s AND status <> %(other)s",
            parameters={"last": 3, "other": "{{ dag.dag_id }}' OR '1' = '1"},
            output_path="{{ none }}",
            deferrable=True,
        )

        @task.platform_sql(deferrable=True)  # type: ignore[attr-defined]
        def decorated(kind: str, params: Any = None) -> str:
            return f"SELECT id FROM orders WHERE status = '{kind}' LIMIT {params['rows']}"

        refused = PlatformQueryOperator(
            task_id="refused", sql="SELECT nonsense FROM orders", retries=0, deferrable=False
        )
        [write, later] >> decorated("delivered") >> refused
    run = run_dag(dag)
    tasks = {one.task_id: one for one in run.tasks}
    result = tasks["write"].xcoms["return_value"]
    assert result["row_count"] == 480
    assert (tmp_path / "orders.csv").stat().st_size == result["bytes"]
    assert later.output_path == "{{ none }}"
    assert tasks["later"].xcoms["return_value"]["rows"] == [[1], [2], [3]]
    assert tasks["decorated"].xcoms["return_value"]["row_count"] == 3
    assert "no such column: nonsense" in str(tasks["refused"].error)
    assert {name: facts[name] for name in ("row_count", "path", "format", "bytes", "columns")} == {
        name: result[name] for name in ("row_count", "path", "format", "bytes", "columns")
    }
    assert (len(facts["sha256"]), facts["sql"]) == (64, "SELECT id, amount FROM orders")
