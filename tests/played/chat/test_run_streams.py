"""A run over one connection or many, in any pieces: always the same result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import ChatNoAnswerError
from airflow_provider_platform.resources.chat.run_state import ChatRun, Verdict
from tests.support.fakes.streams import (
    ANSWER,
    CHAT_ID,
    EARLIER_ID,
    EXPECTED,
    PROMPT,
    USAGE,
    Record,
    Turn,
    cut_up,
    cutoff,
    encode,
    feed,
    final,
    folded,
    new_run,
    serialized,
    state,
    usage,
)
from tests.support.hypothesis_profiles import examples

if TYPE_CHECKING:
    from airflow_provider_platform.resources.chat.result import ChatResult

EARLIER = Turn(
    prompt="How many orders?",
    message_id=EARLIER_ID,
    answer="There were 42 orders.",
    rows=[["2025-12", 42]],
    name="earlier-",
)
TURNS = st.builds(
    Turn,
    prefix=st.sampled_from(["service", "cube", ""]),
    one_sort=st.booleans(),
    closing=st.booleans(),
)


def finished(run: ChatRun) -> dict[str, Any]:
    result = run.result().to_json()
    if result.pop("truncated", False):
        assert not run.is_whole
    return result


def without_usage(result: ChatResult) -> dict[str, Any]:
    return {**result.to_json(), "usage": None}


@settings(max_examples=examples(60))
@given(turn=TURNS, places=st.lists(st.integers(min_value=0), max_size=40), history=st.booleans())
def test_stream_in_any_pieces_gives_the_documented_answer(
    turn: Turn, places: list[int], history: bool
) -> None:
    records = turn.stream(EARLIER) if history else turn.stream()
    run = new_run(in_existing_thread=history, chat_id=CHAT_ID if history else None)
    assert feed(run, *cut_up(encode(*records), places)) is Verdict.OVER
    assert finished(run) == EXPECTED


def test_a_stream_cut_anywhere_and_replayed_gives_the_same_result() -> None:
    """A connection that breaks changes nothing, be it at a record's end, inside a line or inside
    a character, and the message is accepted at the end of the echo's line."""
    turn = Turn()
    data = encode(*turn.stream())
    again = encode(cutoff(streaming=True), *turn.records(), *turn.end())
    accepted_from = len(encode(cutoff(), turn.records()[0]))
    until = len(encode(cutoff(), *turn.records()))
    ends = {at + 1 for at in range(until) if data[at : at + 1] == b"\n"}
    inside = {at for at in range(until) if 0x80 <= data[at] < 0xC0}
    for place in sorted({0, *ends, *(at - 1 for at in ends), *inside, *range(0, until, 29)}):
        run = new_run()
        assert feed(run, data[:place], clean=place % 2 == 0) is Verdict.BROKEN
        assert run.accepted is (place >= accepted_from)
        run.accepted = True
        assert feed(run, again, submits=False) is Verdict.OVER
        assert finished(run) == EXPECTED


def replays(turn: Turn, kind: str, sent: int, *, raw: bool, overlap: int) -> list[Record]:
    """What a request without input is answered with, when `sent` records were sent before."""
    records = turn.records()
    own = records[:sent] if raw else folded(records[:sent])
    live = records[sent:]
    mark = cutoff(streaming=None)
    if kind == "before":
        return [*own, mark, *live]
    if kind == "after":
        return [mark, *own, *live]
    return [mark, *records[max(1, sent - overlap) :]]


