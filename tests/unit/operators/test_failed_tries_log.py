"""The log of a failed try: its link and the SQL that failed, on the worker and after a deferral."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import ChatToolError
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from tests.unit.operators.remote_tasks import deferral_while_held
from tests.unit.operators.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.unit.operators.captured_log import Capture

SQL = "SELECT missing FROM orders"


def run_to_its_failure(control: SandboxControl, operator: Any, *, deferrable: bool) -> None:
    """Run the task on the worker, or as worker, triggerer and worker do."""
    context = TaskTries().context()
    if not deferrable:
        operator.execute(context)
        return
    deferred = deferral_while_held(control, operator.execute, context)

    async def event() -> Any:
        return (await anext(deferred.trigger.run())).payload

    arrived = asyncio.run(event())
    operator.resume_execution(
        "execute_complete", {**(deferred.kwargs or {}), "event": arrived}, context
    )


@pytest.mark.parametrize("deferrable", [False, True])
def test_failed_chat_logs_its_thread_and_the_failed_sql(
    platform_sandbox: Sandbox, capture: Capture, deferrable: bool
) -> None:
    operator = PlatformChatOperator(
        task_id="ask", prompt=f"sql: {SQL}", poll_interval=0.05, deferrable=deferrable
    )
    with pytest.raises(ChatToolError) as caught:
        run_to_its_failure(platform_sandbox.control, operator, deferrable=deferrable)
    assert str(caught.value).startswith("Every query of the run failed: ")
    lines = capture.lines()
    failed = next(line for line in lines if "failed after" in line)
    assert "warning" in failed
    assert SQL in failed
    chat_id = str(caught.value).rpartition("(chat ")[2].partition(",")[0]
    assert any("Thread: " in line and chat_id in line for line in lines)
    again = [line for line in lines if "The query that failed: " + SQL in line]
    assert len(again) == (1 if deferrable else 0)


@pytest.mark.parametrize("deferrable", [False, True])
def test_failed_query_logs_its_sql(
    platform_sandbox: Sandbox, capture: Capture, deferrable: bool
) -> None:
    operator = PlatformQueryOperator(task_id="query", sql=SQL, deferrable=deferrable)
    with pytest.raises(AirflowFailException, match="missing"):
        run_to_its_failure(platform_sandbox.control, operator, deferrable=deferrable)
    (line,) = [line for line in capture.lines() if "The query that failed" in line]
    assert "warning" in line
    assert SQL in line
