"""Builds of pre-aggregations in the sandbox: requests, reported statuses, and pitfalls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

CONTEXT: dict[str, Any] = {"securityContext": {}}
MONTHS = {"preAggregations": ["orders.revenue_by_month"]}


@pytest.fixture
def post(platform: Platform) -> Any:
    """Send a body to the jobs of deployment 1, with the scope that it needs."""
    platform.control.set(default_api_scopes=["meta", "data", "graphql", "jobs"])

    def send(body: Any, path: str = "pre-aggregations/jobs") -> tuple[int, Any]:
        token = platform.call("POST", "deployments/1/token", json={"expiresIn": 600}).json()
        answer = platform.http.post(
            f"{platform.sandbox.url}/deployments/1/cubejs-api/v1/{path}",
            headers={"Authorization": token["cubeApiToken"]},
            **({"content": body} if isinstance(body, bytes) else {"json": body}),
        )
        return answer.status_code, answer.json()

    return send


@pytest.fixture
def start(post: Any) -> Any:
    """Start builds; the tokens."""

    def begin(**selector: Any) -> list[str]:
        wanted = {"contexts": [CONTEXT], "timezones": ["UTC"], **selector}
        status, tokens = post({"action": "post", "selector": wanted})
        assert status == 200, tokens
        assert isinstance(tokens, list)
        return tokens

    return begin


@pytest.fixture
def statuses(post: Any) -> Any:
    """The status of each token."""

    def look(tokens: list[str]) -> list[str]:
        status, jobs = post({"action": "get", "tokens": tokens})
        assert status == 200, jobs
        assert [job["token"] for job in jobs] == tokens
        return [job["status"] for job in jobs]

    return look


def test_table_is_first_scheduled_then_processing_then_missing_then_done(
    start: Any, statuses: Any, platform: Platform
) -> None:
    platform.control.set(jobs_build_seconds=200, jobs_gap_seconds=100)
    tokens = start(cubes=["customers"])
    seen = [statuses(tokens)]
    for _ in range(3):
        platform.control.advance(100)
        seen.append(statuses(tokens))
    assert seen == [["scheduled"], ["processing"], ["missing_partition"], ["done"]]


def test_failure_is_reported_once_and_then_as_a_missing_partition(
    start: Any, statuses: Any, platform: Platform
) -> None:
    platform.control.set(
        jobs_outcome="failure", jobs_outcome_of=["orders.revenue_by_month 2025-03"]
    )
    tokens = start(**MONTHS)
    first = statuses(tokens)
    assert [status[:8] for status in first].count("failure:") == 1
    assert statuses(tokens).count("missing_partition") == 1
    assert statuses(tokens).count("done") == 12


def test_the_described_tenant_reports_other_data_sources_as_missing_until_they_are_done(
    start: Any, statuses: Any, platform: Platform
) -> None:
    platform.control.set(tenant="described", jobs_build_seconds=100)
    tokens = start(cubes=["customers", "products"])
    assert statuses(tokens) == ["scheduled", "missing_partition"]
    platform.control.advance(100)
    assert statuses(tokens) == ["done", "done"]


def test_tokens_are_forgotten_a_day_after_the_start_and_after_the_first_end_that_was_seen(
    start: Any, statuses: Any, platform: Platform
) -> None:
    seen, unseen = start(cubes=["customers"]), start(cubes=["customers"])
    platform.control.advance(80_000)
    assert statuses(seen) == ["done"]
    platform.control.advance(80_000)
    assert (statuses(seen), statuses(unseen)) == (["done"], ["not_found"])
    assert statuses(["0" * 32]) == ["not_found"]


@pytest.mark.parametrize("outcome", ["not_found", "pre_agg_not_found", "missing_partition"])
def test_a_build_can_have_no_good_end(
    start: Any, statuses: Any, platform: Platform, outcome: str
) -> None:
    platform.control.set(jobs_outcome=outcome)
    assert statuses(start(cubes=["customers"])) == [outcome]


def query(platform: Platform, sql: str) -> list[dict[str, Any]]:
    """The lines of the result of one query."""
    token = platform.call("POST", "deployments/1/token").json()["cubeApiToken"]
    answer = platform.http.post(
        f"{platform.sandbox.url}/deployments/1/cubejs-api/v1/cubesql",
        headers={"Authorization": token},
        json={"query": sql},
    )
    return [json.loads(line) for line in answer.text.splitlines()]


def test_table_serves_queries_once_it_is_built(start: Any, platform: Platform) -> None:
    sql = "SELECT country, COUNT(*) FROM customers GROUP BY country"
    platform.control.set(jobs_build_seconds=100)
    start(cubes=["customers"])
    assert "usedPreAggregations" not in query(platform, sql)[0]
    platform.control.advance(100)
    used = query(platform, sql)[0]["usedPreAggregations"]
    assert [*used] == ["prod_pre_aggregations.customers_by_country"]


@pytest.mark.parametrize("measure", ["SUM(amount)", "MEASURE(revenue)"])
def test_table_without_rows_is_done_and_hides_rows_from_queries_that_use_it(
    start: Any, statuses: Any, platform: Platform, measure: str
) -> None:
    def value(sql: str) -> str:
        return str(query(platform, sql)[1]["data"][0][0])

    measure = f"SELECT {measure} FROM orders"
    revenue = value(measure)
    platform.control.set(jobs_outcome="no_rows")
    assert set(statuses(start(**MONTHS, dateRange=["2025-01-01", "2025-01-31"]))) == {"done"}
    assert value(measure) != revenue
    assert value("SELECT COUNT(*) FROM orders") == "480"  # no measure of the table
    platform.control.set(jobs_outcome="done")
    assert set(statuses(start(**MONTHS))) == {"done"}
    assert value(measure) == revenue
