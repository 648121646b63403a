"""A result is read from the service to be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.errors import ResultNotComparableError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.evaluations import equal_results
from airflow_provider_platform.resources.evaluations.equal_results import (
    Result,
    compare,
    read_result,
)
from airflow_provider_platform.resources.sql.query import SqlQuery

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


def read(sql: str) -> Result:
    """The result of a query to the sandbox."""
    with PlatformHook() as hook, hook.client() as client:
        query = SqlQuery(sql, deployment_id=1, deadline=client.clock() + 60)
        return client.run(lambda api: read_result(api, query))


def test_whole_result_is_read(platform_sandbox: Sandbox) -> None:
    found = read("SELECT id, amount FROM orders")
    assert [column["name"] for column in found.columns] == ["id", "amount"]
    assert (len(found.rows), found.why_truncated) == (480, None)
    assert compare(found, read("SELECT amount, id FROM orders ORDER BY id DESC")).verdict == "pass"


def test_result_names_the_pre_aggregations_that_served_it(platform_sandbox: Sandbox) -> None:
    sql = "SELECT month, SUM(amount) FROM orders GROUP BY 1"
    assert read(sql).used_pre_aggregations == ()
    platform_sandbox.control.set(built_pre_aggregations=["orders.revenue_by_month"])
    assert read(sql).used_pre_aggregations == ("orders.revenue_by_month",)


def test_result_that_the_service_may_have_cut_says_so(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(data_default_rows=100)
    stored = platform_sandbox.connection_json(default_row_limit=100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", stored)
        found = read("SELECT id FROM orders")
    assert len(found.rows) == 100
    assert "exactly 100 rows" in str(found.why_truncated)


@pytest.mark.parametrize(("limit", "value"), [("MAX_COMPARED_ROWS", 400), ("MAX_BYTES", 20_000)])
def test_result_that_is_too_large_is_refused(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(equal_results, limit, value)
    with pytest.raises(ResultNotComparableError, match="Aggregate in the query"):
        read("SELECT id FROM orders")
