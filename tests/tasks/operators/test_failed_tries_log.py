"""The log of a failed try: its link and the SQL that failed, on the worker and after a deferral, in
an operator and in a task of the author's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import ChatToolError, DataQueryError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.hooks.sql import PlatformSqlHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from tests.support.remote_tasks import deferral_while_stopped
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.captured_log import Capture

SQL = "SELECT missing FROM orders"


def run_to_its_failure(control: SandboxControl, operator: Any, *, deferrable: bool) -> None:
    """Run the task on the worker, or as worker, triggerer and worker do."""
    context = TaskTries().context()
    if not deferrable:
        operator.execute(context)
        return
    deferred = deferral_while_stopped(control, operator.execute, context)

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


def failed_sql(capture: Capture) -> list[str]:
    """The lines that show the SQL of a failed query."""
    return [line for line in capture.lines() if "The query that failed: " in line]


def test_failed_rerun_of_an_agents_query_logs_its_sql(
    platform_sandbox: Sandbox, capture: Capture, tmp_path: Path
) -> None:
    platform_sandbox.control.fault("status", api="data", status=400, message="no such column")
    sql = "SELECT id FROM payments"
    operator = PlatformChatOperator(
        task_id="ask",
        prompt=f"sql: {sql}",
        poll_interval=0.05,
        deferrable=False,
        output_path=str(tmp_path),
        output_format="csv",
        all_rows=True,
        all_rows_as="connection",
    )
    with pytest.raises(AirflowFailException, match="no such column"):
        run_to_its_failure(platform_sandbox.control, operator, deferrable=False)
    (line,) = failed_sql(capture)
    assert "warning" in line
    assert sql in line


def by_rows(hook: PlatformSqlHook) -> None:
    with hook.run_sql(SQL) as rows:
        next(rows)


def by_pages(hook: PlatformSqlHook) -> None:
    with hook.run_sql(SQL, page_by=["missing"]) as rows:
        next(rows)


def by_records(hook: PlatformSqlHook) -> None:
    hook.get_records(SQL)


@pytest.mark.parametrize("call", [by_rows, by_pages, by_records])
def test_failed_query_of_a_hook_logs_its_sql_once(
    platform_sandbox: Sandbox, capture: Capture, call: Callable[[PlatformSqlHook], None]
) -> None:
    with PlatformSqlHook() as hook, pytest.raises(DataQueryError, match="missing"):
        call(hook)
    (line,) = failed_sql(capture)
    assert "warning" in line
    assert SQL in line


def test_logged_sql_of_a_failed_query_has_no_secret(
    platform_sandbox: Sandbox, capture: Capture
) -> None:
    with PlatformHook() as hook:
        token = hook.config.management_token
        assert token is not None
        sql = f"SELECT missing FROM orders WHERE note = '{token.get_secret_value()}'"
        with pytest.raises(DataQueryError), hook.run_sql(sql) as rows:
            next(rows)
    (line,) = failed_sql(capture)
    assert "SELECT missing" in line
    assert token.get_secret_value() not in line
