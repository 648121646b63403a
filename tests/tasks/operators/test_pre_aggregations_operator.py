"""Builds of pre-aggregations as a task: started once, followed by retries, failed with reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    PlatformDeadlineError,
    PlatformInputError,
    PlatformServerError,
    PlatformTransportError,
    PreAggregationBuildFailedError,
    ResultEmptyError,
)
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

SCOPES = ["meta", "data", "graphql", "jobs"]
ORDERS = "SELECT SUM(amount) FROM orders"
ORDERS_OF_MARCH = "SELECT SUM(amount) FROM orders WHERE month = '2025-03'"


def build(**arguments: Any) -> PlatformBuildPreAggregationsOperator:
    return PlatformBuildPreAggregationsOperator(
        task_id="build",
        **{"poll_interval": 0.05, "deferrable": False, "missing_grace": 0.2, **arguments},
    )


@pytest.fixture(autouse=True)
def _the_scope_is_on(control: SandboxControl) -> None:
    control.set(default_api_scopes=SCOPES)


def starts(control: SandboxControl) -> int:
    return len(control.state().changed("pre-aggregation-jobs"))


def test_result_of_a_build_names_the_tables(control: SandboxControl) -> None:
    control.set(jobs_build_seconds=0.2, jobs_gap_seconds=0.1)
    result = build(cubes="customers", verify_sql=ORDERS).execute(TaskTries().context())
    assert set(result) == {"status", "table_count", "tables", "tokens", "verified"}
    assert (result["status"], result["table_count"], result["verified"]) == ("done", 1, True)
    assert result["tables"][0].startswith("prod_pre_aggregations.customers_by_country")
    assert [len(token) for token in result["tokens"]] == [32]


def test_build_without_waiting_returns_its_tokens(control: SandboxControl) -> None:
    control.set(jobs_outcome="failure")
    result = build(wait_for_completion=False).execute(TaskTries().context())
    assert (result["status"], result["table_count"]) == (None, 15)
    assert len(result["tokens"]) == 15


def test_a_retry_polls_the_tokens_and_starts_nothing(control: SandboxControl) -> None:
    tries = TaskTries()
    control.fault("status", path="jobs$", nth=2, status=502, body="html", count=6)
    with pytest.raises(PlatformServerError, match="502"):
        build(poll_interval=0.01).execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "running"
    assert build().execute(tries.context())["table_count"] == 15
    assert starts(control) == 1


def test_retry_continues_with_builds_that_outlived_the_deadline(control: SandboxControl) -> None:
    control.set(jobs_build_seconds=1000)
    tries = TaskTries()
    with pytest.raises(PlatformDeadlineError, match=r"These have not: .*scheduled"):
        build(timeout=0.3).execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "running"
    with pytest.raises(PlatformDeadlineError):
        build(timeout=0.3).execute(tries.context())
    control.advance(1000)
    assert build(timeout=30).execute(tries.context())["status"] == "done"
    assert starts(control) == 1


def test_retry_starts_the_builds_again_if_their_tokens_are_unknown(
    control: SandboxControl,
) -> None:
    control.set(jobs_build_seconds=1000)
    tries = TaskTries()
    with pytest.raises(PlatformDeadlineError):
        build(timeout=0.3).execute(tries.context())
    control.advance(86400)
    control.set(jobs_build_seconds=0)
    assert build(timeout=30).execute(tries.context())["status"] == "done"
    assert starts(control) == 2


def test_error_names_a_pre_aggregation_that_the_model_no_longer_has(
    control: SandboxControl,
) -> None:
    control.set(jobs_outcome="pre_agg_not_found")
    with pytest.raises(PreAggregationBuildFailedError, match="pre_agg_not_found"):
        build(cubes=["customers"]).execute(TaskTries().context())


def test_tables_that_are_done_without_rows_fail_the_verification(control: SandboxControl) -> None:
    control.set(jobs_outcome="no_rows", jobs_outcome_of=["orders.revenue_by_month 2025-03"])
    tries = TaskTries()
    months = ["orders.revenue_by_month"]
    assert build(pre_aggregations=months).execute(TaskTries().context())["verified"] is None
    with pytest.raises(ResultEmptyError, match="starts no build"):
        build(pre_aggregations=months, verify_sql=ORDERS_OF_MARCH).execute(tries.context())
    with pytest.raises(ResultEmptyError):
        build(pre_aggregations=months, verify_sql=ORDERS_OF_MARCH).execute(tries.context())
    assert starts(control) == 2


def test_query_of_another_measure_does_not_show_an_empty_table(control: SandboxControl) -> None:
    """As in the service: it answers such a query from the source tables."""
    control.set(jobs_outcome="no_rows")
    months = ["orders.revenue_by_month"]
    orders = build(pre_aggregations=months, verify_sql="SELECT COUNT(*) FROM orders")
    assert orders.execute(TaskTries().context())["verified"] is True


def test_a_query_that_fails_names_the_fault_and_builds_nothing_more(
    control: SandboxControl,
) -> None:
    with pytest.raises(AirflowFailException, match="no such table"):
        build(verify_sql="SELECT * FROM nowhere").execute(TaskTries().context())
    assert starts(control) == 1


def test_lost_start_is_reported_and_not_repeated(control: SandboxControl) -> None:
    control.fault("lost_response", path="jobs$")
    tries = TaskTries()
    with pytest.raises(AirflowFailException, match="may be running") as caught:
        build().execute(tries.context())
    assert "if_start_lost='repeat'" in str(caught.value)
    assert starts(control) == 1
    assert tries.store[STORE_KEY]["phase"] == "lost"


@pytest.mark.exhaustive
def test_retry_repeats_a_lost_start_only_with_if_start_lost_repeat(
    control: SandboxControl,
) -> None:
    control.fault("lost_response", path="jobs$")
    tries = TaskTries()
    with pytest.raises(PlatformTransportError, match="A retry starts them again"):
        build(if_start_lost="repeat").execute(tries.context())
    assert starts(control) == 1
    assert build(if_start_lost="repeat").execute(tries.context())["status"] == "done"
    assert starts(control) == 2


def test_retry_reports_that_the_earlier_try_was_lost_at_the_start(control: SandboxControl) -> None:
    control.fault("lost_response", path="jobs$")
    tries = TaskTries()
    with pytest.raises(PlatformTransportError):
        build(if_start_lost="repeat").execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"
    with pytest.raises(
        AirflowFailException, match="The previous try ended unexpectedly while it started"
    ):
        build().execute(tries.context())
    assert starts(control) == 1
    assert tries.store[STORE_KEY]["phase"] == "lost"


def test_a_selector_that_matches_nothing_is_an_error(control: SandboxControl) -> None:
    with pytest.raises(AirflowFailException, match="No pre-aggregation matches"):
        build(pre_aggregations=["orders.weekly"]).execute(TaskTries().context())
    assert starts(control) == 0


def test_build_trigger_has_no_context_and_the_worker_starts_no_second_build(
    control: SandboxControl,
) -> None:
    tries = TaskTries()
    task = build(deferrable=True, contexts=[{"tenant": "acme"}], verify_sql=ORDERS)
    deferred = deferral(task.execute, tries.context())
    assert "acme" not in str(deferred.trigger.serialize())
    assert deferred.trigger.serialize()[1]["arguments"]["verify_sql"] == ORDERS
    assert starts(control) == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"contexts": []}, "contexts"),
        ({"contexts": ["acme"]}, "contexts"),
        ({"timezones": []}, "timezones"),
        ({"timezones": ["Mars"]}, "timezones"),
        ({"cubes": [""]}, "cubes"),
        ({"pre_aggregations": "revenue"}, "pre_aggregations"),
        ({"pre_aggregations": ["a.b.c"]}, "pre_aggregations"),
        ({"date_range": ["2025-01-01"]}, "date_range"),
        ({"date_range": ["January", "February"]}, "date_range"),
        ({"date_range": ["2025-02-01", "2025-01-01"]}, "date_range"),
        ({"if_start_lost": "skip"}, "if_start_lost"),
        ({"missing_grace": 0}, "missing_grace"),
        ({"verify_sql": ORDERS, "wait_for_completion": False}, "verify_sql"),
        ({"timeout": -1}, "timeout"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        build(**arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("moment", "sent"),
    [
        ("2025-01-01", "2025-01-01"),
        ("2025-01-01T06:00:00", "2025-01-01T06:00:00"),
        ("2025-01-01T01:00:00+01:00", "2025-01-01T00:00:00.000Z"),
        ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00.000Z"),
    ],
)
def test_a_date_range_is_sent_without_an_offset(moment: str, sent: str) -> None:
    task = build(date_range=[moment, "2026-01-01"])
    assert task.date_range == [sent, "2026-01-01"]


def test_verify_sql_that_is_not_a_query_is_refused_before_anything_is_built(
    platform_sandbox: Any,
) -> None:
    with pytest.raises(AirflowFailException, match="verify_sql must be one query; it begins with"):
        build(verify_sql="DROP TABLE orders").execute(TaskTries().context())
    assert platform_sandbox.control.state().requests == []
