"""The tokens of a question in a real Airflow, whether its task succeeds, retries or fails."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.resources.chat import call as program
from airflow_provider_platform.resources.chat.result import total_usage
from tests.support.releases import needs_store
from tests.support.remote_tasks import PROMPT, stopped_until_followed

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


def asked(sandbox: Sandbox, run_dag: RunDag, name: str, **arguments: Any) -> FinishedTask:
    """The task that asked in a DAG run. Its first run does not end before the trigger follows it:
    only connected clients get the usage."""
    with DAG(dag_id=f"tokens_{name}") as dag:
        PlatformChatOperator(
            task_id="ask",
            prompt=PROMPT,
            poll_interval=0.05,
            retry_delay=timedelta(0),
            **arguments,
        )
    with stopped_until_followed(sandbox.control) if arguments.get("deferrable") else nullcontext():
        (task,) = run_dag(dag).tasks
    return task


@needs_store
@pytest.mark.parametrize("deferrable", [False, True])
def test_xcom_has_the_tokens_of_all_tries(
    platform_sandbox: Sandbox, run_dag: RunDag, *, deferrable: bool
) -> None:
    arguments = {"deferrable": deferrable, "retries": 1}
    alone = asked(platform_sandbox, run_dag, f"alone_{deferrable}", **arguments).xcoms
    assert alone["total_usage"] == total_usage([alone["usage"]])
    platform_sandbox.control.fault("no_final")
    task = asked(platform_sandbox, run_dag, f"retried_{deferrable}", **arguments)
    assert task.state == "success", task.error
    of_answer = task.xcoms["return_value"]["usage"]
    assert task.xcoms["usage"] == of_answer
    used = task.xcoms["total_usage"]["totalTokens"]
    assert used > (of_answer or {"totalTokens": 0})["totalTokens"]


@pytest.mark.parametrize("deferrable", [False, True])
def test_usage_that_comes_after_the_answer_is_waited_for(
    platform_sandbox: Sandbox, run_dag: RunDag, *, deferrable: bool
) -> None:
    platform_sandbox.control.set(usage_seconds=0.3)
    task = asked(platform_sandbox, run_dag, f"late_{deferrable}", deferrable=deferrable)
    assert task.xcoms["total_usage"]["totalTokens"] > 0


def test_usage_that_is_too_late_is_reported_as_not_counted(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(program, "USAGE_WAIT", 0.1)
    platform_sandbox.control.set(usage_seconds=2.0)
    task = asked(platform_sandbox, run_dag, "too_late")
    assert task.state == "success"
    assert "total_usage" not in task.xcoms
    assert "The tokens of this run are not counted" in capfd.readouterr().out + caplog.text


def test_deferrable_task_reports_the_error_of_a_run_that_fails_at_once(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an open stream gets the error, so the worker does not leave the stream at once."""
    monkeypatch.setattr(program, "EARLY_END", 60)
    platform_sandbox.control.set(token_quota=0, pace=0.02)
    with DAG(dag_id="tokens_at_once") as dag:
        PlatformChatOperator(
            task_id="ask", prompt=PROMPT, deferrable=True, retries=3, retry_delay=timedelta(0)
        )
    (task,) = run_dag(dag).tasks
    assert "no tokens are left" in str(task.error)
    assert len(platform_sandbox.control.state().runs) == 1
