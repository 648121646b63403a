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
    wilson,
)

PASS = Asking(verdict="pass", sql="SELECT 1", expected_digest="d", tokens=100, build="build")
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
    assert one.measured == (stability is not None)


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


@pytest.mark.parametrize(
    ("change", "build", "cause"),
    [
        ({"sql": "SELECT 2"}, "build", "agent"),
        ({"sql": "SELECT   1 ;"}, "build", "unknown"),
        ({"sql": "SELECT 2"}, "other build", "model"),
        ({}, "other build", "model"),
        ({}, None, "unknown"),
        ({"rollups": ("orders.by_month",)}, "build", "rollup"),
        ({"expected_digest": "other"}, "build", "data"),
        ({"expected_digest": "other", "rollups": ("r",)}, "build", "rollup"),
        ({"sql": None, "verdict": "review"}, "build", "agent"),
    ],
)
def test_cause_is_the_first_difference_from_the_answer_before(
    change: dict[str, Any], build: str | None, cause: Cause
) -> None:
    failed = PASS.model_copy(update={"verdict": "fail", "build": build, **change})
    [one], _ = night(suite(1), lambda _: failed, PASSED)
    assert (one.cause, cause_of(one)) == (cause, cause)


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
        (Gate(no_regression=False), [FAIL, FAIL], True, "no_gate"),
        (Gate(no_regression=False), [PASS, PASS], False, "no_gate"),
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
    assert PASSED.after(lost, "green") == PASSED


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


@given(st.integers(0, 200), st.integers(1, 200))
def test_interval_contains_the_share(passed: int, total: int) -> None:
    passed = min(passed, total)
    low, high = wilson(passed, total)
    assert 0 <= low <= passed / total + 1e-12 <= high + 2e-12 <= 1 + 3e-12


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
        ([3], "must have name, question"),
        ("text", "must be a list"),
        ([{**ONE, "name": str(n)} for n in range(201)], "must be 1 to 200; these are 201"),
    ],
)
def test_suite_of_another_form_is_refused(questions: Any, words: str) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent: questions must") as raised:
        read_suite([questions], {})
    assert words in raised.value.message
