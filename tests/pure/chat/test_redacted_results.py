"""Results and threads with redacted texts."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.redaction import KnownSecrets
from airflow_provider_platform.resources.chat.result import ChatResult, with_changed_texts
from airflow_provider_platform.resources.chat.thread import ChatThread, ThreadTurn
from airflow_provider_platform.resources.chat.tool_calls import Query, Search

KEY = "key-of-the-connection"


def result_of(word: str) -> ChatResult:
    """A result that holds the word in every text."""
    said = f"it is {word}."
    query = Query(
        *(said, said, f"SELECT '{word}'"),
        columns=[{"name": said}],
        rows=[[said, 1, None], [2, said, said]],
        chart={"title": {"text": said}},
        error=said,
        user_request=said,
    )
    search = Search(said, [{"name": said, "members": [said]}], said)
    return ChatResult(
        answer=said,
        chat_id="chat",
        message_id="message",
        queries=[Query(sql="SELECT 1"), query],
        usage={"model": said, "tokens": 7},
        tool_errors=[said],
        searches=[search],
        thinking=[said],
    )


def thread_of(result: ChatResult) -> ChatThread:
    """A thread with this result, after a turn without queries."""
    turn = ThreadTurn(
        *("message", result.answer, result.answer, result.queries, result.usage),
        *(result.searches, result.thinking),
    )
    return ChatThread("chat", False, [ThreadTurn("first", "plain"), turn])


def test_every_text_of_a_result_and_of_a_thread_is_redacted() -> None:
    secrets = KnownSecrets([KEY])
    shown, expected = result_of(KEY), result_of("***")
    assert with_changed_texts(shown, secrets.redact_data) == expected
    assert with_changed_texts(thread_of(shown), secrets.redact_data) == thread_of(expected)
    assert shown == result_of(KEY)


def test_result_without_secrets_is_returned_uncopied() -> None:
    secrets = KnownSecrets([KEY])
    shown = result_of("plain")
    rows = shown.queries[1].rows
    assert with_changed_texts(shown, secrets.redact_data) is shown
    assert with_changed_texts(thread := thread_of(shown), secrets.redact_data) is thread
    quoted = ChatResult(KEY, "chat", "message", shown.queries)
    assert with_changed_texts(quoted, secrets.redact_data).queries[1].rows is rows


def test_secret_that_is_the_name_of_a_field_breaks_no_result() -> None:
    secrets = KnownSecrets(["thinking", "tool_errors"])
    found: Any = with_changed_texts(thread_of(result_of("the thinking")), secrets.redact_data)
    assert found.turns[1].answer == "it is the ***."
    assert found.turns[1].queries[1].rows[0][0] == "it is the ***."
