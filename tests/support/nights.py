"""A suite of two golden questions, and what tests read of its nights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox

TOTAL = "SELECT SUM(amount) AS revenue FROM orders"
ORDERS = "SELECT COUNT(*) AS orders FROM orders"
WRONG = "SELECT SUM(quantity) AS revenue FROM orders"
BRANCH = "dbt-sync/main-1"

SUITE = [
    {"name": "total", "question": "total revenue", "sql": TOTAL},
    {"name": "orders", "question": "number of orders", "sql": ORDERS},
]


def asked(sandbox: Sandbox) -> dict[str, int]:
    """How often the agent was asked each question."""
    return dict(sandbox.control.state().asked)


def verdicts(run: FinishedRun) -> dict[str, tuple[Any, ...]]:
    """Verdict, stability and cause of each question."""
    questions = run.xcom("suite")["questions"]
    return {one["name"]: (one["verdict"], one["stability"], one["cause"]) for one in questions}