@settings(max_examples=examples(80))
@given(data=st.data(), turn=TURNS, history=st.booleans())
def test_any_cuts_and_replays_give_the_same_result(
    data: st.DataObject, turn: Turn, history: bool
) -> None:
    """Connections that break anywhere, inside lines and characters too, and what follows them:
    a replay before or after the mark, whole or as it was streamed, or the live rest with some
    records repeated and no echo."""
    until_end = turn.records()
    earlier = EARLIER.records() if history else []
    run = new_run(in_existing_thread=history, chat_id=CHAT_ID if history else None)
    sent = data.draw(st.integers(1, len(until_end)), label="records of the first connection")
    first = encode(*earlier, cutoff(), *until_end[:sent])
    got, lost = first, 0
    if data.draw(st.booleans(), label="inside a line"):
        last = encode(until_end[sent - 1])
        lost = data.draw(st.integers(1, len(last)), label="bytes lost") if sent > 1 else 0
        got = first[: len(first) - lost]
    places = st.lists(st.integers(min_value=0), max_size=5)
    clean = st.booleans()
    assert feed(run, *cut_up(got, data.draw(places)), clean=data.draw(clean)) is Verdict.BROKEN
    assert run.accepted
    for _ in range(data.draw(st.integers(0, 3), label="further cuts")):
        kind = data.draw(st.sampled_from(["before", "after", "live"]))
        streamed = replays(
            turn, kind, sent, raw=data.draw(st.booleans()), overlap=1 + data.draw(st.integers(0, 4))
        )
        sent = data.draw(st.integers(sent, len(until_end)))
        missing = len(until_end) - sent
        body = encode(*earlier, *(streamed[: len(streamed) - missing] if missing else streamed))
        assert feed(run, *cut_up(body, data.draw(places)), submits=False) is Verdict.BROKEN
    kind = data.draw(st.sampled_from(["before", "after", "live"]), label="at last")
    streamed = replays(turn, kind, sent, raw=data.draw(st.booleans()), overlap=4)
    # Without a closing record the answer is in process: the messages of the state confirm it.
    end = [state(), usage()] if turn.closing else turn.end([EARLIER] if history else [])
    body = encode(*earlier, *streamed, *end)
    assert feed(run, *cut_up(body, data.draw(places)), submits=False) is Verdict.OVER
    assert finished(run) == EXPECTED


@pytest.mark.parametrize("form", [list, folded])
@pytest.mark.parametrize("one_sort", [False, True])
def test_thread_read_after_the_end_gives_the_result_without_usage(
    form: Any, one_sort: bool
) -> None:
    """A new process that knows only the ids reads the thread: no usage comes then."""
    turn = Turn(one_sort=one_sort)
    run = new_run(chat_id=CHAT_ID, accepted=True)
    thread = [*EARLIER.records(), *form(turn.records()), cutoff(), turn.end([EARLIER])[0]]
    assert feed(run, *thread, submits=False) is Verdict.OVER
    assert without_usage(run.result()) == {**EXPECTED, "usage": None}


@pytest.mark.parametrize("closing", [True, False])
def test_half_an_answer_does_not_count_as_an_answer(closing: bool) -> None:
    """The connection broke while the answer came; the thread shows its end, but not its records."""
    turn = Turn(closing=closing)
    for known in range(len(turn.records()) - 5, len(turn.records())):
        with_state, without_state = new_run(), new_run()
        for run in (with_state, without_state):
            feed(run, cutoff(), *turn.records()[:known], clean=False)
        assert feed(with_state, cutoff(), turn.end()[0], submits=False) is Verdict.OVER
        assert with_state.result().answer == ANSWER
        assert feed(without_state, cutoff(), state(), submits=False) is Verdict.OVER
        with pytest.raises(ChatNoAnswerError):
            without_state.result()


def test_deltas_after_a_full_record_belong_to_it_without_an_echo() -> None:
    """Deltas that follow a full record on the same connection belong to it, repeats or not."""
    turn = Turn(closing=False)
    records = turn.records()
    start = next(at for at, record in enumerate(records) if record["id"] == "answer")
    opening = {**records[start], "isDelta": False}
    last = {**records[-1], "isInProcess": False}
    streamed = [*records[:start], opening, *records[start + 1 : -1], last]
    for known in range(start + 1, len(streamed)):
        run = new_run()
        feed(run, cutoff(), *streamed[:known], clean=False)
        feed(run, cutoff(), *streamed[start:], state(), submits=False)
        assert run.result().answer == ANSWER


def test_lost_deltas_with_the_same_sort_are_read_from_the_state() -> None:
    """With one `sort` for a message a repeat looks like a new delta."""
    turn = Turn(one_sort=True, closing=False)
    records = turn.records()
    run = new_run()
    feed(run, cutoff(), *records[:-2], clean=False)
    live = [cutoff(streaming=True), *records[-2:], *turn.end()]
    assert feed(run, *live, submits=False) is Verdict.STREAMING
    assert feed(run, cutoff(), *turn.end(), submits=False) is Verdict.OVER
    assert run.may_lack_records
    assert run.result().answer == ANSWER


