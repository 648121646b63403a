"""Reading a thread: its turns come from replayed records or from the messages of its state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    ChatRpcError,
    ChatStreamError,
    PlatformAddressError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.chat.thread import (
    LIVE_SECONDS,
    USAGE_SECONDS,
    ChatThread,
    ThreadReader,
    read_thread,
)
from tests.support.fakes.chat_calls import EARLIER
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import BUSY, NOON, Fault, PlayedService, drive
from tests.support.fakes.streams import (
    ANSWER,
    CHAT_ID,
    EARLIER_ID,
    EXPECTED,
    MESSAGE_ID,
    PROMPT,
    Record,
    Turn,
    aborted,
    cut_up,
    cutoff,
    echo,
    encode,
    final,
    folded,
    state,
    usage,
)

OWN = {
    "message_id": MESSAGE_ID,
    "prompt": PROMPT,
    "answer": ANSWER,
    "queries": EXPECTED["queries"],
    "usage": None,
}
SECONDS = 30.0


def read(service: PlayedService, **options: Any) -> ChatThread:
    given = {"seconds": SECONDS, "max_rows": 100, **options}
    return drive(read_thread(api_with(service.clock), CHAT_ID, None, **given), service)


def thread_of(*records: Any, **options: Any) -> ChatThread:
    """The thread that an answer of these records shows."""
    return read(PlayedService(scripted=[list(records)]), **options)


@pytest.mark.parametrize("form", [list, folded])
def test_a_thread_has_its_turns_with_answers_and_queries(form: Any) -> None:
    history = [*form(EARLIER.records()), *form(Turn().records())]
    thread = thread_of(*history, cutoff(), *Turn().end([EARLIER]))
    assert (thread.chat_id, thread.streaming) == (CHAT_ID, False)
    earlier, own = thread.to_json()["turns"]
    assert own == {**OWN, "usage": usage()["usage"]}
    assert (earlier["message_id"], earlier["prompt"]) == (EARLIER_ID, EARLIER.prompt)
    assert (earlier["answer"], earlier["usage"]) == (EARLIER.answer, None)
    assert earlier["queries"][0]["rows"] == EARLIER.rows


@given(places=st.lists(st.integers(min_value=0), max_size=20))
def test_any_pieces_give_the_same_thread(places: list[int]) -> None:
    data = encode(*EARLIER.records(), *Turn().records(), cutoff(), *Turn().end([EARLIER]))
    reader = ThreadReader(CHAT_ID, max_rows=100)
    for piece in cut_up(data, places):
        reader.feed(piece)
    reader.finish()
    assert [turn.answer for turn in reader.thread().turns] == [EARLIER.answer, ANSWER]


def test_a_turn_that_is_streaming_has_no_answer_yet() -> None:
    half = Turn().records()[:-1]
    live = [*EARLIER.records(), *half, cutoff(streaming=True), state(Turn().messages())]
    thread = thread_of(*live)
    assert thread.streaming
    assert [turn.answer for turn in thread.turns] == [EARLIER.answer, None]
    assert thread.turns[1].queries[0].rows == EXPECTED["queries"][0]["rows"]


def test_live_stream_is_closed_after_live_seconds() -> None:
    """A service may subscribe whoever reads a thread to what it streams."""
    service = PlayedService(starts=[NOON], pace=0.05, records=Turn(answer="x" * 9000).records())
    service.now += 2.0
    thread = read(service)
    assert thread.streaming
    assert thread.turns[0].answer is None
    assert service.now <= NOON + 2.0 + LIVE_SECONDS + 0.1


def test_usage_of_a_thread_that_ended_is_waited_for_half_a_second() -> None:
    sent = [echo(), final(ANSWER), cutoff(), state()]
    service = PlayedService(scripted=[sent], faults=[Fault("silence", len(encode(*sent)))])
    assert read(service).turns[0].answer == ANSWER
    assert service.now == NOON + USAGE_SECONDS


def test_final_record_in_process_is_an_answer_only_if_the_messages_complete_it() -> None:
    half = final(ANSWER[:9], isInProcess=True)
    complete = thread_of(echo(), half, cutoff(), state(Turn().messages()))
    assert complete.turns[0].answer == ANSWER
    for messages in (None, [], Turn().messages(answered=False), Turn(answer="Else.").messages()):
        assert thread_of(echo(), half, cutoff(), state(messages)).turns[0].answer is None


@pytest.mark.parametrize("stop", [[], [aborted()]], ids=["not replayed", "replayed"])
def test_stopped_turn_has_no_answer_and_not_the_answer_of_the_next_turn(stop: list[Record]) -> None:
    stopped = [echo(EARLIER_ID, "Old?"), final("", graphPath=["agent"]), *stop]
    thread = thread_of(*stopped, *Turn().records(), cutoff(), state())
    assert [turn.answer for turn in thread.turns] == [None, ANSWER]
    assert thread_of(*Turn().records(), *stopped, cutoff(), state()).turns[0].answer == ANSWER


@pytest.mark.parametrize("kind", ["close", "reset"])
def test_a_thread_that_is_cut_after_a_replayed_abort_is_read_again(kind: Any) -> None:
    stopped = [echo(EARLIER_ID, "Old?"), final("", graphPath=["agent"]), aborted()]
    whole = [*stopped, *Turn().records(), cutoff(), state()]
    cut = Fault(kind, len(encode(*stopped)))
    service = PlayedService(scripted=[whole, whole], faults=[cut, Fault("none")])
    assert [turn.answer for turn in read(service).turns] == [None, ANSWER]
    assert len(service.bodies) == 2


@pytest.mark.parametrize("shape", ["constructor", "role"])
def test_a_thread_without_history_is_read_from_its_messages(shape: str) -> None:
    names = {"HumanMessage": "user", "AIMessage": "assistant", "ToolMessage": "tool"}
    messages = [
        *EARLIER.messages(),
        {"id": ["HumanMessage"], "kwargs": {"content": PROMPT, "id": MESSAGE_ID}},
        {"id": ["AIMessage"], "kwargs": {"content": "", "tool_calls": [{}]}},
        {"id": ["ToolMessage"], "kwargs": {"content": "{}"}},
        {"id": ["AIMessage"], "kwargs": {"content": ANSWER}},
    ]
    if shape == "role":
        messages = [{"role": names[one["id"][-1]], **one["kwargs"]} for one in messages]
    for mark, answer in ((cutoff(), ANSWER), (cutoff(streaming=True), None)):
        thread = thread_of(mark, state(messages))
        assert [turn.message_id for turn in thread.turns] == [EARLIER_ID, MESSAGE_ID]
        assert thread.turns[0].answer == EARLIER.answer
        assert thread.turns[1].answer == answer
        assert thread.to_json()["turns"][1]["truncated"] is True


def test_details_of_a_thread_are_kept_if_they_are_requested() -> None:
    thread = thread_of(*Turn().records(), cutoff(), state())
    [turn] = thread.turns
    assert turn.searches[0].cubes == [{"name": "orders"}]
    assert turn.thinking == ["Let me think."]
    assert turn.queries[0].user_request == PROMPT
    assert not {"searches", "thinking"} & thread.to_json()["turns"][0].keys()
    detailed = thread.to_json(details=True)["turns"][0]
    assert detailed["searches"][0]["search_query"] == "revenue"
    assert detailed["thinking"] == ["Let me think."]
    assert detailed["queries"][0]["user_request"] == PROMPT


@pytest.mark.parametrize(
    ("records", "error"),
    [
        ([{"error": "Out of memory"}], ChatStreamError),
        ([{"jsonrpc": "2.0", "error": {"code": 1, "message": "No"}}], ChatRpcError),
        ([b"<html>\n"], PlatformAddressError),
        ([cutoff(), b"{]\n"], PlatformProtocolError),
    ],
)
def test_error_or_page_sent_instead_of_the_thread_is_raised(
    records: list[Any], error: type[Exception]
) -> None:
    service = PlayedService(scripted=[records])
    with pytest.raises(error):
        read(service)
    assert len(service.bodies) == 1


def test_a_busy_thread_is_streaming() -> None:
    assert thread_of(BUSY).to_json() == {"chat_id": CHAT_ID, "streaming": True, "turns": []}


@pytest.mark.parametrize(
    "fault", [Fault("unreachable"), Fault("refuse"), Fault("reset", 90), Fault("close", 90)]
)
def test_broken_read_is_repeated(fault: Fault) -> None:
    service = PlayedService(starts=[NOON - 99], faults=[fault])
    assert read(service).turns[0].answer == ANSWER
    assert len(service.bodies) == 2


def test_a_thread_that_cannot_be_read_is_an_error_in_time() -> None:
    for fault in (Fault("close", 90), Fault("silence", 90), Fault("unreachable")):
        service = PlayedService(starts=[NOON - 99], faults=[fault] * 99)
        with pytest.raises(PlatformTransportError):
            read(service)
        assert service.now <= NOON + SECONDS + 1


def test_a_refused_credential_is_read_again_once() -> None:
    refusal: Record = {"jsonrpc": "2.0", "error": {"code": 1, "message": "No"}}
    service = PlayedService(starts=[NOON - 99], scripted=[[refusal]], reloads=[True])
    assert read(service).turns[0].answer == ANSWER
    with pytest.raises(ChatRpcError):
        read(PlayedService(scripted=[[refusal]] * 2, reloads=[True]))
