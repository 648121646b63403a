"""What Airflow's pages show of a task and of a DAG: fields, description and form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform.sandbox.demo import dag_runs
from tests.support.remote_tasks import stopped_until_followed

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

EXAMPLES = sorted((Path(__file__).parents[3] / "example_dags").glob("*.py"))


def rendered(dag_id: str, task_id: str) -> dict[str, Any]:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields as Fields
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    with create_session() as session:
        task = session.query(TaskInstance).filter_by(dag_id=dag_id, task_id=task_id).one()
        fields = Fields.get_templated_fields(task, session=session)
        assert fields is not None
        return dict(fields)


@pytest.mark.parametrize("fails", [False, True])
def test_the_rendered_fields_of_the_decorator_show_the_prompt(
    platform_sandbox: Sandbox, run_dag: RunDag, fails: bool
) -> None:
    asked = "sql: SELECT missing FROM orders" if fails else "revenue by country"
    with DAG(f"decorated_{fails}", schedule=None) as dag:

        @task.platform_chat(max_rows=3)
        def ask() -> str:
            return asked + " {{ no_template }}"

        ask()
    assert (run_dag(dag).state == "success") is not fails
    fields = rendered(dag.dag_id, "ask")
    assert fields["prompt"] == asked + " {{ no_template }}"
    assert str(fields["max_rows"]) == "3"


@pytest.mark.exhaustive
def test_the_prompt_is_still_there_after_a_deferral(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    control = platform_sandbox.control
    with DAG("decorated_deferred", schedule=None) as dag:

        @task.platform_chat(deferrable=True, poll_interval=0.1)
        def one() -> str:
            return "revenue by country"

        @task.platform_chat(deferrable=True, poll_interval=0.1)
        def several(country: str) -> str:
            return f"orders per month for {country}"

        one()
        several.expand(country=["Spain"])
    with (
        stopped_until_followed(control, text="revenue by country"),
        stopped_until_followed(control, "mid_stream", text="orders per month"),
    ):
        run = run_dag(dag)
    assert run.state == "success", [task.error for task in run.tasks]
    assert rendered(dag.dag_id, "one")["prompt"] == "revenue by country"
    assert rendered(dag.dag_id, "several")["prompt"] == "orders per month for Spain"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example_dag_describes_itself_and_its_parameters(airflow_db: None, file: Path) -> None:
    dag = dag_runs.load_dag(file, file.stem)
    assert dag.doc_md
    for name in dag.params:
        param = dag.params.get_param(name)
        assert param.schema.get("title"), name
        assert param.description, name
