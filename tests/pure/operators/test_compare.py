"""Arguments of `PlatformCompareOperator`."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators.compare import PlatformCompareOperator


def test_one_name_is_a_list_of_one() -> None:
    task = PlatformCompareOperator(task_id="compare", branch_name="dev", measures="orders.count")
    assert task.measures == ["orders.count"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "exactly one of queries and measures and workbook_id and workbook"),
        ({"queries": ["SELECT 1"], "workbook_id": 1}, "exactly one of"),
        ({"queries": [""]}, "queries must be a non-empty string"),
        ({"measures": ["revenue"]}, "measures and by must be names as orders.revenue"),
        ({"queries": ["SELECT 1"], "by": ["orders.status"]}, "by needs measures"),
        ({"measures": ["orders.count"], "by": ["customers.country"]}, "one cube or view"),
        ({"queries": ["SELECT 1"], "tolerance": -0.1}, "tolerance must be at least 0"),
        ({"queries": ["SELECT 1"], "tolerance": "much"}, "tolerance must be a number"),
        ({"queries": ["SELECT 1"], "on_difference": "skip"}, "one of fail, warn"),
        ({"queries": ["SELECT 1"], "branch_name": "a b"}, "cannot be a branch name"),
    ],
)
def test_wrong_argument_is_an_error_of_the_dag_file(
    arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PlatformInputError, match=problem):
        PlatformCompareOperator(task_id="compare", **{"branch_name": "nightly", **arguments})
