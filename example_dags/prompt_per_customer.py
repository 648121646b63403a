"""One prompt for each customer: as many tasks as there are customers, a few at a time.

The pool holds the questions that the agent works on at once. It must count deferred tasks, or it
limits nothing: `airflow pools set platform_chats 4 "Questions at once" --include-deferred`. Airflow
never starts a task of a pool that does not exist: the DAG's timeout ends such a run.
One customer whose question fails is tried again alone; the answers of the others are not lost.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

with DAG(
    dag_id="prompt_per_customer",
    description="The agent is asked about each customer, four at a time",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    dagrun_timeout=timedelta(hours=3),
    tags=["analytics platform", "recipe"],
    params={
        "customers": Param(
            ["Dubois 01", "Huber 02", "García 03"],
            type="array",
            minItems=1,
            title="Customers",
            description="Whom the agent is asked about, one name on each line.",
        ),
    },
    default_args={"retries": 2},
) as dag:

    @task
    def customers(params: dict[str, Any]) -> list[str]:
        """Whatever tells your customers: a table, a file, another task."""
        return list(params["customers"])

    @task.platform_chat(
        pool="platform_chats",
        deferrable=True,
        max_rows=20,
        map_index_template="{{ task.op_kwargs['customer'] }}",  # the tasks' names in the UI
    )
    def ask(customer: str) -> str:
        """The prompt for one customer."""
        return f"orders per month for {customer}"

    # One XCom: a dict would become one for each key, which is a customer's name.
    @task(multiple_outputs=False)
    def collect(names: list[str], results: list[dict[str, Any]]) -> dict[str, str]:
        """Answers come in the order of the customers."""
        return {name: result["answer"] for name, result in zip(names, results, strict=True)}

    names = customers()
    collect(names, ask.expand(customer=names))
