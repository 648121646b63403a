"""A chat that never ends: the text in memory is bounded in every form."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.resources.chat import record_fold as chat_records
from tests.support.fakes.streams import (
    ANSWER,
    Record,
    cutoff,
    echo,
    encode,
    feed,
    final,
    new_run,
    query_result,
    state,
    tool,
)

LIMIT = 20_000
PIECE = "x" * 1000


@pytest.fixture(autouse=True)
def a_small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_records, "MAX_TEXT", LIMIT)


def delta(number: int) -> Record:
    return final(PIECE, isDelta=True, sort=number)


ENDLESS: dict[str, Any] = {
    "deltas of one record": delta,
    "records": lambda number: final(PIECE, record_id=f"record-{number}"),
    "empty records": lambda number: final("", record_id=f"record-{number}"),
    "inputs of tools": lambda number: tool("serviceMeta", {"q": PIECE}, record_id=f"t-{number}"),
    "results of tools": lambda number: tool(
        "serviceSqlApi", {}, query_result([[PIECE, number]]), record_id=f"t-{number}"
    ),
    "long results of tools": lambda number: tool(
        "serviceSqlApi", {}, query_result([[PIECE]] * 90), record_id=f"t-{number}"
    ),
    "thoughts": lambda number: final("", record_id=f"r-{number}", thinking=PIECE),
}


@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
def test_text_beyond_the_limit_breaks_the_protocol(endless: Any) -> None:
    with pytest.raises(PlatformProtocolError, match="MB of text"):
        feed(new_run(), cutoff(), echo(), *(encode(endless(number)) for number in range(200)))


def test_replayed_text_counts_once() -> None:
    run = new_run()
    sent = [echo(), *(delta(number) for number in range(9))]
    full = [final(PIECE * 15) for _ in range(30)]
    for _ in range(3):
        feed(run, cutoff(), *sent, *full, clean=False)
    assert len(run._records().final_answer().content) == 15_000  # type: ignore[union-attr]


def test_dropped_rows_do_not_count_towards_the_text_limit() -> None:
    run = new_run(max_rows=1)
    long = query_result([[PIECE]] * 100)
    calls = [tool("serviceSqlApi", {}, long, record_id=f"t-{number}") for number in range(3)]
    feed(run, cutoff(), echo(), *calls, final(ANSWER), state())
    assert run.result().queries[-1].total_rows == 100
