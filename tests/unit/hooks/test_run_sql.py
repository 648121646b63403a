"""SQL over the data API, over HTTP: every row, in pieces, through failures."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.errors import (
    DataQueryError,
    PlatformDeadlineError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SQL = "SELECT id, status FROM orders ORDER BY id"


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformHook:
    platform_sandbox.control.set(data_chunk_rows=100)
    return PlatformHook()


def queries(sandbox: Sandbox) -> int:
    return sum("cubesql" in request.path for request in sandbox.control.state().requests)


def test_rows_beyond_the_chat_limit(hook: PlatformHook) -> None:
    rows = hook.run_sql(SQL)
    assert [column["name"] for column in rows.columns] == ["id", "status"]
    found = list(rows)
    assert len(found) > 100
    assert [int(row[0]) for row in found] == sorted(int(row[0]) for row in found)


def test_nothing_is_sent_before_a_row_is_wanted(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    rows = hook.run_sql(SQL)
    assert platform_sandbox.control.state().requests == []
    assert next(rows)[0] == "1"
    rows.close()
    assert queries(platform_sandbox) == 1


def test_on_an_event_loop(hook: PlatformHook) -> None:
    async def read() -> tuple[int, int]:
        rows = hook.arun_sql(SQL)
        columns = await rows.columns()
        return len(columns), len([row async for row in rows])

    assert asyncio.run(read()) == (2, len(list(hook.run_sql(SQL))))


def test_the_hook_can_be_used_meanwhile(hook: PlatformHook) -> None:
    rows = hook.run_sql(SQL)
    next(rows)
    assert hook.get_app_config() is not None
    assert len(list(rows)) > 100


def test_a_query_that_still_runs_is_asked_for_again(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault("continue_wait", api="data", count=2)
    assert next(hook.run_sql(SQL))
    assert queries(platform_sandbox) == 3


def test_a_deadline_is_kept(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault("continue_wait", api="data", count=None)
    with pytest.raises(PlatformDeadlineError):
        next(hook.run_sql(SQL, timeout=1.0))


@pytest.mark.parametrize("kind", ["cut", "drop", "lost_response"])
def test_a_failure_before_the_first_line_is_repeated(
    kind: str, hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault(kind, api="data")
    assert len(list(hook.run_sql(SQL))) > 100


def test_an_error_of_a_gateway_is_repeated(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault("status", api="data", status=502, body="html")
    assert next(hook.run_sql(SQL))


def test_a_result_that_breaks_off_raises_after_its_rows(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault("cut", api="data", after=2)
    rows = hook.run_sql(SQL)
    assert [next(rows) for _ in range(100)]
    with pytest.raises(PlatformTransportError):
        next(rows)
    assert queries(platform_sandbox) == 1


def test_the_databases_words_are_passed_on(hook: PlatformHook) -> None:
    with pytest.raises(DataQueryError, match="no such column: nonsense"):
        next(hook.run_sql("SELECT nonsense FROM orders"))


def test_a_branch_that_is_not_there(hook: PlatformHook) -> None:
    with pytest.raises(DataQueryError, match="Bad branch"):
        next(hook.run_sql(SQL, branch_name="nowhere"))


def test_a_branch(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.add_branch("feature/a")
    assert next(hook.run_sql(SQL, branch_name="feature/a"))


def test_a_timeout_may_be_a_timedelta(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault("continue_wait", api="data", count=None)
    with pytest.raises(PlatformDeadlineError):
        next(hook.run_sql(SQL, timeout=timedelta(milliseconds=100)))
    platform_sandbox.control.clear_faults()
    soon = {"timeout": timedelta(seconds=60), "poll_interval": timedelta(milliseconds=50)}
    assert hook.chat("revenue by country", **soon).answer
