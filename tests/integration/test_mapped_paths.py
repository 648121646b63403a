"""Tasks of one run that write to one path, in Airflow: indexes of a mapped task, and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task, task_group

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun, FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

QUERIES = ["SELECT 1 AS one", "SELECT 2 AS two"]


def one_of_each(run: FinishedRun) -> tuple[FinishedTask, FinishedTask]:
    """The task that succeeded and the task that failed; `DAG.test` runs indexes in any order."""
    written, refused = sorted(run.tasks, key=lambda one: one.state, reverse=True)
    assert (written.state, refused.state) == ("success", "failed")
    return written, refused


def sent_queries(sandbox: Sandbox) -> int:
    return sum("cubesql" in request.path for request in sandbox.control.state().requests)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("deferrable", [False, True], ids=["on the worker", "deferred"])
def test_second_index_with_the_same_path_is_refused_before_its_query_runs(
    deferrable: bool, run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="same_path") as dag:
        PlatformQueryOperator.partial(
            task_id="query",
            output_path=f"{tmp_path}/{{{{ dag.dag_id }}}}.csv",
            deferrable=deferrable,
            retries=0,
        ).expand(sql=QUERIES)
    run = run_dag(dag)
    written, refused = one_of_each(run)
    error = str(refused.error)
    indexes = f"map index {refused.map_index} and map index {written.map_index} of this task"
    assert f"{indexes} have the same output_path" in error
    assert "same_path.csv" in error
    assert "{{ ti.map_index }}" in error
    names = ["one\n1\n", "two\n2\n"]
    assert (tmp_path / "same_path.csv").read_text() == names[written.map_index]
    # Deferred, the trigger asks for the query first, and then the worker.
    assert sent_queries(platform_sandbox) == (2 if deferrable else 1)


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
    assert (tmp_path / "France.csv").read_text() == "country\nFrance\n"


@pytest.mark.exhaustive
def test_equal_values_and_equal_list_items_are_refused(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="equal_values", default_args={"retries": 0}) as dag:

        @task.platform_sql(  # type: ignore[attr-defined]
            output_path=f"{tmp_path}/{{{{ task.op_kwargs.country }}}}.csv", deferrable=False
        )
        def by_value(country: str) -> str:
            return f"SELECT '{country}' AS country"

        by_value.expand(country=["Germany", "France", "Germany"])
        PlatformQueryOperator.partial(
            task_id="by_list", sql="SELECT 3 AS three", deferrable=False
        ).expand(output_path=[f"{tmp_path}/a.csv", f"{tmp_path}/b/../a.csv"])
    states = run_dag(dag).states
    assert states["by_value[1]"] == "success"
    for pair in (("by_value[0]", "by_value[2]"), ("by_list[0]", "by_list[1]")):
        assert sorted(states[name] for name in pair) == ["failed", "success"]


@pytest.mark.exhaustive
def test_task_of_a_mapped_group_is_refused_like_a_mapped_task(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="mapped_group", default_args={"retries": 0}) as dag:

        @task_group
        def store(sql: str) -> None:
            PlatformQueryOperator(
                task_id="same", sql=sql, output_path=str(tmp_path / "same.csv"), deferrable=False
            )
            PlatformQueryOperator(
                task_id="own",
                sql=sql,
                output_path=f"{tmp_path}/own-{{{{ ti.map_index }}}}.csv",
                deferrable=False,
            )

        store.expand(sql=QUERIES)
    states = run_dag(dag).states
    assert sorted([states["store.same[0]"], states["store.same[1]"]]) == ["failed", "success"]
    assert states["store.own[0]"] == states["store.own[1]"] == "success"


@pytest.mark.exhaustive
def test_retry_of_an_index_overwrites_its_own_file(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    tries: list[int] = []

    def fail_once(context: Any, result: Any) -> None:
        tries.append(context["ti"].map_index)
        if tries.count(1) == 1 and tries[-1] == 1:
            raise RuntimeError("once")

    with DAG(dag_id="retried_index") as dag:
        PlatformQueryOperator.partial(
            task_id="query",
            output_path=f"{tmp_path}/{{{{ ti.map_index }}}}.csv",
            deferrable=False,
            retries=1,
            retry_delay=0,
            post_execute=fail_once,
        ).expand(sql=QUERIES)
    run = run_dag(dag)
    assert sorted(tries) == [0, 1, 1]
    assert run.states == {"query[0]": "success", "query[1]": "success"}


def test_exports_of_a_mapped_task_need_paths_of_their_own(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="mapped_exports", default_args={"retries": 0}) as dag:
        PlatformExportDashboardOperator.partial(
            task_id="export",
            dashboard_id=501,
            output_path=str(tmp_path / "dashboard"),
            deferrable=False,
            poll_interval=0.05,
        ).expand(format=["pdf", "png"])
    written, refused = one_of_each(run_dag(dag))
    assert f"map index {written.map_index} of this task have the same" in str(refused.error)
    beginning = [b"%PDF", b"\x89PNG"][written.map_index]
    assert (tmp_path / "dashboard").read_bytes().startswith(beginning)


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


def test_task_whose_path_another_task_has_written_to_warns_and_writes(
    run_dag: RunDag,
    platform_sandbox: Sandbox,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "two_tasks.csv"
    with DAG(dag_id="two_tasks") as dag:
        first = PlatformQueryOperator(
            task_id="first", sql=QUERIES[0], output_path=str(path), deferrable=False
        )
        second = PlatformQueryOperator(
            task_id="second",
            sql=QUERIES[1],
            output_path=f"{tmp_path}/{{{{ dag.dag_id }}}}.csv",
            deferrable=False,
        )
        first >> second
    run = run_dag(dag)
    assert set(run.states.values()) == {"success"}
    assert path.read_text() == "two\n2\n"
    said = capfd.readouterr().out + caplog.text
    assert "Task 'first' of this run has the same output_path" in said
    assert "Task 'second' of this run" not in said


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
    assert sent_queries(platform_sandbox) == 0
