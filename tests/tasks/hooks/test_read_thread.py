"""`PlatformHook.read_thread` returns the content of a thread without a second question."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformInputError,
    PlatformNotFoundError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.chat.result import as_plain

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

QUESTION = "revenue by country"


@pytest.mark.parametrize("replay", ["before_cutoff", "none"])
def test_thread_has_the_results_of_its_questions(platform_sandbox: Sandbox, replay: str) -> None:
    hook = PlatformHook()
    first = hook.chat(QUESTION)
    second = hook.chat("top 5 products", chat_id=first.chat_id)
    platform_sandbox.control.set(replay=replay)
    thread = hook.read_thread(first.chat_id)
    assert (thread.chat_id, thread.streaming) == (first.chat_id, False)
    for turn, asked in zip(thread.turns, (first, second), strict=True):
        assert turn.answer == asked.answer
        assert turn.truncated is (replay == "none")
        if not turn.truncated:
            assert (turn.queries, turn.searches) == (asked.queries, asked.searches)
        assert turn.message_id == asked.message_id
    assert [turn.prompt for turn in thread.turns] == [QUESTION, "top 5 products"]
    state = platform_sandbox.control.state()
    assert len(state.messages) == len(state.runs) == 2
    json.dumps(thread.to_json(details=True))


def test_a_thread_that_is_streaming_is_read_without_waiting(platform_sandbox: Sandbox) -> None:
    hook = PlatformHook()
    chat_id = hook.chat(QUESTION).chat_id
    platform_sandbox.control.set_breakpoint("before_final", text="top 5 products")

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(hook.chat, "top 5 products", chat_id=chat_id)
        platform_sandbox.control.wait_for_breakpoint("before_final")
        thread = hook.read_thread(chat_id)
        platform_sandbox.control.release()
        asked = asking.result()
    assert thread.streaming
    assert thread.turns[0].answer is not None
    assert thread.turns[1].answer is None
    assert thread.turns[1].queries == asked.queries


def test_connection_or_call_sets_the_owner_of_a_thread(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = PlatformHook()
    mine = hook.chat(QUESTION)
    other = {"externalId": "somebody-else"}
    theirs = hook.chat(QUESTION, session_settings=other)
    with pytest.raises(PlatformNotFoundError):
        hook.read_thread(mine.chat_id, session_settings=other)
    assert hook.read_thread(theirs.chat_id, session_settings=other).turns[0].answer
    with pytest.raises(PlatformNotFoundError):
        hook.read_thread("no-such-thread")
    connection = platform_sandbox.connection_json(session_settings=None)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    without = PlatformHook()
    with pytest.raises(PlatformInputError, match="session_settings"):
        without.read_thread(theirs.chat_id)
    assert without.read_thread(theirs.chat_id, session_settings=other).turns[0].answer


@pytest.mark.parametrize("chat_id", ["", None])
def test_read_thread_refuses_an_empty_chat_id(platform_sandbox: Sandbox, chat_id: Any) -> None:
    with pytest.raises(PlatformInputError):
        PlatformHook().read_thread(chat_id)
    assert platform_sandbox.control.state().requests == []


def test_refused_key_raises_its_error(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault("jsonrpc", api="chat", count=None)
    with pytest.raises(ChatRpcError):
        PlatformHook().read_thread("a-thread")


@pytest.mark.parametrize("replay", ["before_cutoff", "none"])
def test_result_and_thread_contain_no_quoted_credential(
    platform_sandbox: Sandbox, replay: str
) -> None:
    hook, key = PlatformHook(), platform_sandbox.chat_api_key
    question = 'sql: SELECT * FROM "{}"'
    asked = hook.chat(question.format(key), fail_on_tool_error="never")
    assert asked.queries[0].error is not None
    assert "no such table: ***" in asked.queries[0].error
    assert asked.thinking == [f"The user asks: {question.format('***')}"]
    assert key not in json.dumps(as_plain(asked))
    platform_sandbox.control.set(replay=replay)
    thread = hook.read_thread(asked.chat_id)
    assert thread.turns[0].prompt == question.format("***")
    assert [query.error for query in thread.turns[0].queries] == (
        [asked.queries[0].error] if replay != "none" else []
    )
    assert key not in json.dumps(thread.to_json(details=True))
