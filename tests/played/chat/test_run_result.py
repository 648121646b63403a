"""What of a run becomes its answer, from records or from the messages of the state, and the events
that tell of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_platform.client.errors import ChatNoAnswerError
from airflow_provider_platform.resources.chat.record_reader import text_of
from airflow_provider_platform.resources.chat.result import as_plain, of_this_release
from airflow_provider_platform.resources.chat.run_state import (
    Accepted,
    ChatEvent,
    Detail,
    ThreadNamed,
    Verdict,
)
from airflow_provider_platform.resources.chat.tool_calls import Search, ToolCallEnded
from tests.support.fakes.streams import (
    ANSWER,
    CHAT_ID,
    EARLIER_ID,
    MESSAGE_ID,
    PROMPT,
    Record,
    Turn,
    aborted,
    cutoff,
    echo,
    feed,
    final,
    new_run,
    query_result,
    result_of,
    serialized,
    state,
    tool,
)


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        (["final"], True),
        (["final", "answer"], True),
        (["final", "critic", "note"], False),
        (["agent", "final"], False),
        (["agent"], False),
        ([], False),
        (None, False),
        ("final", False),
    ],
)
def test_answer_has_the_graph_path_of_the_final_node(path: Any, counts: bool) -> None:
    answer = final("The one.", graphPath=path)
    if counts:
        assert result_of(answer).answer == "The one."
        return
    with pytest.raises(ChatNoAnswerError, match=r"last said: The one\."):
        result_of(answer)


def test_the_last_final_record_counts() -> None:
    sent = [final("First.", record_id="a"), final("Second.", record_id="b")]
    assert result_of(*sent).answer == "Second."
    assert result_of(*sent, final("Note.", record_id="c", graphPath=["x"])).answer == "Second."
    assert result_of(*sent, final("First, again.", record_id="a")).answer == "First, again."


def test_final_record_without_text_is_not_an_answer() -> None:
    assert result_of(final("Yes."), final(" \n", record_id="b")).answer == "Yes."
    with pytest.raises(ChatNoAnswerError, match=f"nothing.*chat {CHAT_ID}, message {MESSAGE_ID}"):
        result_of(final(""))


def test_user_records_and_tool_records_are_not_answers() -> None:
    said = {**final("I am the user."), "role": "user"}
    with pytest.raises(ChatNoAnswerError):
        result_of(said)
    with pytest.raises(ChatNoAnswerError):
        result_of({**tool("serviceMeta", result={}), "graphPath": ["final"], "content": "x"})


def test_error_quotes_the_agents_text_in_one_line() -> None:
    sent = final("line one\n::group::two", graphPath=["agent"])
    with pytest.raises(ChatNoAnswerError) as caught:
        result_of(sent)
    assert "line one\\n:\\:group::two" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_delta_appends_and_a_full_record_replaces() -> None:
    delta = {"isDelta": True}
    sent = [final("Re", **delta), final("venue", **delta)]
    assert result_of(*sent).answer == "Revenue"
    assert result_of(*sent, final("Income")).answer == "Income"
    assert result_of(*sent, final("Income"), final(" rose", **delta)).answer == "Income rose"


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "Re"}, "venue", {"type": "image"}, 3]
    assert result_of(final(parts)).answer == "Revenue"  # type: ignore[arg-type]
    nested: Any = "Revenue"
    for _ in range(1_000):
        nested = [{"text": nested}]
    assert text_of(nested) == ""


def test_answer_comes_from_the_state_messages_if_records_were_lost() -> None:
    human = serialized("HumanMessage", PROMPT)

    def answer(*messages: Record) -> str:
        run = new_run()
        assert feed(run, cutoff(), echo(), clean=False) is Verdict.BROKEN
        assert feed(run, cutoff(), state(list(messages)), submits=False) is Verdict.OVER
        return run.result().answer

    assert answer(human, serialized("AIMessage", "So it is.")) == "So it is."
    assert answer(human, serialized("AIMessageChunk", [{"text": "So it is."}])) == "So it is."
    assert answer({"no": "kind"}, human, serialized("AIMessage", "So.")) == "So."
    padded = serialized("HumanMessage", f" {PROMPT}\n")
    assert answer(padded, serialized("AIMessage", "So.")) == "So."


WORKING = serialized("AIMessage", "Working on it.")


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("replay", ["none", "before", "after"])
def test_completely_received_run_without_a_final_record_has_no_answer(
    replay: str, given: bool
) -> None:
    """The last words of its messages are no answer then, only what the agent said last."""
    run = new_run(in_existing_thread=given, chat_id=CHAT_ID if given else None)
    note = final("Let me see.", graphPath=["agent"], record_id="note")
    end = state([serialized("HumanMessage", PROMPT, MESSAGE_ID), WORKING])
    sent = {
        "none": [cutoff(), echo(), note, end],
        "before": [echo(), note, cutoff(streaming=True), end],
        "after": [cutoff(streaming=True), echo(), note, end],
    }[replay]
    if replay != "none":
        assert feed(run, cutoff(), echo(), clean=False) is Verdict.BROKEN
        sent[-1]["state"]["isStreaming"] = False
    assert feed(run, *sent, submits=replay == "none") is Verdict.OVER
    with pytest.raises(ChatNoAnswerError, match=r"last said: Let me see\."):
        run.result()


def test_error_quotes_last_agent_text_from_the_state() -> None:
    run = new_run()
    feed(run, cutoff(), echo(), state([serialized("HumanMessage", PROMPT), WORKING]))
    with pytest.raises(ChatNoAnswerError, match=r"last said: Working on it\."):
        run.result()


CALLING = serialized("AIMessage", "I look it up.", tool_calls=[{"name": "SqlApi"}])
OLD = [serialized("HumanMessage", "Old?"), serialized("AIMessage", "An old answer.")]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        OLD,
        [serialized("HumanMessage", PROMPT)],
        [serialized("HumanMessage", PROMPT), CALLING],
        [serialized("HumanMessage", PROMPT), serialized("AIMessage", "x"), CALLING],
        [
            serialized("HumanMessage", PROMPT),
            serialized("AIMessage", "x", additional_kwargs={"tool_calls": [{}]}),
        ],
        [
            serialized("HumanMessage", PROMPT),
            serialized("AIMessage", "x"),
            serialized("ToolMessage", "{}"),
        ],
        [serialized("HumanMessage", PROMPT), serialized("AIMessage", " ")],
        [serialized("HumanMessage", PROMPT), serialized("AIMessage", "x"), *OLD],
        [serialized("HumanMessage", PROMPT, EARLIER_ID), serialized("AIMessage", "x")],
        ["HumanMessage", 7, {"id": "HumanMessage"}, {"id": [], "kwargs": 1}],
    ],
)
def test_messages_of_other_turns_and_unfinished_messages_are_not_answers(messages: Any) -> None:
    run = new_run(in_existing_thread=True, chat_id=CHAT_ID)
    assert feed(run, cutoff(), echo(), state(messages)) is Verdict.OVER
    with pytest.raises(ChatNoAnswerError):
        run.result()


def test_streamed_answer_takes_precedence_over_the_messages() -> None:
    run = new_run()
    messages = [serialized("HumanMessage", PROMPT), serialized("AIMessage", "Another text.")]
    feed(run, cutoff(), echo(), final("Streamed."), state(messages))
    assert run.result().answer == "Streamed."


def test_result_contains_nothing_of_an_earlier_turn() -> None:
    """Not its answer, not its queries, in any record."""
    earlier = Turn(prompt="Old?", message_id=EARLIER_ID, answer="An old answer.", name="old-")
    own = echo()
    thought = final("Hm.", graphPath=["agent"], record_id="hm")
    for sent in (
        [*earlier.records(), cutoff(), own, thought],
        [cutoff(), *earlier.records(), own, thought],
        [cutoff(), own, thought, *earlier.records()],
        [*earlier.records(), own, thought, cutoff()],
        [own, thought, *earlier.records(), cutoff()],
        [own, thought, cutoff(), *earlier.records()],
    ):
        run = new_run(in_existing_thread=True, chat_id=CHAT_ID)
        assert feed(run, *sent, state(earlier.messages())) is Verdict.OVER
        with pytest.raises(ChatNoAnswerError, match="last said: Hm"):
            run.result()
        assert run._records().queries() == []


def test_result_contains_nothing_of_an_aborted_run_of_the_same_message() -> None:
    stopped = [echo(), tool("SqlApi", result=query_result([])), final("Half", record_id="half")]
    run = new_run()
    feed(run, cutoff(), *stopped, clean=False)
    again = [*stopped, aborted(), cutoff(), echo()]
    assert feed(run, *again, final(ANSWER), state()) is Verdict.OVER
    assert (run.result().answer, run.result().queries) == (ANSWER, [])
    assert not run.result().truncated
    cut_again = new_run()
    assert feed(cut_again, *again, final(ANSWER), state()) is Verdict.OVER
    feed(cut_again, *again, clean=False, submits=False)
    assert (cut_again.result().answer, cut_again.result().queries) == (ANSWER, [])
    without_answer = new_run()
    feed(without_answer, cutoff(), *stopped, clean=False)
    assert feed(without_answer, *again, state()) is Verdict.OVER
    with pytest.raises(ChatNoAnswerError):
        without_answer.result()


def test_events_have_the_lines_of_a_log() -> None:
    run = new_run()
    events: list[ChatEvent] = []
    turn = Turn()
    feed(run, *turn.stream(), events=events)
    agent = "service_data_analyst_agent"
    found = [str(one) if isinstance(one, ToolCallEnded) else one for one in events]
    assert found == [
        ThreadNamed(CHAT_ID, MESSAGE_ID),
        Accepted(CHAT_ID, MESSAGE_ID),
        Detail(f"Stage: {agent}"),
        Detail("Thinking: Let me think."),
        "Tool call 'revenue': 1.0 s",
        "Query 'Revenue': 2 rows, 1.0 s",
        Detail("Stage: final"),
    ]
    again: list[ChatEvent] = []
    feed(run, cutoff(), *turn.records(), submits=False, events=again)
    assert again == []


def test_a_thought_that_comes_in_pieces_is_reported_once_and_cut() -> None:
    run = new_run()
    events: list[ChatEvent] = []
    pieces = [
        final("", record_id="t", graphPath=["x"], isDelta=True, isInProcess=True, thinking=piece)
        for piece in ("Let me ", "see.\n", *["x" * 600] * 9)
    ]
    pieces.append({**pieces[-1], "isInProcess": False})
    feed(run, cutoff(), echo(), *pieces, final(ANSWER), state(), events=events)
    [thought] = [event for event in events if str(event).startswith("Thinking: ")]
    assert str(thought).startswith(r"Thinking: Let me see.\nxxx")
    assert len(str(thought)) <= len("Thinking: ") + 500
    repeated: list[ChatEvent] = []
    feed(run, cutoff(), echo(), *pieces, final(ANSWER), submits=False, events=repeated)
    assert repeated == []


def test_details_are_in_the_result_if_they_are_requested() -> None:
    cubes = [{"name": "orders", "members": []}]
    searched = {"searchQuery": "revenue", "cubes": cubes, "padding": "x" * 70_000}
    sent = [
        final("", record_id="t", graphPath=["x"], isDelta=True, thinking="Let me "),
        final("", record_id="t", graphPath=["x"], isDelta=True, thinking="see."),
        tool("serviceMeta", {"searchQuery": "revenue"}, searched, record_id="m"),
        tool("cubeMeta", {"searchQuery": "orders"}, {"error": "No model"}, record_id="n"),
        tool(
            "serviceSqlApi",
            {"userRequest": PROMPT, "memoryId": "memory-1"},
            query_result([["a", 1]] * 3),
        ),
        final(ANSWER),
    ]
    found = result_of(*sent, details=True, max_rows=2)
    assert found.thinking == ["Let me see."]
    assert found.searches == [Search("revenue", cubes), Search("orders", error="No model")]
    assert (found.queries[0].user_request, found.queries[0].sent_rows) == (PROMPT, 3)
    plain = found.to_json()
    assert plain.keys() == {"answer", "chat_id", "message_id", "queries", "usage"}
    assert not {"user_request", "sent_rows", "memory_id"} & plain["queries"][0].keys()
    detailed = found.to_json(details=True)
    assert detailed.keys() == {*plain, "searches", "thinking"}
    assert detailed["queries"][0]["user_request"] == PROMPT
    assert detailed["queries"][0]["memory_id"] == "memory-1"
    short = result_of(*sent)
    assert (short.searches, short.thinking) == ([], [])


def test_a_failed_call_is_reported_with_its_error() -> None:
    run = new_run()
    events: list[ChatEvent] = []
    failed = tool("SqlApi", {"queryTitle": "Orders"}, {"error": "Bad branch"})
    feed(run, cutoff(), echo(), failed, events=events)
    assert str(events[-1]) == "Tool call 'Orders' failed after 0.0 s: Bad branch"


def test_character_split_between_two_deltas_is_joined() -> None:
    run = new_run()
    half_first, half_last = b'"\\ud83d"', b'"\\ude00"'

    def delta(content: bytes, sort: int) -> bytes:
        return (
            b'{"id":"f","role":"assistant","graphPath":["final"],"isDelta":true,"sort":%d,'
            b'"isInProcess":false,"content":%s}\n' % (sort, content)
        )

    feed(run, cutoff(), echo(), delta(half_first, 2), delta(half_last, 3), state())
    assert run.result().answer == "\U0001f600"


def test_characters_that_the_database_cannot_store_are_replaced() -> None:
    run = new_run()
    asked = tool("SqlApi", {"sqlQuery": "a\0"}, {"data": [["b\0"]], "schema": [{"name": "c\0"}]})
    feed(run, cutoff(), echo(), json.dumps(asked).encode() + b"\n", final("d\0"), state())
    sent = json.dumps(as_plain(run.result()))
    assert "\\u0000" not in sent
    assert sent.count("\\ufffd") == 4


def test_half_characters_of_queries_and_usage_are_replaced() -> None:
    run = new_run()
    half = "x\ud83d"
    rows = {"data": [{"name": half}], "schema": [{"name": half, "type": "String"}]}
    asked = tool("SqlApi", {"queryTitle": half, "sqlQuery": half}, rows)
    sent = {"id": "__usage__", "role": "assistant", "usage": {half: half}}
    feed(
        run,
        cutoff(),
        echo(),
        json.dumps(asked).encode() + b"\n",
        final(ANSWER),
        state(),
        json.dumps(sent).encode() + b"\n",
    )
    plain = as_plain(run.result())
    json.dumps(plain, ensure_ascii=False).encode()
    assert plain["queries"][0]["title"] == "x\ufffd"
    assert plain["usage"] == {"x\ufffd": "x\ufffd"}


@pytest.mark.parametrize("held", ["Revenue grew by 12 %.", ""])
def test_closing_record_without_text_takes_the_answer_of_the_state(held: str) -> None:
    run = new_run()
    deltas = [final(text, isDelta=True, isInProcess=True) for text in ("Revenue ", "grew")]
    closing = {name: value for name, value in final("").items() if name != "content"}
    messages = [serialized("HumanMessage", PROMPT, MESSAGE_ID), serialized("AIMessage", held)]
    assert feed(run, cutoff(), echo(), *deltas, closing, state(messages)) is Verdict.OVER
    assert run.result().answer == (held or "Revenue grew")


def test_a_chat_id_that_would_forge_log_lines_is_ignored() -> None:
    run = new_run()
    feed(run, cutoff(chat_id="a\n[error] b"), clean=False)
    assert run.chat_id is None
    assert "\n" not in str(new_run(chat_id="a\nb"))


def test_a_stored_result_of_another_release_has_the_fields_of_this_one() -> None:
    run = new_run()
    feed(run, cutoff(), echo(), *Turn().records()[1:], state())
    result = run.result()
    plain = as_plain(result)
    later = {**plain, "new": 1, "queries": [{**query, "new": 2} for query in plain["queries"]]}
    assert of_this_release(later) == plain
    query = {name: value for name, value in plain["queries"][0].items() if name != "chart_error"}
    earlier = {name: value for name, value in plain.items() if name != "searches"}
    assert of_this_release({**earlier, "queries": [query]}) == plain
