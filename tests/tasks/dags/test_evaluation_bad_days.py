"""Bad days of golden questions and of comparisons, in DAG runs against the sandbox."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.client.errors import (
    PlatformInputError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.operators import evaluation
from airflow_provider_platform.operators._run_record import RecordKeeper
from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.compare import PlatformCompareOperator
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from airflow_provider_platform.resources.chat.run import ChatRunKind
from airflow_provider_platform.resources.evaluations.run import EvaluationRunKind
from airflow_provider_platform.resources.run_kind import Identified, Intended
from tests.support.modes import in_both_modes
from tests.support.nights import BRANCH, ORDERS, SUITE, TOTAL, WRONG, asked
from tests.support.releases import needs_store

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

pytestmark = pytest.mark.exhaustive

EVENTS = "SELECT id FROM events"


def active(sandbox: Sandbox) -> list[str]:
    return [run.text for run in sandbox.control.state().runs if run.status == "streaming"]


def error(run: FinishedRun) -> str:
    return str(run.task("suite").error)


# Green without a measurement.


def test_first_measured_night_after_one_without_a_measurement_has_no_baseline(
    night: Any, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.answer("total revenue", error="overloaded", times=None)
    control.answer("number of orders", error="overloaded", times=None)
    assert night().state == "failed"
    control.answer("total revenue", sql=WRONG, times=None)
    control.answer("number of orders", sql=WRONG, times=None)
    run = night()
    assert run.xcom("suite")["counts"]["passed"] == 0
    assert run.xcom("suite")["status"] == "no_baseline", "nothing was compared"


def test_evaluation_of_a_branch_is_no_baseline_of_production(
    night: Any, platform_sandbox: Sandbox
) -> None:
    """`branch_name` may be a parameter of the DAG run."""
    control = platform_sandbox.control
    control.open_branch(BRANCH)
    night()
    control.answer("total revenue", sql=WRONG, times=None)  # on both sides
    assert night(branch_name=BRANCH).xcom("suite")["status"] == "green"
    run = night()
    assert run.state == "failed", "production was right and is wrong"


def test_used_up_tokens_do_not_hide_a_wrong_answer(night: Any, platform_sandbox: Sandbox) -> None:
    control = platform_sandbox.control
    control.set(answer_tokens=1000, pace=0.02)
    questions = [
        {"name": f"q{n}", "question": f"number of orders {n}", "sql": ORDERS} for n in range(5)
    ]
    night(questions=questions)
    control.answer("number of orders 3", sql=WRONG, times=None)
    run = night(questions=questions, max_tokens=5000)
    assert run.xcom("suite")["questions"][3]["verdict"] == "fail"
    assert run.state == "failed", "green although the answer became wrong"


# A wrong merge.


def gated(run_dag: RunDag, **arguments: Any) -> FinishedRun:
    soon: dict[str, Any] = {"poll_interval": 0.05, "default_args": {"retries": 0}}
    with (
        DAG(dag_id="gated", default_args={"retries": 0}) as dag,
        branch_gate(BRANCH, group_id="gate", **soon) as gate,
    ):
        PlatformEvaluationOperator(
            task_id="suite", branch_name=gate.branch_name, poll_interval=0.1, **arguments
        )
    return run_dag(dag)


FIVE = [{"name": f"q{n}", "question": f"question {n}", "sql": ORDERS} for n in range(5)]


@pytest.mark.parametrize(
    "how",
    [
        "rows",
        "tokens",
        "production not measured",
        "production wrong by chance",
    ],
)
def test_branch_with_a_wrong_answer_is_never_merged(
    run_dag: RunDag, platform_sandbox: Sandbox, how: str
) -> None:
    """The branch answers with too many rows to be compared, or no token is left to ask it again, or
    production could not be asked, or was wrong this once."""
    control = platform_sandbox.control
    control.add_branch(BRANCH)
    control.set(answer_tokens=1000, pace=0.02)
    control.answer("question", sql=ORDERS, times=None)
    control.answer("question 3", sql=EVENTS if how == "rows" else WRONG, branch=BRANCH, times=None)
    if how == "production not measured":
        control.answer("question 3", error="overloaded", times=None)
        control.answer("question 3", sql=WRONG, branch=BRANCH, times=None)
    if how == "production wrong by chance":
        control.answer("question 3", sql=WRONG, times=2)  # the branch is asked first
    limits: dict[str, Any] = {"max_tokens": 10_000} if how == "tokens" else {}
    run = gated(run_dag, questions=FIVE, parallel=1, **limits)
    [question] = [one for one in run.xcom("gate.suite")["questions"] if one["name"] == "q3"]
    assert question["verdict"] != "pass"
    assert run.states["gate.merge"] == "upstream_failed"


def test_comparison_of_two_responses_that_ended_before_their_rows_is_not_the_same(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    """The service sends a line with data also for an empty result."""
    platform_sandbox.control.open_branch("nightly")
    platform_sandbox.control.set(branch_lacks_months=["2025-12"])
    platform_sandbox.control.fault("close", api="data", path="cubesql", count=None, after=1)
    with DAG(dag_id="compared") as dag:
        PlatformCompareOperator(task_id="suite", branch_name="nightly", queries=[TOTAL], retries=0)
    assert run_dag(dag).state == "failed"


def test_wrong_answer_does_not_pass_if_both_results_ended_before_their_rows(
    night: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.answer("total revenue", sql=WRONG, times=None)
    platform_sandbox.control.fault("close", api="data", path="cubesql", count=None, after=1)
    run = night(questions=SUITE[:1])
    assert run.xcom("suite")["questions"][0]["verdict"] != "pass"


# Asked twice.


@in_both_modes("night")
@needs_store
@pytest.mark.parametrize(
    ("kind", "parameters", "times"),
    [
        ("broken_json", {"after": 3}, None),
        ("status", {"status": 429, "retry_after": 600}, 1),
        ("lost_response", {}, 1),
        ("abort", {"after": 2}, 1),
    ],
    ids=["broken", "refused", "lost", "aborted"],
)
def test_fault_of_one_question_repeats_no_other(
    night: Any,
    platform_sandbox: Sandbox,
    kind: str,
    parameters: dict[str, Any],
    times: int | None,
) -> None:
    control = platform_sandbox.control
    control.answer("question", sql=ORDERS, times=None)
    control.fault(kind, api="chat", text="question 3", has_input=True, count=times, **parameters)
    night(questions=FIVE, parallel=2, retries=2, retry_delay=0, timeout=60)
    others = {name: count for name, count in asked(platform_sandbox).items() if "3" not in name}
    assert set(others.values()) == {1}
    assert active(platform_sandbox) == []


@in_both_modes("night")
def test_question_that_may_have_been_lost_ends_no_other(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question was sent twice, and its thread does not contain it."""
    platform_sandbox.control.answer("question", sql=ORDERS, times=None)
    submit = ChatRunKind.submit

    async def lose_one(self: Any, api: Any, env: Any, earlier: Any, *, until_end: bool) -> Any:
        if "3" in self.prompt:
            await api.notify(Intended({"submitted_at": api.clock(), "message_id": "3"}))
            raise PlatformOutcomeUnknownError("The message was sent twice.")
        return await submit(self, api, env, earlier, until_end=until_end)

    monkeypatch.setattr(ChatRunKind, "submit", lose_one)
    run = night(questions=FIVE, parallel=2, min_measured=0.5)
    assert run.xcom("suite")["counts"]["passed"] == 4, error(run)
    assert active(platform_sandbox) == []


