"""A final record that is still in process at the end of the run: a read of the thread decides."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import (
    ChatNoAnswerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.polling import TOLERATED_FAILURES
from tests.support.fakes.chat_calls import new_call
from tests.support.fakes.played_service import Fault, PlayedService
from tests.support.fakes.streams import (
    ANSWER,
    PROMPT,
    Record,
    Turn,
    cutoff,
    echo,
    final,
    serialized,
    state,
    usage,
)

OPEN = Turn(closing=False)
"""A turn whose final record never says that it is complete."""
HALF = final(ANSWER[:9], isInProcess=True)


def streamed(*records: Record, messages: list[Record] | None = None) -> list[Any]:
    """What the stream sends of a run of these records, and what a later read returns."""
    return [cutoff(), echo(), *records, state(messages)]


def asked(*answers: list[Any], **options: Any) -> Any:
    """A question that was answered so, and the thread as each further look shows it."""
    service = PlayedService(scripted=list(answers), **options)
    call = new_call(service)
    assert call.ask() is True
    return call


@pytest.mark.parametrize("kept", [ANSWER, ANSWER[:9], "Rewritten."])
def test_the_record_that_the_thread_shows_as_complete_is_the_answer(kept: str) -> None:
    call = asked(streamed(HALF), [echo(), final(kept), cutoff(), state()])
    assert call.result()["answer"] == kept
    assert len(call.service.bodies) == 2


@pytest.mark.parametrize(
    "look",
    [
        [echo(), HALF, cutoff(), state()],
        [echo(), HALF, cutoff(), state([])],
        [echo(), HALF, cutoff(), state([serialized("HumanMessage", PROMPT)])],
        [echo(), cutoff(), state()],
        [cutoff(), state()],
    ],
    ids=["in process", "no messages", "no answer in the messages", "no record", "nothing"],
)
def test_unconfirmed_answer_is_not_an_answer(look: list[Any]) -> None:
    """Nor do the messages of the stream: the thread may have kept the same half in them."""
    messages = [serialized("HumanMessage", PROMPT), serialized("AIMessage", HALF["content"])]
    for first in (streamed(HALF), streamed(HALF, messages=messages)):
        call = asked(first, look)
        assert len(call.service.bodies) == 2
        with pytest.raises(ChatNoAnswerError, match="last said"):
            call.result()


def test_a_thread_that_cannot_be_read_leaves_the_run_to_a_retry() -> None:
    service = PlayedService(turn=OPEN, faults=[Fault("none"), *[Fault("unreachable")] * 9])
    with pytest.raises(PlatformTransportError, match=r"as complete.*no connection.*A retry"):
        new_call(service).ask()
    assert len(service.bodies) == 2 + TOLERATED_FAILURES


def test_the_usage_of_the_stream_is_kept_after_the_thread_is_read() -> None:
    call = asked([*streamed(HALF), usage()], [echo(), final(ANSWER), cutoff(), state()])
    assert call.result()["usage"] == usage()["usage"]


def test_end_of_an_answer_is_no_answer_if_a_record_without_text_closes_it() -> None:
    tail = [final("5 million.", isDelta=True, isInProcess=True), final(None)]  # type: ignore[arg-type]
    joined_late = [cutoff(streaming=True), *tail, state()]
    call = asked([cutoff(), echo()], joined_late, *[[cutoff(), state()]] * 3)
    with pytest.raises(ChatNoAnswerError):
        call.result()
