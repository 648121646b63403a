"""Answers that a test plans: other SQL, no SQL, an error; per branch and for some askings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox import SandboxControlError
from tests.support.raw_client import MESSAGE, answer, chat_id, ids, results

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

QUESTION = "revenue by country"
ONE, TWO = "SELECT 1 AS one", "SELECT 2 AS two"


def sql_of(platform: Platform, question: str = QUESTION, **body: Any) -> list[str]:
    return [one["sqlQuery"] for one in results(platform.ask(question, **body))]


def test_agent_runs_the_planned_sql_once_and_then_follows_its_rules(platform: Platform) -> None:
    usual = sql_of(platform)
    platform.control.answer(QUESTION, sql=ONE)
    (result,) = results(platform.ask(QUESTION))
    assert (result["sqlQuery"], result["data"]) == (ONE, [[1]])
    assert sql_of(platform) == usual
    assert platform.control.state().asked == {QUESTION: 3}


def test_newest_planned_answer_applies_until_its_askings_are_used_up(platform: Platform) -> None:
    usual = sql_of(platform)
    platform.control.answer(QUESTION, sql=TWO, times=None)
    platform.control.answer(QUESTION, sql=ONE)
    platform.control.answer(QUESTION, sql=[ONE, TWO], times=2)
    asked = [sql_of(platform) for _ in range(5)]
    assert asked == [[ONE, TWO], [ONE, TWO], [ONE], [TWO], [TWO]]
    platform.control.answer(QUESTION, sql=ONE, times=None)
    assert sql_of(platform) == [ONE]
    platform.control.clear_answers()
    assert sql_of(platform) == usual


def test_planned_answer_is_for_questions_that_contain_its_text_in_any_case(
    platform: Platform,
) -> None:
    platform.control.answer("by COUNTRY", sql=ONE, times=None)
    assert sql_of(platform, "Revenue by country, please") == [ONE]
    assert sql_of(platform, "revenue by segment") != [ONE]


def test_planned_answer_is_for_its_branch_only(platform: Platform) -> None:
    platform.control.answer(QUESTION, sql=ONE, branch="dev", times=None)
    platform.control.answer(QUESTION, sql=TWO, branch="main", times=None)
    assert sql_of(platform, activeBranchName="dev", isDefaultBranch=False) == [ONE]
    assert sql_of(platform, activeBranchName="main", isDefaultBranch=True) == [TWO]
    assert sql_of(platform) == [TWO]


def test_planned_answer_without_sql_is_an_apology_or_the_given_text(platform: Platform) -> None:
    platform.control.answer(QUESTION, text="It grew.")
    platform.control.answer(QUESTION, sql=None)
    apology, text = platform.ask(QUESTION), platform.ask(QUESTION)
    assert not results(apology)
    assert not results(text)
    assert (answer(apology) or "").startswith("I am sorry")
    assert answer(text) == "It grew."


def test_planned_sql_that_fails_gives_a_tool_error(platform: Platform) -> None:
    platform.control.answer(QUESTION, sql="SELECT id FROM nowhere")
    stream = platform.ask(QUESTION)
    assert "no such table" in results(stream)[0]["error"]
    assert "I am sorry" in (answer(stream) or "")


def test_planned_error_ends_the_stream_and_fails_the_run(platform: Platform) -> None:
    platform.control.answer(QUESTION, error="the model is overloaded")
    stream = platform.ask(QUESTION)
    assert stream[-2] == {"error": "the model is overloaded"}
    assert stream[-1]["usage"]["totalTokens"] == 0
    assert platform.control.state().runs[0].status == "failed"
    assert ids(platform.ask(QUESTION))[-1] == "__usage__"


def test_message_that_resumes_a_run_is_no_further_asking(platform: Platform) -> None:
    platform.control.answer(QUESTION, sql=ONE)
    platform.control.fault("suspend", after=2)
    thread = chat_id(platform.ask(QUESTION, messageId=MESSAGE))
    assert sql_of(platform, chatId=thread, messageId=MESSAGE) == [ONE]
    state = platform.control.state()
    assert state.asked == {QUESTION: 1}
    assert [message.outcome for message in state.messages] == ["started", "resumed"]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"times": 0}, "times must be at least 1"),
        ({"error": "no", "sql": ONE}, "error excludes sql and text"),
    ],
)
def test_bad_plan_is_refused(platform: Platform, plan: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        platform.control.answer(QUESTION, **plan)
    with pytest.raises(SandboxControlError, match=message):
        platform.control._call("answer", {"question": QUESTION, **plan})
