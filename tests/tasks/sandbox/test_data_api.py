"""The data API of the sandbox: limits, types, a slow query, errors inside a started answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform


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
def test_setting_limits_the_rows_of_a_query(
    sql: str, streaming: bool, count: int, ask: Any, platform: Platform
) -> None:
    platform.control.set(data_chunk_rows=5000)
    if streaming:
        platform.control.set(data_max_rows=None)
    lines = ask(sql)
    assert rows(lines) == count
    assert ("lastRefreshTime" in lines[0]) == (not streaming)


@pytest.mark.parametrize(
    ("limit", "rows_given"), [("", 20), ("LIMIT 10", 10), ("LIMIT 40", 30), ("LIMIT 30", 30)]
)
def test_row_limits_are_settings_of_the_deployment(
    limit: str, rows_given: int, ask: Any, platform: Platform
) -> None:
    platform.control.set(data_default_rows=20, data_max_rows=30)
    assert rows(ask(f"SELECT id FROM events {limit}")) == rows_given


TYPED = "SELECT paid_on, paid_at, fee, settled, id, note FROM payments LIMIT 1"


def test_types_are_declared_as_the_open_core_does(ask: Any) -> None:
    head, data = ask(TYPED)
    kinds = [column["column_type"] for column in head["schema"]]
    assert kinds == [{"Date": False}, "String", "Int32", "Boolean", "Int64", "String"]
    assert data["data"][0][:5] == ["2025-01-26", "2025-01-26T01:30:00.000", "11.21", True, "1"]
    head, data = ask("SELECT quantity, 747.0 AS price, 0.0000001 AS tiny FROM orders LIMIT 1")
    assert [c["column_type"] for c in head["schema"]] == ["Int32", "Double", "Double"]
    assert data["data"][0][1:] == ["747", "0.0000001"]


def test_setting_names_column_types_by_words(ask: Any, platform: Platform) -> None:
    platform.control.set(column_types="words")
    head, data = ask(TYPED)
    kinds = [column["column_type"] for column in head["schema"]]
    assert kinds == ["Date", "Timestamp", "Decimal", "Boolean", "Int64", "String"]
    assert data["data"][0][:5] == ["2025-01-26", "2025-01-26T01:30:00.000", "11.21", "true", "1"]


def test_a_deployment_that_does_not_stream_sends_all_rows_in_one_line(
    ask: Any, platform: Platform
) -> None:
    sql = "SELECT id FROM events LIMIT 20000"
    assert [len(line["data"]) for line in ask(sql)[1:]] == [20_000]
    platform.control.set(data_max_rows=None)
    assert [len(line["data"]) for line in ask(sql)[1:]] == [500] * 40


def test_error_can_come_inside_a_response(ask: Any, platform: Platform) -> None:
    platform.control.set(data_chunk_rows=10)
    platform.control.fault("error_line", api="data", after=3, message="out of memory")
    lines = ask("SELECT id FROM orders")
    assert (rows(lines), lines[-1]) == (20, {"error": "out of memory"})
    platform.control.fault("error_line", api="data", after=1000)
    lines = ask("SELECT id FROM orders")
    assert rows(lines) == 480
    assert "error" in lines[-1]


def test_only_queries_are_allowed(ask: Any) -> None:
    for statement in ("DELETE FROM orders", "PRAGMA user_version = 1", "BEGIN"):
        assert "error" in ask(statement)[0]
    assert ask("SELECT COUNT(*) FROM orders")[1]["data"] == [["480"]]


class TestTokens:
    """A token has its scopes, and stands alone in the header."""

    def ask(self, platform: Platform, header: str) -> tuple[int, str]:
        """Status and body of a query."""
        url = f"{platform.sandbox.url}/deployments/1/cubejs-api/v1/cubesql"
        headers = {"Authorization": header}
        answer = platform.http.post(url, json={"query": "SELECT 1"}, headers=headers)
        return answer.status_code, answer.text

    def test_data_token_is_sent_alone_and_has_the_scopes_of_the_deployment(
        self, platform: Platform
    ) -> None:
        token = platform.call("POST", "deployments/1/token").json()["cubeApiToken"]
        assert self.ask(platform, token)[0] == 200
        assert self.ask(platform, f"Bearer {token}")[0] == 403
        platform.control.set(default_api_scopes=["meta"])
        assert self.ask(platform, token) == (403, '{"error":"API scope is missing: data"}')

    def test_a_token_is_for_one_deployment(self, platform: Platform) -> None:
        token = platform.call("POST", "deployments/2/token").json()["cubeApiToken"]
        assert self.ask(platform, token)[0] == 403
        assert self.ask(platform, "nonsense")[0] == 403


BY_MONTH = "SELECT month, SUM(amount) FROM orders GROUP BY month"


def test_first_line_names_the_built_pre_aggregations_that_serve_the_query(
    ask: Any, platform: Platform
) -> None:
    assert "usedPreAggregations" not in ask(BY_MONTH)[0]
    platform.control.set(built_pre_aggregations=["orders.revenue_by_month"])
    assert ask(BY_MONTH)[0]["usedPreAggregations"] == {
        "prod_pre_aggregations.orders_revenue_by_month": {
            "targetTableName": "prod_pre_aggregations.orders_revenue_by_month",
            "preAggregationId": "orders.revenue_by_month",
        }
    }
    assert "usedPreAggregations" not in ask("SELECT country, COUNT(*) FROM customers GROUP BY 1")[0]
