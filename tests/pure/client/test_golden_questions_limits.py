"""Attacks on the rules of a night, and on the size of what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import ChatQuotaError, PlatformInputError
from airflow_provider_platform.operators.evaluation import _bounded, _junit, _of_service
from airflow_provider_platform.resources.evaluations.golden_questions import (
    Asking,
    Baseline,
    Gate,
    Judged,
    Key,
    judge,
    sql_digest,
)
from airflow_provider_platform.resources.evaluations.run import (
    MAX_DIFFERENCE,
    MAX_SQL,
    MAX_STATE_BYTES,
    EvaluationRunKind,
    _packed,
    _State,
    _unpacked,
)
from airflow_provider_platform.resources.run_kind import RunAccepted, RunEnvironment

STORE_BYTES = 65_535
"""`[state_store] max_value_storage_bytes` of Airflow."""
WORDS = ("revenue", "orders", "country", "month", "status", "category", "customer", "product")
PASS = Asking(verdict="pass", sql="SELECT 1", expected_digest="d", tokens=100)
FAIL = Asking(verdict="fail", reason="value mismatch", sql="SELECT 2", expected_digest="d")


def judged(passed: int, total: int, unmeasured: int = 0) -> list[Judged]:
    """Judged questions of which so many passed."""
    kinds = [(PASS, "stable")] * passed + [(FAIL, "new_failure")] * (total - passed)
    found: list[Any] = [
        Judged(f"q{n}", "q", "s", (asking,), None, stability)  # type: ignore[arg-type]
        for n, (asking, stability) in enumerate(kinds)
    ]
    return found + [Judged(f"u{n}", "q", "s", (), None, None, "service") for n in range(unmeasured)]


@given(percent=st.integers(1, 100), hundreds=st.integers(1, 2))
def test_share_that_is_exactly_the_threshold_is_green(percent: int, hundreds: int) -> None:
    night = judged(percent * hundreds, 100 * hundreds)
    gate = Gate(threshold=percent / 100, no_regression=False)
    assert gate.status(night)[0] == "green"


@given(percent=st.integers(1, 100))
def test_share_that_is_exactly_min_measured_is_measured(percent: int) -> None:
    night = judged(percent, percent, unmeasured=100 - percent)
    gate = Gate(min_measured=percent / 100)
    assert gate.status(night)[0] != "not_measured"


def _sql(rnd: random.Random) -> str:
    one, two, three = rnd.sample(WORDS, 3)
    return (
        f"SELECT {one}, SUM({two}) AS {two}, COUNT(DISTINCT {three}) AS n FROM orders "
        f"WHERE created_at >= '2025-{rnd.randrange(1, 13):02}-01' GROUP BY 1 LIMIT 1000"
    )


@pytest.mark.parametrize(("confirm", "failing"), [(0, 0.0), (2, 0.5), (3, 1.0)])
def test_record_of_a_whole_suite_on_a_branch_fits_into_the_store(
    confirm: int, failing: float
) -> None:
    rnd = random.Random(1)
    askings: dict[Key, list[Asking]] = {}
    for number in range(200):
        digest = f"{rnd.getrandbits(64):016x}"
        again = confirm if rnd.random() < failing else 0
        name = f"{rnd.choice(WORDS)} by {rnd.choice(WORDS)} {number}"
        for key, times in ((Key(name), 1), (Key(name, "branch"), 1 + again)):
            askings[key] = [
                Asking(
                    verdict="fail" if again else "pass",
                    reason="value mismatch" if again else None,
                    difference="; ".join(
                        f"revenue of country={rnd.choice(WORDS)} is {rnd.random()}, "
                        f"expected {rnd.random()}"
                        for _ in range(5)
                    )
                    if again
                    else None,
                    sql=_sql(rnd),
                    expected_digest=digest,
                    build=f"{rnd.getrandbits(4):040x}",
                    rows=rnd.randrange(100),
                    tokens=rnd.randrange(100_000),
                    seconds=round(rnd.random() * 100, 1),
                    chat_id=str(uuid.UUID(int=rnd.getrandbits(128))),
                )
                for _ in range(times)
            ]
    packed = _packed(askings)
    assert len(json.dumps(packed)) < MAX_STATE_BYTES + 10_000 < STORE_BYTES
    assert {key: len(asked) for key, asked in _unpacked(packed).items()} == {
        key: len(asked) for key, asked in askings.items()
    }


@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_questions_in_xcom_are_bounded_in_every_language(character: str) -> None:
    text = character * 5000
    asking = Asking(verdict="fail", sql=text, difference=text[:500], reason="value mismatch")
    one = Judged(text, text, text, (asking,), asking, "regression", "agent")
    assert len(json.dumps(_bounded([one.to_json()] * 200)).encode()) <= 256 * 1024


def test_baseline_of_long_queries_is_bounded() -> None:
    long = {"sql": "x" * MAX_SQL, "difference": "x" * MAX_DIFFERENCE, "chat_id": "x" * 36}
    asking = FAIL.model_copy(update=long)
    night = [Judged(f"q{n}", "q", "s", (asking,), None, "stable", None) for n in range(200)]
    stored = Baseline().after(night, "green").to_json()
    assert len(json.dumps(stored).encode()) <= 256 * 1024


@pytest.mark.parametrize("text", ["a\x08", "a\x00", "a\ud800"])
def test_report_for_build_servers_is_xml_whatever_the_texts_are(text: str) -> None:
    asking = Asking(verdict="fail", sql=text, difference=text, reason="value mismatch")
    one = Judged(text, "q", text, (asking,), None, "new_failure", "unknown")
    ET.fromstring(_junit("suite", [one.to_json()]).encode("utf-8", "replace"))


def test_report_on_verdicts_that_the_service_does_not_document_is_xml_and_short() -> None:
    words = ["time\x08out", "x" * 300_000, None, 7]
    suite, askings, unnamed = _of_service([{"verdict": word} for word in words])
    assert unnamed == 4
    assert {one.reason for [one] in askings.values()} == {"error"}
    judged = judge(suite, askings, Baseline(), on_branch=False, confirm=0)
    ET.fromstring(_junit("suite", [one.to_json() for one in judged]))


def test_two_questions_of_the_service_with_one_text_are_refused() -> None:
    items = [{"verdict": "pass", "questionTextSnapshot": text} for text in ("a", "b", "a")]
    with pytest.raises(PlatformInputError, match=r"several questions have the same one: a\."):
        _of_service(items)


def test_tokens_count_whatever_the_outcome_and_those_not_reported_are_named() -> None:
    state = _State({"tokens": None, "submitted_at": 0.0})
    for usage in ({"totalTokens": 1000}, None, {"totalTokens": 200}, {"models": []}):
        state.count(usage)
    outcome = state.outcome()
    assert (outcome["tokens"], outcome["uncounted"]) == (1200, 2)


def test_tokens_of_an_error_that_ends_the_task_are_counted_and_recorded() -> None:
    recorded: list[int] = []

    async def notify(event: RunAccepted) -> None:
        recorded.append(event.ids["tokens"])

    api: Any = SimpleNamespace(notify=notify)
    state = _State({"tokens": 200, "submitted_at": 0.0, "agent_id": None})
    error = ChatQuotaError("The tokens are used up.", usage={"totalTokens": 1000})
    with pytest.raises(ChatQuotaError):
        asyncio.run(
            EvaluationRunKind()._failed(api, RunEnvironment(0.0), state, Key("total"), error)
        )
    assert recorded == [1200]


def test_sql_of_a_large_suite_is_whole_in_the_record() -> None:
    """The two sides of 200 questions, each with SQL of nearly the documented bound."""
    rnd = random.Random(2)
    askings: dict[Key, list[Asking]] = {}
    for number in range(200):
        sql = " UNION ALL ".join(_sql(rnd) for _ in range(5))[:MAX_SQL]
        for side in ("production", "branch"):
            asking = PASS.model_copy(update={"sql": sql, "sql_digest": sql_digest(sql)})
            askings[Key(f"q{number}", side)] = [asking]  # type: ignore[arg-type]
    packed = _packed(askings)
    assert len(json.dumps(packed)) <= MAX_STATE_BYTES + 2
    whole = [asked[0].whole_sql is not None for asked in _unpacked(packed).values()]
    assert all(whole)


def test_longest_sql_is_cut_where_the_record_would_not_fit_and_keeps_its_digest() -> None:
    rnd = random.Random(3)
    askings: dict[Key, list[Asking]] = {}
    for number in range(200):
        sql = "".join(chr(rnd.randrange(33, 126)) for _ in range(MAX_SQL))
        asking = PASS.model_copy(update={"sql": sql, "sql_digest": sql_digest(sql)})
        askings[Key(f"q{number}")] = [asking]
    packed = _packed(askings)
    assert len(json.dumps(packed)) <= MAX_STATE_BYTES + 2
    kept = _unpacked(packed).values()
    assert all(one.whole_sql is None and one.sql_digest for [one] in kept)
