"""Mapped tasks that write files, in Airflow: each index has a path of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

QUERIES = ["SELECT 1 AS one", "SELECT 2 AS two"]


@pytest.mark.exhaustive
def test_paths_that_differ_by_index_value_or_list_are_all_written(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="own_paths") as dag:
        PlatformQueryOperator.partial(
            task_id="by_index",
            output_path=f"{tmp_path}/{{{{ ti.map_index }}}}.csv",
            deferrable=True,
        ).expand(sql=QUERIES)
        PlatformQueryOperator.partial(
            task_id="by_list", sql="SELECT 3 AS three", deferrable=False
        ).expand(output_path=[f"{tmp_path}/a.csv", f"{tmp_path}/b.csv"])

        @task.platform_sql(  # type: ignore[attr-defined]
            output_path=f"{tmp_path}/{{{{ task.op_kwargs.country }}}}.csv", deferrable=False
        )
        def by_value(country: str) -> str:
            return f"SELECT '{country}' AS country"

        by_value.expand(country=["Germany", "France"])
    run = run_dag(dag)
    assert set(run.states.values()) == {"success"}
    names = {"0", "1", "a", "b", "Germany", "France"}
    assert {path.stem for path in tmp_path.iterdir()} == names
    assert (tmp_path / "France.csv").read_text() == '"country"\n"France"\n'


def test_answers_of_a_mapped_task_have_folders_of_their_own(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="mapped_answers") as dag:
        PlatformChatOperator.partial(
            task_id="ask", output_path=str(tmp_path), output_format="csv", deferrable=False
        ).expand(prompt=["revenue by country", "revenue by category"])
    run = run_dag(dag)
    folders = {run.xcom("ask", "manifest", index) for index in (0, 1)}
    assert len(folders) == 2


def test_unknown_connection_of_a_storage_is_refused_in_airflow(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG(dag_id="unknown_connection", default_args={"retries": 2}) as dag:
        PlatformQueryOperator(
            task_id="query",
            sql=QUERIES[0],
            output_path="s3://typo@lake/rows.csv",
            deferrable=False,
        )
    [task] = run_dag(dag).tasks
    assert task.state == "failed"
    assert "Airflow has no connection 'typo'" in str(task.error)
    assert not any("cubesql" in one.path for one in platform_sandbox.control.state().requests)
