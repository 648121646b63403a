"""A chat that never ends: the text in memory is bounded in every form."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.resources.chat import record_fold as chat_records
from airflow_provider_platform.resources.chat.thread import ThreadReader
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
    with pytest.raises(PlatformProtocolError, match="MB of text") as caught:
        feed(new_run(), cutoff(), echo(), *(encode(endless(number)) for number in range(200)))
    assert caught.value.where.startswith("chat ")


def test_text_limit_holds_for_a_run_that_begins_again_before_each_record() -> None:
    records = (encode(echo()) + encode(final(PIECE, record_id=f"r-{n}")) for n in range(200))
    with pytest.raises(PlatformProtocolError, match="MB of text"):
        feed(new_run(), cutoff(), *records)


def test_text_limit_holds_for_all_connections_of_a_run() -> None:
    run = new_run()

    def connect(number: int) -> None:
        feed(run, cutoff(), echo(), final(PIECE, record_id=f"r-{number}"), clean=False)

    with pytest.raises(PlatformProtocolError, match="MB of text"):
        deque(map(connect, range(200)))


@pytest.mark.parametrize("length", [0, 1000])
def test_messages_of_users_count_towards_the_limit_of_a_thread(length: int) -> None:
    reader = ThreadReader("thread", max_rows=1)
    messages = ({"id": f"u-{n}", "role": "user", "content": "x" * length} for n in range(200))
    with pytest.raises(PlatformProtocolError, match="contains more than"):
        reader.feed(encode(*messages))


def test_only_the_parts_of_a_long_path_that_are_needed_are_kept() -> None:
    run = new_run()
    feed(run, cutoff(), echo(), final("x", graphPath=["final", {"deep": [1]}, "c", PIECE]))
    (record,) = run._records()
    assert record.graph_path == ["final", "", "c"]
    assert record.cost == chat_records.RECORD_COST + len(record.id) + len("x") + len("finalc")


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
