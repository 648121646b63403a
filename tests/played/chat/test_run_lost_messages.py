"""The verdict of a poll on a message: accepted, absent, unclear, streaming, over."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import (
    ChatNoAnswerError,
)
from airflow_provider_platform.resources.chat.run_state import Verdict
from tests.support.fakes.streams import (
    ANSWER,
    CHAT_ID,
    EARLIER_ID,
    EARLIER_TURN,
    MESSAGE_ID,
    PROMPT,
    Record,
    aborted,
    cutoff,
    echo,
    feed,
    final,
    given_thread,
    new_run,
    serialized,
    state,
    tool,
)

HUMAN = serialized("HumanMessage", PROMPT)
OTHER = serialized("HumanMessage", "Other?")
LOOKS = [
    ("streams", [cutoff(streaming=True), state()], Verdict.STREAMING),
    ("state streams", [cutoff(), state([], streaming=True)], Verdict.STREAMING),
    ("state is free", [cutoff(streaming=True), state([], streaming=False)], Verdict.ABSENT),
    ("other turns", [*EARLIER_TURN, cutoff(), state()], Verdict.ABSENT),
    ("other turns, our words", [*EARLIER_TURN, cutoff(), state([HUMAN])], Verdict.ABSENT),
    ("other words", [cutoff(), state([OTHER])], Verdict.ABSENT),
    ("nothing", [cutoff(), state([])], Verdict.ABSENT),
    ("our words", [cutoff(), state([HUMAN])], Verdict.UNCLEAR),
    ("our words, then others", [cutoff(), state([HUMAN, OTHER])], Verdict.UNCLEAR),
    ("a silent service", [cutoff(), state()], Verdict.UNCLEAR),
    (
        "our words of an earlier id",
        [cutoff(), state([serialized("HumanMessage", PROMPT, EARLIER_ID)])],
        Verdict.ABSENT,
    ),
]


@pytest.mark.parametrize(
    ("records", "verdict"), [look[1:] for look in LOOKS], ids=[look[0] for look in LOOKS]
)
def test_poll_without_our_message_shows_whether_the_question_is_absent(
    records: list[Record], verdict: Verdict
) -> None:
    run = given_thread()
    assert feed(run, *records, submits=False) is verdict
    assert not run.accepted


@pytest.mark.parametrize(
    "records",
    [
        [*EARLIER_TURN, echo(), cutoff(), state()],
        [cutoff(), state([OTHER, serialized("HumanMessage", "(edited)", MESSAGE_ID)])],
        [cutoff(), state([serialized("HumanMessage", PROMPT, MESSAGE_ID), OTHER])],
    ],
)
def test_a_message_that_the_thread_holds_is_accepted(records: list[Record]) -> None:
    run = given_thread()
    assert feed(run, *records, submits=False) is Verdict.OVER
    assert run.accepted


def test_equal_text_identifies_the_question_in_our_new_thread() -> None:
    run = new_run(chat_id=CHAT_ID)
    assert feed(run, cutoff(), state([HUMAN]), submits=False) is Verdict.OVER
    assert run.accepted


def test_a_thread_that_streams_is_asked_again_unless_the_answer_is_whole() -> None:
    run = given_thread(accepted=True)
    streams = cutoff(streaming=True)
    assert feed(run, echo(), streams, state(), submits=False) is Verdict.STREAMING
    half = final("Half", isInProcess=True)
    assert feed(run, echo(), half, streams, state(), submits=False) is Verdict.STREAMING
    more = tool("SqlApi", record_id="more")
    sent = [echo(), final(ANSWER), more, streams, state()]
    assert feed(run, *sent, submits=False) is Verdict.STREAMING
    assert feed(run, echo(), final(ANSWER), streams, state(), submits=False) is Verdict.OVER


def test_streaming_thread_with_a_later_turn_does_not_stream_our_run() -> None:
    run = given_thread(accepted=True)
    sent = [echo(), tool("SqlApi"), echo("1732512999999-message"), cutoff(streaming=True), state()]
    assert feed(run, *sent, submits=False) is Verdict.OVER
    with pytest.raises(ChatNoAnswerError):
        run.result()


LATER = echo("1732512999999-message")


@pytest.mark.parametrize("rest", [[], [aborted()], [{"id": "__suspended__"}]])
def test_answered_run_is_over_if_a_later_turn_follows_it(rest: list[Record]) -> None:
    """Whatever becomes of the later turn: what ends it says nothing of ours."""
    run = given_thread(accepted=True)
    sent = [echo(), final(ANSWER), LATER, *rest, cutoff()]
    assert feed(run, *sent, submits=False) is Verdict.OVER
    assert run.result().answer == ANSWER


@pytest.mark.parametrize("sent", [tool("SqlApi"), final("Half", isInProcess=True)])
def test_later_turn_alone_does_not_end_a_run_without_an_answer(sent: Record) -> None:
    run = given_thread(accepted=True)
    assert feed(run, echo(), sent, LATER, cutoff(), submits=False) is Verdict.BROKEN
