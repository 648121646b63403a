"""Running a DAG in the test's own Airflow: states, order, XComs, errors, mapped tasks, files."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.sandbox.demo import dag_runs

if TYPE_CHECKING:
    from airflow.sdk import DAG

START = datetime(2025, 1, 1, tzinfo=UTC)


def chain() -> DAG:
    from airflow.sdk import DAG, task

    with DAG("chain", start_date=START, schedule=None) as dag:

        @task
        def zero() -> dict[str, list[int]]:
            return {"numbers": [1, 2]}

        @task
        def a_sum(value: dict[str, list[int]]) -> int:
            return sum(value["numbers"])

        a_sum(zero())
    return dag


def test_a_run_ends_with_states_and_xcoms_in_the_order_of_the_tasks(run_dag):
    run = run_dag(chain())

    assert run.state == "success"
    assert list(run.states.items()) == [("zero", "success"), ("a_sum", "success")]
    assert run.xcom("zero") == {"numbers": [1, 2]}
    assert run.xcom("a_sum") == 3


def test_a_failing_task_fails_the_run_and_says_why(run_dag):
    from airflow.sdk import DAG, task

    with DAG("demo_failing", start_date=START, schedule=None) as dag:

        @task
        def breaks() -> None:
            raise ValueError("no such branch")

        @task
        def after() -> None: ...

        breaks() >> after()

    run = run_dag(dag)

    assert run.state == "failed"
    assert run.states == {"breaks": "failed", "after": "upstream_failed"}
    assert run.task("breaks").error == "ValueError: no such branch"
    assert run.task("after").error is None


def test_mapped_tasks_are_listed_by_index(run_dag):
    from airflow.sdk import DAG, task

    with DAG("demo_mapped", start_date=START, schedule=None) as dag:

        @task
        def halve(number: int) -> float:
            if number % 2:
                raise ValueError(f"{number} is odd")
            return number / 2

        halve.expand(number=[2, 3])

    run = run_dag(dag)

    assert run.states == {"halve[0]": "success", "halve[1]": "failed"}
    assert run.xcom("halve", map_index=0) == 1.0
    assert run.task("halve", map_index=1).error == "ValueError: 3 is odd"
    with pytest.raises(KeyError, match="halve"):
        run.task("halve")


def test_dag_run_gets_its_configuration(run_dag):
    from airflow.sdk import DAG, task

    with DAG("configured", start_date=START, schedule=None) as dag:

        @task
        def branch(**context) -> str:
            return context["dag_run"].conf["branch"]

        branch()

    assert run_dag(dag, conf={"branch": "dev"}).xcom("branch") == "dev"


def test_a_dag_file_is_run_by_the_name_of_its_dag(run_dag, tmp_path):
    file = tmp_path / "little.py"
    file.write_text(
        "from datetime import datetime\n"
        "from airflow.sdk import DAG, task\n"
        "with DAG('little', start_date=datetime(2025, 1, 1), schedule=None):\n"
        "    @task\n"
        "    def one(): return 1\n"
        "    one()\n"
    )

    assert run_dag(file).xcom("one") == 1


def test_a_dag_file_that_cannot_be_imported_is_named_with_its_error(airflow_db, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("from airflow.sdk import DAG\nraise RuntimeError('not today')\n")

    with pytest.raises(ValueError, match=r"(?s)broken.py gives no DAG 'broken': .*not today"):
        dag_runs.load_dag(file, "broken")


def test_every_test_process_has_an_airflow_of_its_own(airflow_home):
    from airflow.configuration import AIRFLOW_HOME, conf

    assert Path(AIRFLOW_HOME) == airflow_home
    assert str(airflow_home) in conf.get("database", "sql_alchemy_conn")
    assert not conf.getboolean("core", "load_examples")
    assert Path(os.environ["AIRFLOW_HOME"]) == airflow_home


def test_environment_of_an_own_airflow_inherits_no_airflow_settings():
    callers = {
        "AIRFLOW_HOME": "/srv/airflow",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://production/airflow",
        "AIRFLOW_CONN_PLATFORM_DEFAULT": "platform://production",
        "_AIRFLOW_PARSING_CONTEXT_DAG_ID": "other",
        "PATH": "/usr/bin",
    }

    variables = dag_runs.isolated(callers, Path("/home"), Path("/dags"))

    assert "production" not in str(variables)
    assert variables["AIRFLOW_HOME"] == "/home"
    assert variables["AIRFLOW__CORE__DAGS_FOLDER"] == "/dags"
    assert variables["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False"
    assert variables["PATH"] == "/usr/bin"


def test_loopback_addresses_bypass_the_callers_proxies():
    callers = {"HTTP_PROXY": "http://proxy:3128", "no_proxy": "intranet"}

    variables = dag_runs.isolated(callers, Path("/home"), Path("/dags"))

    assert variables["HTTP_PROXY"] == "http://proxy:3128"
    assert variables["no_proxy"] == variables["NO_PROXY"] == "intranet,127.0.0.1,localhost,::1"
