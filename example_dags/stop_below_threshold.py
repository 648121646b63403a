"""Stop a run if the number in the agent's answer is below a threshold.

The number comes from the rows of the agent's query, never from the words of the answer. If the
result is not exactly one number, the task fails, and its error says what the result was. So the run
never continues by accident. Ask for one number, such as "total revenue".

`below` says what happens below the threshold. `skip` skips all tasks after `enough`, and the run
succeeds. `fail` fails the run. Airflow alerts you only if you have set up alerts, for example an
`on_failure_callback`.
"""

from __future__ import annotations

import logging
from decimal import Decimal, InvalidOperation
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.operators.chat import PlatformChatOperator

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowFailException

log = logging.getLogger("airflow.task")


def only_number(queries: list[dict[str, Any]]) -> Decimal:
    """The number of an answer that has one query with one row and one column.

    A query that failed does not count. Raises `AirflowFailException` for any other answer. A retry
    would not help.
    """
    answered = [query for query in queries if query["error"] is None]
    try:
        [query] = answered
        [[value]] = query["rows"]
        number = Decimal(str(value))
        if number.is_finite() and not query["truncated"]:
            return number
    except (ValueError, InvalidOperation):
        pass
    values = [str(value) for query in answered for row in query["rows"] for value in row]
    came = f"queries: {len(answered)}, values: {len(values)} ({', '.join(values[:5]) or 'nothing'})"
    raise AirflowFailException(f"The answer is not one number. It has {came}.")


with DAG(
    dag_id="stop_below_threshold",
    description="Goes on only if the number of the agent's answer is high enough",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "question": Param(
            "total revenue",
            type="string",
            minLength=1,
            title="Question",
            description="A question whose answer is one number.",
            examples=["total revenue", "total revenue in March", "total orders for Germany"],
        ),
        "least": Param(
            100_000,
            type="number",
            title="Threshold",
            description="The run goes on if the number is at least this.",
        ),
        "below": Param(
            "skip",
            enum=["skip", "fail"],
            title="Below the threshold",
            description="skip: skip all tasks after `enough`. fail: fail the run.",
        ),
    },
    default_args={"retries": 2},
) as dag:
    ask = PlatformChatOperator(
        task_id="ask_agent", prompt="{{ params.question }}", max_rows=5, deferrable=True
    )

    @task.short_circuit
    def enough(queries: list[dict[str, Any]], params: dict[str, Any]) -> bool:
        """Return whether the run continues. False skips all tasks after this one."""
        number, least = only_number(queries), Decimal(str(params["least"]))
        if number >= least:
            log.info("%s is at least %s: the run goes on.", number, least)
            return True
        if params["below"] == "fail":
            raise AirflowFailException(f"{number} is below the threshold {least}.")
        log.warning("%s is below the threshold %s: the next tasks are skipped.", number, least)
        return False

    @task
    def go_on(answer: str) -> str:
        """Replace this task with your own. It runs only at or above the threshold."""
        return answer

    enough(ask.output["queries"]) >> go_on(ask.output["answer"])
