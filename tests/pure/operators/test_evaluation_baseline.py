"""Which baseline a night reads, with and without a logical date, and which night has none."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator

SUITE = [{"name": "total", "question": "total revenue", "sql": "SELECT 1"}]
DATED = {"firsts": {"total": "P"}, "owner": "dated"}
UNDATED = {"firsts": {"total": "P"}, "owner": "undated", "is_dated": False}


def read(
    found: Any, *, dated: bool, previous: Any = None, reset: bool = False
) -> tuple[Any, PlatformEvaluationOperator]:
    """Read the baseline. `found` is what Airflow finds first, `previous` what the run with the
    logical date before has left."""
    task = PlatformEvaluationOperator(task_id="suite", questions=SUITE, reset_baseline=reset)
    ti = SimpleNamespace(
        task_id="suite",
        map_index=-1,
        xcom_pull=lambda **asked: previous if asked.get("run_id") == "before" else found,
        get_previous_dagrun=lambda: SimpleNamespace(run_id="before"),
    )
    date = datetime(2026, 11, 27, tzinfo=UTC) if dated else None
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(logical_date=date)}
    return task._read_baseline(context), task


@pytest.mark.parametrize(
    ("found", "previous", "dated", "owner", "keeps"),
    [
        (DATED, None, True, "dated", True),
        (UNDATED, None, False, "undated", True),
        (None, None, False, "", True),
        (DATED, None, False, "dated", False),
        (UNDATED, DATED, True, "dated", True),
        (UNDATED, None, True, "undated", True),
    ],
    ids=[
        "dated runs",
        "undated runs",
        "first undated run",
        "undated among dated",
        "undated sorts first",
        "first dated run",
    ],
)
def test_run_without_a_logical_date_leaves_nothing_for_runs_with_one(
    found: Any, previous: Any, dated: bool, owner: str, keeps: bool
) -> None:
    baseline, task = read(found, dated=dated, previous=previous)
    assert (baseline.owner, baseline.is_dated) == (owner, dated)
    assert task._keeps_baseline is keeps


def test_reset_that_the_next_night_would_not_find_is_refused() -> None:
    with pytest.raises(PlatformInputError, match="this DAG run has no logical date"):
        read(DATED, dated=False, reset=True)


@pytest.mark.parametrize(("found", "dated"), [(DATED, True), (UNDATED, False), (None, False)])
def test_reset_forgets_the_earlier_nights(found: Any, dated: bool) -> None:
    baseline, task = read(found, dated=dated, reset=True)
    assert (baseline.firsts, task._keeps_baseline) == ({}, True)


def test_log_says_that_the_answers_of_somebody_else_are_no_baseline(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    found, task = read(DATED, dated=True)
    attempt: Any = SimpleNamespace(
        config=None,
        context={"ti": SimpleNamespace(map_index=-1)},
        kind=SimpleNamespace(baseline_owner=lambda _: "another"),
    )
    assert task._own_baseline(attempt, found, []).firsts == {}
    assert "Its answers are no baseline of this run." in caplog.text + capsys.readouterr().out


def test_evaluation_of_a_branch_without_a_gate_is_refused_when_the_dag_is_parsed() -> None:
    with pytest.raises(PlatformInputError, match="an evaluation of a branch needs a gate"):
        PlatformEvaluationOperator(
            task_id="suite", questions=SUITE, branch_name="dev", no_regression=False
        )
