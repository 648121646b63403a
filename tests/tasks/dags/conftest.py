"""Nights of golden questions, for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from tests.support.nights import ORDERS, SUITE, TOTAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture(params=[False, True], ids=["worker", "deferred"])
def night(
    run_dag: RunDag, platform_sandbox: Sandbox, request: pytest.FixtureRequest
) -> Callable[..., FinishedRun]:
    """`night(**arguments)`: one DAG run of the suite; runs of a test share their baseline."""
    platform_sandbox.control.answer("total revenue", sql=TOTAL, times=None)
    platform_sandbox.control.answer("number of orders", sql=ORDERS, times=None)
    dag_id = "".join(c if c.isalnum() else "-" for c in request.node.name)

    def run(**arguments: Any) -> FinishedRun:
        with DAG(dag_id=dag_id) as dag:
            PlatformEvaluationOperator(
                task_id="suite",
                **{
                    "questions": SUITE,
                    "deferrable": request.param,
                    "poll_interval": 0.1,
                    "retries": 0,
                    **arguments,
                },
            )
        return run_dag(dag)

    return run
