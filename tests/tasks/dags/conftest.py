"""Nights of golden questions, for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from tests.support.modes import is_deferred
from tests.support.nights import ORDERS, SUITE, TOTAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture
def night(
    run_dag: RunDag, platform_sandbox: Sandbox, request: pytest.FixtureRequest
) -> Callable[..., FinishedRun]:
    """`night(**arguments)`: one DAG run of the suite; runs of a test share their baseline. With the
    mark `in_both_modes("night")`, the suite waits on the worker and in the triggerer."""
    platform_sandbox.control.answer("total revenue", sql=TOTAL, times=None)
    platform_sandbox.control.answer("number of orders", sql=ORDERS, times=None)
    dag_id = "".join(c if c.isalnum() else "-" for c in request.node.name)

    deferrable = is_deferred(request)

    def run(**arguments: Any) -> FinishedRun:
        with DAG(dag_id=dag_id) as dag:
            PlatformEvaluationOperator(
                task_id="suite",
                **{
                    "questions": SUITE,
                    "deferrable": deferrable,
                    "poll_interval": 0.1,
                    "retries": 0,
                    **arguments,
                },
            )
        return run_dag(dag)

    return run