@needs_store
def test_question_whose_record_cannot_be_stored_is_not_asked(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would find it again if the worker died."""
    platform_sandbox.control.answer("question", sql=ORDERS, times=None)
    write = RecordKeeper.write

    def refuse_one(self: Any, phase: Any, ids: Any) -> None:
        active = ids.get("active", {})
        if active.get("production:q3", {}).get("phase") == "intent":
            raise ConnectionError("Airflow does not answer.")
        write(self, phase, ids)

    monkeypatch.setattr(RecordKeeper, "write", refuse_one)
    assert night(questions=FIVE, parallel=2).state == "failed"
    assert set(asked(platform_sandbox)) == {"question 0", "question 1", "question 2"}


@in_both_modes("night")
@needs_store
def test_retry_that_looks_for_a_question_keeps_the_record_of_its_suite(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next try would ask all again if the worker died meanwhile."""
    control = platform_sandbox.control
    control.answer("question", sql=ORDERS, times=None)
    control.fault("lost_response", api="chat", text="question 3", has_input=True, count=1)
    find, write, recorded = ChatRunKind.find, RecordKeeper.write, []

    async def find_in_thread(self: Any, api: Any, env: Any, ids: Any) -> Any:
        await api.notify(Identified(ids))
        return await find(self, api, env, ids)

    def record(self: Any, phase: Any, ids: Any) -> None:
        recorded.append(ids)
        write(self, phase, ids)

    monkeypatch.setattr(ChatRunKind, "find", find_in_thread)
    monkeypatch.setattr(RecordKeeper, "write", record)
    run = night(questions=FIVE, parallel=2, retries=1, retry_delay=timedelta(seconds=1))
    assert run.state == "success", error(run)
    assert [ids for ids in recorded if "evaluation_id" not in ids] == []


@pytest.mark.parametrize("night", [True], ids=["deferred"], indirect=True)
def test_question_that_left_its_file_while_it_was_asked_ends_no_other(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that continues after a wait reads the file again, and the file may be newer."""
    platform_sandbox.control.answer("question", sql=ORDERS, times=None)
    platform_sandbox.control.set(pace=0.3)  # so that no question is over before the task waits
    versions = [FIVE]
    monkeypatch.setattr(evaluation, "_read_yaml", lambda _: versions[-1])
    wait = EvaluationRunKind.to_event

    def deploy(self: Any, secrets: Any, outcome: Any) -> Any:
        versions.append(FIVE[1:])
        return wait(self, secrets, outcome)

    monkeypatch.setattr(EvaluationRunKind, "to_event", deploy)
    run = night(questions=["questions.yml"], parallel=2)
    assert run.state == "success", error(run)
    assert run.xcom("suite")["counts"]["passed"] == 4


@in_both_modes("night")
def test_stop_that_fails_for_one_question_stops_the_others(
    night: Any, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.set(pace=0.5)
    control.answer("question", sql=ORDERS, times=None)
    control.fault("status", status=403, api="chat", text="question 3", has_input=True)
    control.fault("status", status=403, path=r"/abort$", count=1)  # is not repeated
    assert night(questions=FIVE, parallel=5, timeout=60).state == "failed"
    assert len(active(platform_sandbox)) == 1


# After the deadline.


@in_both_modes("night")
@needs_store
@pytest.mark.parametrize("fault", ["lost_response", "silence"])
def test_late_retry_says_that_a_question_has_no_thread(
    night: Any, platform_sandbox: Sandbox, fault: str
) -> None:
    control = platform_sandbox.control
    control.answer("question", sql=ORDERS, times=None)
    control.fault(fault, api="chat", text="question 3", has_input=True, count=None)
    run = night(questions=FIVE, parallel=2, retries=1, retry_delay=timedelta(seconds=3), timeout=3)
    assert "returned no chat id" in error(run)


@in_both_modes("night")
@needs_store
def test_retry_after_the_deadline_asks_what_was_not_measured(
    night: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.answer("total revenue", error="overloaded", times=1)
    run = night(retries=1, retry_delay=timedelta(seconds=3), timeout=3)
    assert run.state == "success", error(run)


# What the baseline is.


def test_questions_whose_template_is_empty_start_no_evaluation_by_the_service(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG(dag_id="empty", params={"file": ""}) as dag:
        PlatformEvaluationOperator(
            task_id="suite", questions="{{ params.file }}", retries=0, poll_interval=0.1
        )
    run = run_dag(dag)
    assert not platform_sandbox.control.state().changed("evaluations")
    assert run.state == "failed"


def test_evaluation_of_a_branch_by_the_service_is_no_baseline_of_production(
    night: Any, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.clear_answers()
    control.open_branch(BRANCH)
    question = night(questions=None).xcom("suite")["questions"][0]["question"]
    control.answer(question, sql=WRONG, branch=BRANCH, times=None)
    branch = night(questions=None, branch_name=BRANCH, no_regression=False, threshold=0.1)
    assert branch.state == "success"
    control.answer(question, sql=WRONG, times=None)
    assert night(questions=None).state == "failed", "production was right and is wrong"


# Secrets, sizes, retries.


def test_secret_in_a_value_is_not_in_the_result(night: Any, platform_sandbox: Sandbox) -> None:
    secret = platform_sandbox.management_token
    named = f"SELECT '{secret[:9]}' || '{secret[9:]}' AS k, "
    platform_sandbox.control.answer("total revenue", sql=f"{named} 1 AS n", times=None)
    run = night(questions=[{**SUITE[0], "sql": f"{named} 2 AS n"}])
    assert secret not in json.dumps(run.xcom("suite"))


@in_both_modes("night")
@needs_store
def test_retry_counts_the_first_answer_of_a_night_once(
    night: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.answer("total revenue", error="overloaded", times=None)
    run = night(retries=2, retry_delay=0)
    assert run.xcom("suite", "baseline")["firsts"] == {"orders": "P"}


@in_both_modes("night")
def test_answers_too_large_for_an_event_are_asked_once(
    night: Any, platform_sandbox: Sandbox
) -> None:
    long = f"{ORDERS} -- {'x' * 300_000}"
    platform_sandbox.control.answer("question", sql=long, times=None)
    run = night(questions=FIVE, parallel=20)
    assert run.xcom("suite")["counts"]["passed"] == 5
    assert set(asked(platform_sandbox).values()) == {1}


def test_baseline_of_many_long_queries_is_bounded(night: Any, platform_sandbox: Sandbox) -> None:
    long = f"{ORDERS} -- {'x' * 100_000}"
    questions = [{"name": f"q{n}", "question": f"long {n}", "sql": ORDERS} for n in range(12)]
    platform_sandbox.control.answer("long", sql=long, times=None)
    run = night(questions=questions, parallel=12)
    assert len(json.dumps(run.xcom("suite"))) < 2**19
    assert len(json.dumps(run.xcom("suite", "baseline"))) < 2**19


def test_evaluation_of_a_branch_by_the_service_needs_a_threshold(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.add_branch(BRANCH)
    control.answer("orders per month", sql=WRONG, branch=BRANCH, times=None)
    with pytest.raises(PlatformInputError, match="set threshold, or give questions"):
        PlatformEvaluationOperator(task_id="suite", branch_name=BRANCH)
    run = gated(run_dag, questions=None, threshold=0.9)
    assert run.xcom("gate.suite")["counts"]["passed"] < 4
    assert run.states["gate.merge"] == "upstream_failed"


@in_both_modes("night")
@pytest.mark.parametrize("status", [403, 404])
def test_refused_question_leaves_no_other_running(
    night: Any, platform_sandbox: Sandbox, status: int
) -> None:
    control = platform_sandbox.control
    control.set(pace=0.5)
    control.answer("question", sql=ORDERS, times=None)
    control.fault("status", status=status, api="chat", text="question 1", has_input=True)
    assert night(questions=FIVE, parallel=2, timeout=60).state == "failed"
    assert active(platform_sandbox) == []
