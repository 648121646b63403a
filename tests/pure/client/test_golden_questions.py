"""What a night of golden questions means, without I/O."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.resources.evaluations.golden_questions import (
    Asking,
    Baseline,
    Cause,
    Gate,
    Key,
    Question,
    Side,
    cause_of,
    counts,
    estimate,
    falling,
    judge,
    next_keys,
    read_suite,
    sql_digest,
    wilson,
)

PASS = Asking(
    verdict="pass",
    sql="SELECT 1",
    sql_digest=sql_digest("SELECT 1"),
    expected_digest="d",
    tokens=100,
    build="build",
)
FAIL = Asking(verdict="fail", reason="value mismatch", sql="SELECT 2", expected_digest="d")
LOST = Asking(verdict="error", measured=False, reason="agent error")


def suite(size: int) -> list[Question]:
    return [Question(f"q{n}", f"question {n}", f"SELECT {n}") for n in range(size)]


class Asked(NamedTuple):
    """One asking of a question: on which side, and for which time."""

    name: str
    side: Side = "production"
    time: int = 1


def night(
    questions: list[Question],
    answer: Any,
    baseline: Baseline,
    *,
    confirm: int = 2,
    on_branch: bool = False,
) -> tuple[list[Any], dict[Asked, Asking]]:
    """Ask until nothing is left to ask; `answer(asked)` is the outcome of an asking."""
    askings: defaultdict[Key, list[Asking]] = defaultdict(list)
    every: dict[Asked, Asking] = {}
    while keys := next_keys(questions, askings, baseline, on_branch=on_branch, confirm=confirm):
        assert len(keys) == len(set(keys)), "no asking is repeated"
        for key in keys:
            asked = Asked(key.name, key.side, len(askings[key]) + 1)
            every[asked] = answer(asked)
            askings[key].append(every[asked])
    return judge(questions, askings, baseline, on_branch=on_branch, confirm=confirm), every


def before(**answers: Asking) -> Baseline:
    """A baseline with these answers."""
    return Baseline(answers=answers)


PASSED = before(q0=PASS)
FAILED = before(q0=FAIL)


@pytest.mark.parametrize(
    ("answers", "before", "stability", "asked"),
    [
        ([PASS], PASSED, "stable", 1),
        ([FAIL, PASS], PASSED, "flaky", 2),
        ([FAIL, FAIL, PASS], PASSED, "flaky", 3),
        ([FAIL, FAIL, FAIL], PASSED, "regression", 3),
        ([FAIL, LOST], PASSED, None, 2),
        ([FAIL, FAIL, LOST], PASSED, None, 3),
        ([LOST], PASSED, None, 1),
        ([FAIL], FAILED, "stable", 1),
        ([PASS], FAILED, "stable", 1),
        ([FAIL], Baseline(answers={}), "new_failure", 1),
        ([FAIL], Baseline(), "new_failure", 1),
        ([PASS], Baseline(), "stable", 1),
    ],
)
def test_only_a_question_that_passed_before_is_asked_again(
    answers: list[Asking], before: Baseline, stability: str | None, asked: int
) -> None:
    [one], askings = night(suite(1), lambda key: answers[key.time - 1], before)
    assert (one.stability, len(askings)) == (stability, asked)
    assert one.measured == (answers[0] is not LOST), "a wrong answer stays measured"


def test_question_whose_confirmation_a_limit_ended_is_no_regression() -> None:
    [one] = judge(suite(1), {Key("q0"): [FAIL] * 2}, PASSED, on_branch=False, confirm=2)
    assert (one.stability, one.measured) == (None, True)


def test_branch_is_compared_with_production_and_not_with_the_baseline() -> None:
    def answer(key: Asked) -> Asking:
        wrong_on = {"q0": "branch", "q1": "both", "q2": "production", "q3": "none"}[key.name]
        lost = key.name == "q4" and key.side == "production"
        return LOST if lost else FAIL if wrong_on in (key.side, "both") else PASS

    def answer_all(key: Asked) -> Asking:
        if key.name == "q4":
            return LOST if key.side == "production" else FAIL
        return answer(key)

    judged, askings = night(suite(5), answer_all, Baseline(), on_branch=True)
    assert [one.stability for one in judged] == ["regression", "stable", "stable", "stable", None]
    assert {key for key in askings if key.time > 1} == {
        Asked("q0", "branch", 2),
        Asked("q0", "branch", 3),
        Asked("q1", "production", 2),
        Asked("q1", "production", 3),
    }


OTHER_SQL = {"sql_digest": sql_digest("SELECT 2")}


@pytest.mark.parametrize(
    ("change", "today", "cause"),
    [
        (OTHER_SQL, {}, "agent"),
        (OTHER_SQL, {"build": "other", "expected_digest": "other"}, "agent"),
        ({}, {}, "unclear"),
        (OTHER_SQL, {"verdict": "fail", "build": "other"}, "model"),
        (OTHER_SQL, {"verdict": "error", "build": "other"}, "model"),
        (OTHER_SQL, {"verdict": "fail", "rollups": ("orders.by_month",)}, "rollup"),
        (OTHER_SQL, {"verdict": "fail", "expected_digest": "other"}, "data"),
        (OTHER_SQL, {"verdict": "fail", "expected_digest": "other", "build": "x"}, "unclear"),
        (OTHER_SQL, {"verdict": "fail", "build": None}, "unknown"),
        (OTHER_SQL, {"verdict": "fail"}, "unknown"),
        (OTHER_SQL, None, "agent"),
        ({"build": "other"}, None, "model"),
        ({"build": "other", **OTHER_SQL}, None, "unclear"),
        ({"sql_digest": None, "verdict": "review"}, None, "agent"),
        ({}, None, "unknown"),
    ],
)
def test_cause_follows_from_the_sql_before_on_todays_build(
    change: dict[str, Any], today: dict[str, Any] | None, cause: Cause
) -> None:
    """`today` is the result of the SQL before; None if it could not run again."""
    failed = PASS.model_copy(update={"verdict": "fail", **change})
    again = {} if today is None else {"q0": PASS.model_copy(update=today)}
    [one] = judge(
        suite(1), {Key("q0"): [failed] * 3}, PASSED, on_branch=False, confirm=2, before_today=again
    )
    assert (one.stability, one.cause, cause_of(one)) == ("regression", cause, cause)


@pytest.mark.parametrize("sql", ["SELECT 1", " SELECT   1 ;"])
def test_spaces_make_no_other_sql(sql: str) -> None:
    assert sql_digest(sql) == PASS.sql_digest


def test_sql_that_was_cut_is_not_whole() -> None:
    assert PASS.whole_sql == "SELECT 1"
    assert PASS.model_copy(update={"sql": "SELECT…"}).whole_sql is None


def test_cause_of_what_was_not_measured_is_the_service() -> None:
    [one], _ = night(suite(1), lambda _: LOST, PASSED)
    assert one.cause == "service"


@pytest.mark.parametrize(
    ("gate", "answers", "has_before", "status"),
    [
        (Gate(), [PASS, PASS], True, "green"),
        (Gate(), [PASS, PASS], False, "no_baseline"),
        (Gate(threshold=0.5), [PASS, FAIL], False, "green"),
        (Gate(threshold=0.6), [PASS, FAIL], False, "red"),
        (Gate(no_regression=False), [FAIL, FAIL], True, "green"),
        (Gate(no_regression=False), [PASS, PASS], False, "green"),
        (Gate(), [PASS, LOST], True, "not_measured"),
        (Gate(min_measured=0.5), [PASS, LOST], True, "green"),
        (Gate(min_measured=0), [LOST, LOST], True, "not_measured"),
        (Gate(threshold=0), [LOST, LOST], True, "not_measured"),
        (Gate(threshold=1, min_measured=0.5), [PASS, LOST], True, "green"),
    ],
)
def test_gate_is_never_green_without_a_measurement(
    gate: Gate, answers: list[Asking], has_before: bool, status: str
) -> None:
    known = before(q0=FAIL, q1=FAIL) if has_before else Baseline()
    judged, _ = night(suite(2), lambda key: answers[int(key.name[1:])], known)
    assert gate.status(judged)[0] == status


@pytest.mark.parametrize("no_regression", [True, False])
@pytest.mark.parametrize("production", [PASS, FAIL])
def test_question_that_only_production_answered_is_not_measured(
    no_regression: bool, production: Asking
) -> None:
    """The expected SQL fails on the branch, or the agent ends with an error there."""

    def answer(asked: Asked) -> Asking:
        lost = asked.name == "q0" and asked.side == "branch"
        return LOST if lost else production if asked.name == "q0" else PASS

    judged, _ = night(suite(5), answer, Baseline(), on_branch=True)
    gate = Gate(threshold=0.5, no_regression=no_regression)
    status, reason = gate.status(judged)
    assert (status, judged[0].cause) == ("not_measured", "service")
    assert reason == "production answered 1 that the branch did not: q0"


def test_question_that_neither_side_answered_counts_by_min_measured_alone() -> None:
    lost_on_both, _ = night(
        suite(5), lambda asked: LOST if asked.name == "q0" else PASS, Baseline(), on_branch=True
    )
    assert Gate().status(lost_on_both)[0] == "green"


def test_wrong_answer_counts_if_its_confirmation_was_lost() -> None:
    def answer(asked: Asked) -> Asking:
        return PASS if asked.name != "q0" else FAIL if asked.time == 1 else LOST

    judged, _ = night(suite(5), answer, before(**{f"q{n}": PASS for n in range(5)}))
    assert Gate(threshold=0.9, no_regression=False).status(judged)[0] == "red"
    assert Gate(threshold=0.5).status(judged)[0] == "not_measured"
    assert judged[0].final == FAIL
    assert counts(judged)["measured"] == 5


def test_branch_is_open_if_production_may_be_wrong_by_chance() -> None:
    """Production was asked again, and this met an error."""

    def answer(asked: Asked) -> Asking:
        return LOST if asked.time > 1 else FAIL if asked.name == "q0" else PASS

    judged, _ = night(suite(5), answer, Baseline(), on_branch=True)
    assert Gate().status(judged)[0] == "not_measured"


def kept(questions: list[Question], owner: str = "a", **options: Any) -> tuple[Baseline, str]:
    """What of the baseline of `suite(2)` of owner `a` belongs to these questions, and the
    sentence."""
    judged, _ = night(suite(2), lambda _: PASS, Baseline())
    own, _ = Baseline().of_suite(suite(2), "a", is_dated=True)
    stored = Baseline.from_json(own.after(judged, "green").to_json())
    found, said = stored.of_suite(questions, owner, **options)
    return found, said or ""


def test_baseline_of_the_same_suite_is_kept() -> None:
    found, said = kept(suite(2))
    assert (set(found.answers), found.firsts, said) == ({"q0", "q1"}, {"q0": "P", "q1": "P"}, "")


def test_baseline_of_another_owner_is_none() -> None:
    found, said = kept(suite(2), owner="b")
    assert (found.answers, found.firsts, found.owner) == ({}, {}, "b")
    assert "another connection, deployment, agent or user" in said


def test_baseline_of_another_suite_with_the_same_names_is_none() -> None:
    questions = [suite(2)[0], Question("q1", "orders of a customer", "SELECT 1")]
    found, said = kept(questions)
    assert (set(found.answers), set(found.firsts)) == ({"q0"}, {"q0"})
    assert "asked other questions under these names, so they have no baseline: q1." in said


def test_question_with_another_date_and_one_that_is_left_out_keep_their_baseline() -> None:
    found, said = kept([Question("q0", "question 7", "SELECT 28")])
    assert (set(found.answers), said) == ({"q0", "q1"}, "")


answers = st.sampled_from([PASS, FAIL, LOST])


@given(
    st.dictionaries(st.tuples(st.integers(0, 4), st.integers(1, 4)), answers),
    st.lists(st.sampled_from([PASS, FAIL, None]), min_size=5, max_size=5),
    st.integers(0, 3),
    st.booleans(),
)
def test_no_question_is_asked_more_often_than_it_may_be(
    planned: dict[tuple[int, int], Asking],
    firsts: list[Asking | None],
    confirm: int,
    on_branch: bool,
) -> None:
    known = {f"q{n}": one for n, one in enumerate(firsts) if one is not None}
    judged, askings = night(
        suite(5),
        lambda key: planned.get((int(key.name[1:]), key.time), PASS),
        Baseline(answers=known),
        confirm=confirm,
        on_branch=on_branch,
    )
    for one in judged:
        assert 1 <= len(one.askings) <= 1 + confirm
        assert sum(asking.passed for asking in one.askings) <= 1, "a pass ends the asking"
        if one.stability == "regression":
            assert len(one.askings) == 1 + confirm
            assert all(asking.failed for asking in one.askings)
    status, _ = Gate().status(judged)
    assert (status == "red") <= any(one.stability == "regression" for one in judged)
    assert sum(key.time == 1 for key in askings) == (10 if on_branch else 5)


def test_year_of_nights_with_chance_failures_has_few_red_ones() -> None:
    """40 questions that each fail in one asking of twenty: 365 nights, the same on each run."""
    chance = random.Random(20261125)
    questions, baseline = suite(40), Baseline()
    red, alone = 0, 0
    for _ in range(365):
        judged, askings = night(
            questions, lambda _: FAIL if chance.random() < 0.05 else PASS, baseline
        )
        status, _ = Gate().status(
            judged,
        )
        red += status == "red"
        alone += any(not asking.passed for key, asking in askings.items() if key.time == 1)
        baseline = baseline.after(judged, status)
    assert red <= 6
    assert alone > 280, "a gate that asks once would be red in most nights"


def test_red_night_does_not_become_the_baseline() -> None:
    questions = suite(1)
    first, _ = night(questions, lambda _: PASS, Baseline())
    baseline = Baseline().after(first, "no_baseline")
    for _ in range(3):
        worse, _ = night(questions, lambda _: FAIL, baseline)
        assert worse[0].stability == "regression"
        baseline = baseline.after(worse, "red")
    assert baseline.answers["q0"] == PASS
    assert baseline.firsts["q0"] == "PFFF"
    assert Baseline.from_json(baseline.to_json()) == baseline


def test_question_that_was_not_measured_keeps_its_answer_before() -> None:
    lost, _ = night(suite(1), lambda _: LOST, PASSED)
    assert PASSED.after(lost, "green").answers == PASSED.answers


@pytest.mark.parametrize("stored", [None, 3, [], {}, {"answers": 1}, {"answers": {"q": 1}}])
def test_anything_else_is_no_baseline(stored: Any) -> None:
    assert Baseline.from_json(stored) == Baseline()


def test_question_that_passes_less_often_than_before_is_named() -> None:
    judged, _ = night(suite(2), lambda _: PASS, Baseline())
    firsts = {"q0": "PPPPPPPFFPFFFF", "q1": "PPFPPPPPPPFPPP"}
    assert falling(judged, Baseline(firsts=firsts)) == ["q0"]


def test_interval_of_a_share_is_that_of_wilson() -> None:
    low, high = wilson(38, 40)
    assert (f"{low:.1%}", f"{high:.1%}") == ("83.5%", "98.6%")
    assert wilson(0, 0) == (0.0, 1.0)


def test_estimate_counts_unknown_questions_as_the_others_on_average() -> None:
    assert estimate(suite(4), PASSED, on_branch=False) == 400
    assert estimate(suite(4), PASSED, on_branch=True) == 800
    assert estimate(suite(4), FAILED, on_branch=False) is None


def test_counts_leave_out_what_was_not_measured() -> None:
    given = [PASS, FAIL, LOST]
    judged, _ = night(suite(3), lambda key: given[int(key.name[1:])], Baseline())
    assert counts(judged) == {
        "total": 3,
        "measured": 2,
        "passed": 1,
        "flaky": 0,
        "regressions": 0,
        "new_failures": 1,
    }


ONE = {"name": "a", "question": "b", "sql": "SELECT 1"}


def test_suite_has_the_form_of_the_service() -> None:
    named = {"name": "c", "question": "d", "certifiedQuery": "monthly"}
    read = read_suite([{"eval_questions": [ONE], "space": "x"}, [named]], {"monthly": "SELECT 2"})
    assert read == [Question("a", "b", "SELECT 1"), Question("c", "d", "SELECT 2")]


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ([], "must be 1 to 200; these are 0"),
        ([ONE, ONE], "must have different names; used twice: a"),
        ([{**ONE, "certifiedQuery": "x"}], "either sql or certifiedQuery"),
        ([{"name": "a", "question": "b"}], "either sql or certifiedQuery"),
        ([{"name": "a", "question": "b", "certifiedQuery": "x"}], "known certified queries"),
        ([{"question": "b", "sql": "c"}], "must have name, question"),
        ([{**ONE, "sql": " "}], "each a non-empty string; question a has not"),
        ([{**ONE, "question": "None"}], "each a non-empty string; question a has not"),
        ([{**ONE, "allow_empty": "yes"}], "true or false in allow_empty; question a has not"),
        ([3], "must have name, question"),
        ("text", "must be a list"),
        ([{**ONE, "name": str(n)} for n in range(201)], "must be 1 to 200; these are 201"),
    ],
)
def test_suite_of_another_form_is_refused(questions: Any, words: str) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent: questions must") as raised:
        read_suite([questions], {})
    assert words in raised.value.message
