"""The serialized messages of `__state__`, in each shape that frameworks write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.resources.chat.run_state import Verdict
from airflow_provider_platform.resources.chat.state_messages import ThreadMessages, read_messages
from tests.support.fakes.chat_calls import Call, new_call
from tests.support.fakes.played_service import Fault, PlayedService
from tests.support.fakes.streams import (
    ANSWER,
    ANY_JSON,
    CHAT_ID,
    EARLIER_ID,
    MESSAGE_ID,
    PROMPT,
    Record,
    cutoff,
    feed,
    given_thread,
    new_run,
    serialized,
    state,
)

Shape = Callable[..., Any]
_TYPES = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool"}
_ROLES = {"HumanMessage": "user", "AIMessage": "assistant", "ToolMessage": "tool"}


def flat(kind: str, content: Any, message_id: str | None = None, **fields: Any) -> Record:
    return {"type": _TYPES[kind], **serialized(kind, content, message_id, **fields)["kwargs"]}


def by_role(kind: str, content: Any, message_id: str | None = None, **fields: Any) -> Record:
    return {"role": _ROLES[kind], **serialized(kind, content, message_id, **fields)["kwargs"]}


def in_chunks(kind: str, content: Any, message_id: str | None = None, **fields: Any) -> Record:
    return serialized(f"{kind}Chunk", [{"type": "text", "text": content}], message_id, **fields)


def in_parts(kind: str, content: Any, message_id: str | None = None, **fields: Any) -> Record:
    middle = len(content) // 2
    parts = [{"type": "text", "text": content[:middle]}, content[middle:], {"type": "image"}]
    return by_role(kind, parts, message_id, **fields)


SHAPES: dict[str, Shape] = {
    "constructor": serialized,
    "type": flat,
    "role": by_role,
    "chunks": in_chunks,
    "parts": in_parts,
}


def said(read: ThreadMessages) -> list[tuple[str, str]]:
    return [(message.id, message.text) for message in read.humans]


EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@EVERY_SHAPE
def test_each_shape_of_messages_gives_questions_and_answers(shape: Shape) -> None:
    calls = [{"name": "serviceSqlApi", "args": {}, "id": "call-1"}]
    messages = [
        shape("HumanMessage", "Old?", EARLIER_ID),
        shape("AIMessage", "Old."),
        shape("HumanMessage", PROMPT, MESSAGE_ID),
        shape("AIMessage", "Let me see", tool_calls=calls),
        shape("ToolMessage", "{}", tool_call_id="call-1"),
        shape("AIMessage", ANSWER),
    ]
    read = read_messages(messages)
    assert read is not None
    assert said(read) == [(EARLIER_ID, "Old?"), (MESSAGE_ID, PROMPT)]
    assert read.answer == ANSWER
    assert not read.unread
    assert [message.calls for message in read.messages] == [False] * 3 + [True] + [False] * 2
    assert [answer for _, answer in read.turns()] == ["Old.", ANSWER]
    for without in range(3, 6):
        read = read_messages(messages[:without])
        assert read is not None
        assert read.answer == ""


@pytest.mark.parametrize(
    "message",
    [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]},
        {
            "id": ["langchain_core", "messages", "ChatMessage"],
            "kwargs": {"role": "user", "content": PROMPT},
        },
    ],
)
def test_question_is_read_from_every_form(message: Record) -> None:
    read = read_messages([message])
    assert read is not None
    assert said(read) == [("", PROMPT)]


@pytest.mark.parametrize("odd", [*ANY_JSON, {"role": "narrator", "content": "x"}, {"type": ["ai"]}])
def test_a_message_of_an_unknown_shape_shows_that_not_all_was_read(odd: Any) -> None:
    read = read_messages([odd, {"role": "user", "content": PROMPT}])
    assert read is not None
    assert read.unread
    assert said(read) == [("", PROMPT)]


JSON = st.recursive(
    st.sampled_from([*ANY_JSON, "human", "ai", "constructor", '{"role": "user"}']),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "role", "kwargs", "content", "text"]), inner
        )
    ),
    max_leaves=12,
)


@given(messages=st.lists(JSON, max_size=4) | JSON)
def test_any_conversation_is_read_without_an_error(messages: Any) -> None:
    read = read_messages(messages)
    assert read is None or all(isinstance(one.text, str) for one in read.messages)


def lost_prompt(shape: Shape, *, thread: bool) -> Call:
    """A question whose answer broke off after the thread had its name, and the thread's look."""
    human = shape("HumanMessage", PROMPT, MESSAGE_ID if thread else None)
    look = [cutoff(), state([human, shape("AIMessage", ANSWER)])]
    service = PlayedService(scripted=[[cutoff()], look, look], faults=[Fault("close", 10**6)])
    return new_call(service, thread=thread)


@EVERY_SHAPE
@pytest.mark.parametrize("thread", [False, True])
def test_question_found_in_the_messages_is_not_sent_again(shape: Shape, thread: bool) -> None:
    call = lost_prompt(shape, thread=thread)
    assert call.ask() is True
    assert len(call.service.prompts) == 1
    assert call.result()["answer"] == ANSWER


@EVERY_SHAPE
def test_answer_to_a_later_question_is_not_ours(shape: Shape) -> None:
    messages = [
        shape("HumanMessage", PROMPT, MESSAGE_ID),
        shape("AIMessage", ANSWER),
        shape("HumanMessage", "Else?", EARLIER_ID),
        shape("AIMessage", "No."),
    ]
    run = given_thread(accepted=True)
    assert feed(run, cutoff(), state(messages), submits=False) is Verdict.OVER
    with pytest.raises(Exception, match="without a final answer"):
        run.result()


def test_unreadable_messages_do_not_prove_that_the_question_is_absent() -> None:
    for messages, verdict in (
        ([{"speaker": "me", "says": PROMPT}], Verdict.UNCLEAR),
        ([{"role": "system", "content": "Be brief."}], Verdict.ABSENT),
    ):
        run = new_run(chat_id=CHAT_ID)
        assert feed(run, cutoff(), state(messages), submits=False) is verdict
