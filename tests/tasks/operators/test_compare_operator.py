"""Comparisons of a branch with production, executed as a worker does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.compare import PlatformCompareOperator
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.captured_log import Capture

BRANCH = "nightly"
BY_MONTH = "SELECT month, COUNT(*) AS orders, SUM(amount) AS revenue FROM orders GROUP BY 1"
TOTAL = "SELECT COUNT(*) AS orders, SUM(amount) AS revenue FROM orders"


@pytest.fixture(autouse=True)
def branch(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.open_branch(BRANCH)


def lack_december(sandbox: Sandbox) -> None:
    sandbox.control.set(branch_lacks_months=["2025-12"])


def refused(**arguments: Any) -> str:
    """The error of a comparison that fails and is not retried."""
    with pytest.raises(AirflowFailException) as error:
        compared(**arguments)
    return str(error.value)


def compared(**arguments: Any) -> dict[str, Any]:
    """The result of a comparison of the branch, as a worker runs it."""
    task = PlatformCompareOperator(task_id="compare", **{"branch_name": BRANCH, **arguments})
    context = TaskTries().context()
    task.render_template_fields({**context, "params": {"limit": 0.5}})
    found: dict[str, Any] = json.loads(json.dumps(task.execute(context)))
    return found


def test_equal_numbers_are_the_same() -> None:
    found = compared(queries={"months": BY_MONTH, "total": TOTAL})
    assert (found["verdict"], found["compared"], found["moved"]) == ("same", 26, 0)
    assert [query["name"] for query in found["queries"]] == ["months", "total"]
    assert all(query["moved"] == [] for query in found["queries"])


def test_number_that_moves_beyond_the_tolerance_fails_the_task(platform_sandbox: Sandbox) -> None:
    lack_december(platform_sandbox)
    error = refused(queries=[TOTAL], tolerance=0.05)
    assert "Branch nightly changes numbers by more than the tolerance. query 1: " in error
    assert "orders is 426, in production 480 (-11.25 %)" in error


def test_numbers_that_move_within_the_tolerance_pass(platform_sandbox: Sandbox) -> None:
    lack_december(platform_sandbox)
    found = compared(queries=[TOTAL], tolerance=0.5)
    assert (found["verdict"], found["compared"], found["moved"]) == ("within_tolerance", 2, 2)
    [query] = found["queries"]
    [orders] = [move for move in query["moved"] if move["column"] == "orders"]
    assert orders == {
        "key": {},
        "column": "orders",
        "production": "480",
        "branch": "426",
        "percent": -11.25,
    }


def test_difference_is_only_a_warning_if_the_task_asks_for_that(
    platform_sandbox: Sandbox, capture: Capture
) -> None:
    lack_december(platform_sandbox)
    found = compared(queries={"months": BY_MONTH}, on_difference="warn")
    assert (found["verdict"], found["queries"][0]["rows_missing"]) == ("moved", 1)
    assert "months: missing rows: 1." in "\n".join(capture.lines())


def test_measures_are_compared_by_their_dimensions(platform_sandbox: Sandbox) -> None:
    lack_december(platform_sandbox)
    arguments = {"measures": ["orders.revenue", "orders.count"], "by": ["orders.status"]}
    found = compared(tolerance="{{ params.limit }}", **arguments)
    [query] = found["queries"]
    assert query["sql"] == (
        'SELECT "status", MEASURE("revenue") AS "revenue", MEASURE("count") AS "count" '
        'FROM "orders" GROUP BY 1 LIMIT 50000'
    )
    assert {move["key"]["status"] for move in query["moved"]} == {"delivered", "returned"}
    assert (query["name"], query["compared"], query["moved_count"]) == ("orders", 4, 4)


def test_queries_of_a_workbooks_reports_are_compared() -> None:
    found = compared(workbook_id=301)
    assert len(found["queries"]) == 2
    assert found["verdict"] == "same"


def test_report_without_sql_is_refused(platform_sandbox: Sandbox) -> None:
    with PlatformHook() as hook:
        hook.call("updateReport", deployment_id=1, report_id=101, body={"sqlQuery": None})
    error = refused(workbook_id=301)
    assert re.search(r"workbook 301 has 2 reports, without SQL: .* \(101\)\. Give the", error)
    assert not any(
        one.path.endswith("/cubesql") for one in platform_sandbox.control.state().requests
    )


def test_query_that_fails_on_the_branch_only_fails_the_task(
    platform_sandbox: Sandbox, capture: Capture
) -> None:
    platform_sandbox.control.add_branch("closed")
    error = refused(branch_name="closed", queries={"total": TOTAL}, on_difference="warn")
    assert "Branch is not active" in error
    assert f"A query could not be compared: total: {TOTAL}" in "\n".join(capture.lines())


def test_production_beside_itself_is_refused_before_any_query(platform_sandbox: Sandbox) -> None:
    assert "this is the production branch" in refused(branch_name="main", queries=[TOTAL])
    paths = [one.path for one in platform_sandbox.control.state().requests]
    assert not any(path.endswith("/cubesql") for path in paths)


def test_log_says_which_branch_measures_and_numbers_were_compared(capture: Capture) -> None:
    compared(measures=["orders.count"], by=["orders.status"])
    log = "\n".join(capture.lines())
    assert (
        "Branch nightly beside production: orders: 2 numbers are the same (count by status): "
        in log
    )
    assert "count of status=delivered is " in log


def test_result_that_may_be_cut_is_never_the_same(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.set(data_default_rows=100)
    stored = platform_sandbox.connection_json(default_row_limit=100)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", stored)
    error = refused(queries=["SELECT id, amount FROM orders"], keys=["id"])
    assert "Nothing was compared. The result may be incomplete" in error