def test_received_answer_is_kept_if_a_replay_of_the_thread_lacks_it() -> None:
    turn = Turn()
    run = new_run()
    feed(run, cutoff(), *turn.records(), clean=False)
    assert feed(run, *turn.records()[:1], cutoff(), state([]), submits=False) is Verdict.OVER
    assert run.result().answer == ANSWER


def test_usage_record_may_come_before_or_after_the_state() -> None:
    turn = Turn()
    last = turn.end()
    for end in (last, last[::-1]):
        run = new_run()
        run.connect(submits=True)
        run.feed(encode(cutoff(), *turn.records(), end[0]), 0.0)
        assert not run.connection.complete
        run.feed(encode(end[1]), 0.0)
        assert run.connection.complete
        assert run.disconnect(clean=False) is Verdict.OVER
        assert run.result().usage == USAGE


def test_the_usage_of_an_earlier_turn_is_not_ours() -> None:
    run = new_run(chat_id=CHAT_ID, in_existing_thread=True, accepted=True)
    later = Turn(message_id="1732512345999-message", name="later-")
    theirs = {**usage(), "usage": {"totalTokens": 1}}
    streamed = [*EARLIER.records(), theirs, *Turn().records(), *later.records(), cutoff()]
    assert feed(run, *streamed, state(), theirs, submits=False) is Verdict.OVER
    assert without_usage(run.result()) == finished(run)


HALF = ANSWER[:9]
WORKING = serialized("AIMessage", "Working on it.")
KEPT: dict[str, Any] = {
    "before the mark": lambda half: [Turn().records()[0], half, cutoff()],
    "after the mark": lambda half: [cutoff(), Turn().records()[0], half],
    "before a later turn, which streams": lambda half: [
        Turn().records()[0],
        half,
        *replace(EARLIER, message_id="1732519999999-message").records()[:1],
        cutoff(streaming=True),
    ],
}


def half_an_answer(**fields: Any) -> Record:
    return final(HALF, isInProcess=True, **fields)


@pytest.mark.parametrize("delta", [True, False])
@pytest.mark.parametrize("streamed", KEPT.values(), ids=KEPT)
def test_unfinished_answer_of_an_ended_run_is_not_an_answer(streamed: Any, delta: bool) -> None:
    """A run that was stopped, and whose thread shows no `__aborted__`."""
    run = new_run(chat_id=CHAT_ID, accepted=True, in_existing_thread=True)
    look = streamed(half_an_answer(isDelta=delta))
    assert feed(run, *look, state([WORKING]), submits=False) is Verdict.OVER
    assert run.answer_in_process  # so that the thread is read once more
    with pytest.raises(ChatNoAnswerError, match=f"last said: {HALF}"):
        run.result()
    closed = streamed(final(ANSWER))
    assert feed(run, *closed, state(), submits=False) is Verdict.OVER
    assert run.result().answer == ANSWER


@pytest.mark.parametrize(("said", "answer"), [(ANSWER, ANSWER), ("Working on it.", None)])
def test_the_messages_of_the_state_may_complete_an_answer_that_broke_off(
    said: str, answer: str | None
) -> None:
    run = new_run(chat_id=CHAT_ID, accepted=True)
    messages = [serialized("HumanMessage", PROMPT), serialized("AIMessage", said)]
    streamed = [Turn().records()[0], half_an_answer(), cutoff(), state(messages)]
    assert feed(run, *streamed, submits=False) is Verdict.OVER
    if answer is not None:
        assert run.result().answer == answer
        return
    with pytest.raises(ChatNoAnswerError, match=f"last said: {HALF}"):
        run.result()


@pytest.mark.parametrize("replay", ["before", "after"])
@pytest.mark.parametrize("messages", [[], None])
def test_final_record_that_is_still_in_process_is_not_an_answer(messages: Any, replay: str) -> None:
    """However live the connection was: the thread may have kept half of it."""
    own = Turn(closing=False).records()
    mark = cutoff(streaming=True)
    seen = [*own[:-2], mark, *own[-2:]] if replay == "before" else [mark, *own]
    run = new_run(chat_id=CHAT_ID, accepted=True)
    assert feed(run, *seen, state(messages, streaming=False), submits=False) is Verdict.OVER
    assert run.answer_in_process
    with pytest.raises(ChatNoAnswerError, match="last said"):
        run.result()
