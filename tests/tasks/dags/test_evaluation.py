"""Nights of golden questions in DAG runs against the sandbox."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from tests.support.modes import in_both_modes
from tests.support.nights import BRANCH, ORDERS, SUITE, TOTAL, WRONG, asked, verdicts
from tests.support.releases import needs_store

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


def test_first_night_says_that_it_is_the_baseline(night: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(pace=0.15, answer_tokens=1000)
    result = night().xcom("suite")
    assert (result["status"], result["counts"]["passed"], result["share"]) == ("no_baseline", 2, 1)
    assert asked(platform_sandbox) == {"total revenue": 1, "number of orders": 1}
    assert (result["tokens"], result["interval"]) == (2000, [0.3424, 1.0])


def test_each_line_of_a_question_names_it_once(
    night: Any,
    platform_sandbox: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    platform_sandbox.control.fault("error_line", api="chat", has_input=True, count=None)
    night(deferrable=False)
    printed = caplog.text + capsys.readouterr().out
    lines = [line for line in printed.splitlines() if "total (production)" in line]
    assert any("total (production): error" in line for line in lines)
    assert [line for line in lines if line.count("total (production)") > 1] == []


def test_question_that_fails_each_time_is_a_regression_and_red(
    night: Any, platform_sandbox: Sandbox
) -> None:
    night()
    platform_sandbox.control.answer("total revenue", sql=WRONG, times=None)
    run = night()
    assert run.state == "failed"
    assert "1 passed before and fail now: total" in str(run.task("suite").error)
    assert verdicts(run)["total"] == ("fail", "regression", "agent")
    question = run.xcom("suite")["questions"][0]
    assert (question["sql"], question["sql_before"]) == (WRONG, TOTAL)
    assert "expected" in question["difference"]
    assert asked(platform_sandbox)["total revenue"] == 4


@pytest.mark.exhaustive
def test_agent_that_runs_no_query_is_reviewed_and_counts_as_failed(
    night: Any, platform_sandbox: Sandbox
) -> None:
    night()
    platform_sandbox.control.answer("total revenue", times=None)
    run = night()
    assert run.state == "failed"
    assert verdicts(run)["total"] == ("review", "regression", "agent")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "questions",
    [
        pytest.param([{**SUITE[0], "sql": "SELECT nothing FROM orders"}, SUITE[1]], id="truth"),
        pytest.param(SUITE, id="agent"),
    ],
)
def test_question_that_cannot_be_measured_is_never_red(
    night: Any, platform_sandbox: Sandbox, questions: list[Any]
) -> None:
    night()
    if questions is SUITE:
        platform_sandbox.control.answer("total revenue", error="overloaded", times=None)
    run = night(questions=questions, min_measured=0.5)
    assert (run.state, run.xcom("suite")["status"]) == ("success", "green")
    assert verdicts(run)["total"] == ("error", None, "service")
    times = 2 if questions is SUITE else 1  # broken expected SQL costs no answer
    assert asked(platform_sandbox)["total revenue"] == times
    run = night(questions=questions)
    assert run.state == "failed"
    said = str(run.task("suite").error)
    assert "1 of 2 questions were measured" in said
    reason = "" if questions is SUITE else "The expected SQL failed: "
    assert f"Not measured: total: {reason}" in said
    platform_sandbox.control.clear_answers()
    assert verdicts(night())["total"] == ("pass", "stable", None)


@in_both_modes("night")
@pytest.mark.exhaustive
@needs_store
def test_retry_asks_only_what_was_not_measured(night: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.answer("total revenue", error="overloaded", times=1)
    platform_sandbox.control.set(pace=0.15, answer_tokens=1000)
    run = night(retries=1, retry_delay=0)
    assert run.state == "success"
    assert asked(platform_sandbox) == {"total revenue": 2, "number of orders": 1}
    assert run.xcom("suite")["tokens"] >= 2000


@pytest.mark.exhaustive
def test_model_in_which_the_sql_before_is_wrong_is_the_cause(
    night: Any, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.add_branch(BRANCH)
    with PlatformHook() as hook:
        body = {"branchName": BRANCH, "enabled": True}
        hook.call("setBranchStagingEnvironment", deployment_id=1, body=body)
    control.set(branch_lacks_columns=["orders.amount"])
    control.answer("number of orders", sql="SELECT COUNT(amount) AS orders FROM orders", times=None)
    run = night(questions=SUITE[1:], branch_name=BRANCH)
    assert verdicts(run)["orders"] == ("error", "regression", "model")


def test_branch_that_breaks_an_expected_sql_fails_and_costs_no_answer(
    night: Any, platform_sandbox: Sandbox
) -> None:
    """Four of five questions pass, and production answers the fifth."""
    platform_sandbox.control.open_branch(BRANCH)
    platform_sandbox.control.set(branch_lacks_columns=["orders.amount"])
    others = [{**SUITE[1], "name": f"n{n}", "question": f"number of orders {n}"} for n in range(4)]
    run = night(questions=[SUITE[0], *others], branch_name=BRANCH)
    assert run.state == "failed"
    result = run.xcom("suite")
    assert result["status"] == "not_measured"
    assert "production answered 1 that the branch did not: total" in result["reason"]
    assert asked(platform_sandbox)["total revenue"] == 1, "only production is asked"


def test_expected_sql_without_a_value_is_not_measured_and_costs_no_answer(
    night: Any,
    platform_sandbox: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = [
        {"name": "sum", "question": "total revenue", "sql": f"{TOTAL} WHERE month = '1999-01'"},
        {"name": "rows", "question": "number of orders", "sql": "SELECT id FROM orders WHERE 0"},
    ]
    for one, sql in (("total revenue", nothing[0]["sql"]), ("number of orders", nothing[1]["sql"])):
        platform_sandbox.control.answer(one, sql=sql, times=None)
    run = night(questions=nothing, deferrable=False)
    printed = caplog.text + capsys.readouterr().out
    assert "sum (production): not asked. The expected SQL returns no row" in printed
    assert (run.state, run.xcom("suite")["status"]) == ("failed", "not_measured")
    said = str(run.task("suite").error)
    assert "Not measured: sum: The expected SQL returns no row" in said
    assert "If the expected SQL of a question is wrong, correct it and clear the task." in said
    assert "set allow_empty to true" in run.xcom("suite")["questions"][0]["difference"]
    assert asked(platform_sandbox) == {}
    assert not run.xcom("suite", "baseline").get("answers")
    allowed = [{**one, "allow_empty": True} for one in nothing]
    assert night(questions=allowed).xcom("suite")["counts"]["passed"] == 2


def test_mapped_suites_keep_their_baselines_at_other_places(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.answer("total revenue", sql=WRONG, times=None)  # never right
    control.answer("number of orders", sql=ORDERS, times=None)
    total, orders = ([{**one, "name": "the same"}] for one in SUITE)

    def night(suites: list[Any]) -> FinishedRun:
        with DAG(dag_id="mapped") as dag:
            PlatformEvaluationOperator.partial(
                task_id="suite", poll_interval=0.1, retries=0
            ).expand(questions=suites)
        return run_dag(dag)

    assert night([total, orders]).state == "success"
    control.answer("number of orders", sql=WRONG, times=None)
    run = night([orders, total])
    results = [run.xcom("suite", map_index=at) for at in (0, 1)]
    assert [one["status"] for one in results] == ["red", "green"]
    stabilities = [one["questions"][0]["stability"] for one in results]
    assert stabilities == ["regression", "stable"], "each by its own earlier answer"


@pytest.mark.exhaustive
def test_expected_rows_that_changed_are_the_cause(night: Any) -> None:
    night()
    changed = [{**SUITE[0], "sql": f"{TOTAL} WHERE status <> 'delivered'"}, SUITE[1]]
    assert verdicts(night(questions=changed))["total"] == ("fail", "regression", "data")


@pytest.mark.exhaustive
def test_pre_aggregation_that_changed_is_the_cause(
    night: Any, run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    """The expected rows stay the same, and a pre-aggregation without rows serves the agent."""
    control = platform_sandbox.control
    monthly = "SELECT month, SUM(amount{}) AS revenue FROM orders GROUP BY 1"
    sql = monthly.format(" + 0 * quantity")
    expected = [{"name": "monthly", "question": "monthly revenue", "sql": sql}]
    control.answer("monthly revenue", sql=monthly.format(""), times=None)
    assert night(questions=expected).xcom("suite")["share"] == 1
    control.set(default_api_scopes=["meta", "data", "graphql", "jobs"], jobs_outcome="no_rows")
    with DAG(dag_id="build") as dag:
        PlatformBuildPreAggregationsOperator(
            task_id="build", pre_aggregations=["orders.revenue_by_month"], poll_interval=0.05
        )
    assert run_dag(dag).state == "success"
    assert verdicts(night(questions=expected))["monthly"] == ("fail", "regression", "rollup")


@pytest.mark.exhaustive
def test_estimate_above_the_limit_sends_nothing(night: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(pace=0.15, answer_tokens=30_000)
    night()
    run = night(max_tokens=50_000)
    assert run.state == "failed"
    assert "2 questions, about 60,000 tokens, and the limit is 50,000" in str(
        run.task("suite").error
    )
    assert asked(platform_sandbox) == {"total revenue": 1, "number of orders": 1}


@in_both_modes("night")
@pytest.mark.exhaustive
def test_tokens_of_answers_before_a_used_up_quota_are_pushed(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_platform.resources.chat.call.EARLY_END", 60)
    platform_sandbox.control.set(token_quota=1000, answer_tokens=1000, pace=0.3)
    run = night(parallel=1)
    assert run.state == "failed"
    assert str(run.task("suite").error).startswith("AirflowFailException"), "a retry would ask on"
    assert run.xcom("suite", "total_usage")["totalTokens"] == 1000


@in_both_modes("night")
@needs_store
def test_askings_without_an_answer_count_and_end_the_asking(
    night: Any, platform_sandbox: Sandbox
) -> None:
    """The agent answers without a final record, over two tries."""
    control = platform_sandbox.control
    control.set(answer_tokens=30_000, pace=0.2)
    control.fault("no_final", api="chat", text="total revenue", has_input=True, count=None)
    run = night(parallel=1, retries=1, retry_delay=0, max_tokens=20_000)
    total = run.xcom("suite", "total_usage")["totalTokens"]
    result = run.xcom("suite")
    assert total == result["tokens"]
    assert total >= 30_000
    assert asked(platform_sandbox) == {"total revenue": 1}


@pytest.mark.exhaustive
def test_reports_are_written_and_sent(
    night: Any, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    night()
    platform_sandbox.control.answer("total revenue", sql=WRONG, times=None)
    run = night(output_path=str(tmp_path / "report"))
    assert [path.split("/")[-1] for path in run.xcom("suite")["reports"]] == [
        "questions.jsonl",
        "junit.xml",
        "evaluation.md",
    ]
    lines = (tmp_path / "report" / "questions.jsonl").read_text().splitlines()
    assert [json.loads(line)["stability"] for line in lines] == ["regression", "stable"]
    suite = ET.parse(tmp_path / "report" / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert "| total | fail | regression |" in (tmp_path / "report" / "evaluation.md").read_text()


@pytest.mark.exhaustive
def test_questions_come_from_a_file_in_the_form_of_the_service(night: Any, tmp_path: Path) -> None:
    path = tmp_path / "eval_questions.yml"
    path.write_text(
        "space: auto\neval_questions:\n"
        f"  - {{name: total, question: total revenue, sql: '{TOTAL}'}}\n"
        "  - {name: orders, question: number of orders, certifiedQuery: orders}\n"
    )
    run = night(questions=str(path), certified_queries={"orders": ORDERS})
    assert run.xcom("suite")["counts"]["passed"] == 2


@pytest.mark.parametrize("questions", [[], [{"name": "a", "question": "b"}], "[]"])
def test_suite_that_is_none_is_refused_when_the_dag_is_parsed(questions: Any) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent: questions must"):
        PlatformEvaluationOperator(task_id="suite", questions=questions)


def test_production_beside_itself_is_refused_before_any_question(
    night: Any, platform_sandbox: Sandbox
) -> None:
    run = night(branch_name="main")
    assert "this is the production branch" in str(run.task("suite").error)
    assert asked(platform_sandbox) == {}


def test_branch_that_answers_worse_blocks_its_merge(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.set(build_delay=0.1, build_seconds=0.2, pace=0.01)
    control.add_branch(BRANCH)
    control.answer("total revenue", sql=TOTAL, times=None)
    control.answer("number of orders", sql=WRONG, times=None)  # wrong on both sides
    control.answer("total revenue", sql=WRONG, branch=BRANCH, times=None)
    soon: dict[str, Any] = {"poll_interval": 0.05, "default_args": {"retries": 0}}
    with DAG("evaluated", default_args={"retries": 0}) as dag, branch_gate(BRANCH, **soon) as gate:
        PlatformEvaluationOperator(
            task_id="suite", questions=SUITE, branch_name=gate.branch_name, poll_interval=0.1
        )
    run = run_dag(dag)
    assert run.states["branch_gate.merge"] == "upstream_failed"
    result = run.xcom("branch_gate.suite")
    assert [one["stability"] for one in result["questions"]] == ["regression", "stable"]


@pytest.mark.exhaustive
def test_evaluation_by_the_service_reads_all_pages(night: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(evaluation_pace=0.1, page_size=1)
    platform_sandbox.control.clear_answers()
    first = night(questions=None).xcom("suite")
    assert (first["status"], first["counts"]["total"]) == ("no_baseline", 4)
    asked_text = first["questions"][0]["question"]
    platform_sandbox.control.answer(asked_text, sql=WRONG, times=None)
    run = night(questions=None)
    assert run.state == "failed"
    assert run.xcom("suite")["counts"]["regressions"] == 1
    assert len(platform_sandbox.control.state().changed("evaluations")) == 2


def test_results_of_the_service_that_are_late_are_read_again(
    night: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(evaluation_results_delay=2.5)
    assert night(questions=None).xcom("suite")["counts"]["total"] == 4
    assert len(platform_sandbox.control.state().changed("evaluations")) == 1


@pytest.mark.exhaustive
@needs_store
def test_retry_after_results_that_did_not_come_starts_no_second_evaluation(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_platform.resources.evaluations.service.RESULTS_GRACE", 0)
    platform_sandbox.control.set(evaluation_results_delay=1000)
    run = night(questions=None, retries=2, retry_delay=0)
    assert "returned no results. A retry reads the results again" in str(run.task("suite").error)
    assert len(platform_sandbox.control.state().changed("evaluations")) == 1


@pytest.mark.exhaustive
@needs_store
def test_retry_after_a_failed_evaluation_without_results_starts_another(
    night: Any, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.fault("odd_field", path="/evaluations/1$", field="status", value="failed", count=None)
    control.fault("odd_field", path="/evaluations/1/results$", field="items", value=[], count=None)
    run = night(questions=None, retries=1, retry_delay=0)
    assert run.state == "success", run.task("suite").error
    assert len(control.state().changed("evaluations")) == 2


@pytest.mark.exhaustive
def test_list_of_results_without_page_info_is_not_measured(
    night: Any, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_platform.resources.evaluations.service.RESULTS_GRACE", 0)
    platform_sandbox.control.fault(
        "odd_field", path="/results$", field="pageInfo", value=None, count=None
    )
    run = night(questions=None)
    assert run.xcom("suite")["status"] == "not_measured"
    assert "has no pageInfo, so it may be cut" in str(run.task("suite").error)


def test_results_of_the_service_that_name_no_question_are_counted_in_a_warning(
    night: Any,
    platform_sandbox: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    items = [{"verdict": "pass"}, {"verdict": "pass", "questionTextSnapshot": "total revenue"}]
    platform_sandbox.control.fault(
        "odd_field", path="/results$", field="items", value=items, count=None
    )
    night(questions=None, deferrable=False)
    logged = caplog.text + capsys.readouterr().out
    assert "The service named no question of 1 results." in logged


def test_tenant_without_evaluations_is_named(night: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(evaluations=False)
    run = night(questions=None)
    assert "this tenant has no API for evaluations" in str(run.task("suite").error)
    assert asked(platform_sandbox) == {}


@pytest.mark.exhaustive
def test_lost_start_of_an_evaluation_by_the_service_is_not_repeated(
    night: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault("lost_response", method="POST", path="/evaluations$")
    run = night(questions=None, retries=2, retry_delay=0)
    assert "a second one would be billed" in str(run.task("suite").error)
    assert len(platform_sandbox.control.state().changed("evaluations")) == 1


@pytest.mark.exhaustive
def test_notifier_sends_the_table_of_a_red_night(night: Any, platform_sandbox: Sandbox) -> None:
    sent: list[str] = []
    notifier = PlatformAnswerNotifier(
        lambda answer: sent.append(answer["markdown"]), task_id="suite"
    )
    night()
    platform_sandbox.control.answer("total revenue", sql=WRONG, times=None)
    assert night(on_failure_callback=notifier).state == "failed"
    [markdown] = sent
    assert "| total | fail | regression | agent |" in markdown
