"""What Airflow's pages show of a task and of a DAG: fields, description and form."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform.sandbox.demo import dag_runs

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


@pytest.mark.parametrize("next_method", [None, "execute_complete"])
def test_try_that_resumes_does_not_store_its_fields_over_those_that_show_the_prompt(
    next_method: str | None,
) -> None:
    @task.platform_chat(max_rows="{{ 3 }}")
    def ask() -> str:
        raise AssertionError("the function was called to render the fields")

    with DAG("resumed", schedule=None):
        operator = ask().operator
    server_context = SimpleNamespace(next_method=next_method)
    ti = SimpleNamespace(_ti_context_from_server=server_context)
    operator.render_template_fields({"ti": ti})
    assert operator.max_rows == "3"
    assert ("prompt" in operator.template_fields) is (next_method is None)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example_dag_describes_itself_and_its_parameters(airflow_db: None, file: Path) -> None:
    dag = dag_runs.load_dag(file, file.stem)
    assert dag.doc_md
    for name in dag.params:
        param = dag.params.get_param(name)
        assert param.schema.get("title"), name
        assert param.description, name
