"""The data API of the sandbox: limits, types, a slow query, errors inside a started answer."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform


@pytest.fixture
def ask(platform: Platform) -> Any:
    """Send SQL as a plain HTTP program would; the lines of the answer."""
    token = platform.call("POST", "deployments/1/token", json={"expiresIn": 600}).json()

    def send(sql: str, **body: Any) -> list[dict[str, Any]]:
        answer = platform.http.post(
            f"{platform.sandbox.url}/deployments/1/cubejs-api/v1/cubesql",
            json={"query": sql, **body},
            headers={"Authorization": token["cubeApiToken"]},
        )
        if answer.status_code != 200:
            return [{"status": answer.status_code, **answer.json()}]
        return [json.loads(line) for line in answer.text.splitlines()]

    return send


def rows(lines: list[dict[str, Any]]) -> int:
    return sum(len(line.get("data", [])) for line in lines)


@pytest.mark.parametrize(
    ("sql", "streaming", "count"),
    [
        ("SELECT id FROM events", False, 10_000),
        ("SELECT id FROM events LIMIT 10001", False, 10_001),
        ("SELECT id FROM events LIMIT 60000", False, 50_000),
        ("SELECT id FROM events LIMIT 60000", True, 60_000),
        ("SELECT id FROM events", True, 10_000),
    ],
)
def test_limits(sql: str, streaming: bool, count: int, ask: Any, platform: Platform) -> None:
    platform.control.set(data_streaming=streaming, data_chunk_rows=5000)
    lines = ask(sql)
    assert rows(lines) == count
    assert ("lastRefreshTime" in lines[0]) == (not streaming)


def test_types_and_values(ask: Any) -> None:
    head, data = ask("SELECT paid_on, paid_at, fee, settled, id, note FROM payments LIMIT 1")
    kinds = [column["column_type"] for column in head["schema"]]
    assert kinds == ["Date", "Timestamp", "Decimal", "Boolean", "Int64", "String"]
    [row] = data["data"]
    assert row[:5] == ["2025-01-26", "2025-01-26T01:30:00.000", "11.21", "true", "1"]


def test_no_rows(ask: Any) -> None:
    assert ask("SELECT id FROM orders WHERE 1 = 0")[1:] == [{"data": []}]


def test_a_slow_query_answers_continue_wait_or_holds_the_connection(
    ask: Any, platform: Platform
) -> None:
    platform.control.set(query_seconds=0.6, query_wait=0.1)
    assert ask("SELECT 1", throwContinueWait=True) == [{"error": "Continue wait"}]
    while ask("SELECT 1", throwContinueWait=True) == [{"error": "Continue wait"}]:
        continue
    began = time.monotonic()
    assert rows(ask("SELECT 2")) == 1
    assert time.monotonic() - began >= 0.6


def test_an_error_inside_the_answer(ask: Any, platform: Platform) -> None:
    platform.control.set(data_chunk_rows=10)
    platform.control.fault("error_line", api="data", after=3, message="out of memory")
    lines = ask("SELECT id FROM orders")
    assert (rows(lines), lines[-1]) == (20, {"error": "out of memory"})
    platform.control.fault("error_line", api="data", after=1000)
    lines = ask("SELECT id FROM orders")
    assert rows(lines) == 480
    assert "error" in lines[-1]


def test_bodies_are_checked(ask: Any) -> None:
    for body in ({"limit": 5}, {"cache": "always"}, {"throwContinueWait": "yes"}):
        [answer] = ask("SELECT 1", **body)
        assert answer["status"] == 400
