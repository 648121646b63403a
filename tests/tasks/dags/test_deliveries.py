"""Deliveries against the sandbox: both ways to wait give the same XComs, errors
and states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.resources.deliveries import run_report_delivery

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

MODES = {"on the worker": False, "deferred": True}


@pytest.fixture(params=MODES.values(), ids=MODES.keys())
def run_now(request: pytest.FixtureRequest, run_dag: RunDag) -> Any:
    """Run a delivery in a DAG of its own; returns the finished task."""

    def run(**arguments: Any) -> FinishedTask:
        ids = {"delivery_id": "{{ params.id }}"}
        with DAG(dag_id="run", params={"id": 501, "nothing": None}) as dag:
            PlatformRunDeliveryOperator(
                task_id="run",
                deferrable=request.param,
                retries=0,
                **{**ids, "poll_interval": 0.1, **arguments},
            )
        return run_dag(dag).task("run")

    return run


def test_delivery_result_is_the_same_in_both_modes(run_now: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(delivery_seconds=0.4)
    task = run_now(if_running="{{ params.nothing }}")
    assert task.error is None
    result = task.xcoms["return_value"]
    assert {key: task.xcoms[key] for key in result} == result
    assert result["started"] is True
    assert result["status"] == "succeeded"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("settings", "arguments", "error", "words"),
    [
        ({"delivery_outcome": "failed"}, {}, "ReportDeliveryFailedError", "overwrite"),
        ({"status": 404}, {}, "AirflowFailException", "not activated"),
        ({"tenant": "described"}, {}, "AirflowFailException", "not activated"),
        ({}, {"delivery_id": 999}, "AirflowFailException", "No report delivery has this id"),
        ({"delivery_seconds": 600}, {"timeout": 0.5}, "PlatformDeadlineError", "the run continues"),
    ],
)
def test_failures_are_the_same_in_both_modes(
    run_now: Any,
    platform_sandbox: Sandbox,
    settings: dict[str, Any],
    arguments: dict[str, Any],
    error: str,
    words: str,
) -> None:
    control = platform_sandbox.control
    if "status" in settings:
        words_of_404 = {"message": "Not Found", "count": None}
        control.fault("status", path="/report-deliveries", **settings, **words_of_404)
    else:
        control.set(**settings)
    task = run_now(**arguments)
    assert task.error.startswith(error)
    assert words in task.error


@pytest.mark.parametrize(("if_running", "state"), [("fail", "failed"), ("skip", "skipped")])
def test_running_delivery_fails_or_skips_the_task_in_both_modes(
    run_now: Any, platform_sandbox: Sandbox, if_running: str, state: str
) -> None:
    platform_sandbox.control.set(delivery_seconds=600)
    PlatformHook().run(run_report_delivery(id=501))
    task = run_now(if_running=if_running)
    assert task.state == state


def test_running_delivery_is_followed_in_both_modes(
    run_now: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(delivery_seconds=2)
    started = PlatformHook().run(run_report_delivery(id=501))
    task = run_now()
    assert task.error is None
    assert (task.xcoms["run_id"], task.xcoms["started"]) == (started.key, False)


def test_schedule_is_resumed_after_a_failed_delivery(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(delivery_outcome="failed")
    with DAG(dag_id="paused") as dag:
        pause = PlatformApiOperator(
            task_id="pause", operation="pauseReportDelivery", ids={"id": 502}
        )
        deliver = PlatformRunDeliveryOperator(task_id="deliver", delivery_id=502, retries=0)
        resume = PlatformApiOperator(
            task_id="resume", operation="resumeReportDelivery", ids={"id": 502}
        )
        pause >> deliver >> resume.as_teardown(setups=[pause])
    run = run_dag(dag)
    assert run.states == {"pause": "success", "deliver": "failed", "resume": "success"}
    assert run.xcom("resume")["status"] == "active"
