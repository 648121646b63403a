"""Every fault of a chat stream, over HTTP: the same answer, one user message, no second run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatBusyError,
    ChatNoAnswerError,
    ChatQuotaError,
    ChatRpcError,
    ChatStreamError,
    ChatToolError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.resources.chat.result import ChatResult
    from airflow_provider_platform.sandbox.server import Sandbox

QUESTION = "revenue by country"
RECORDS = 19
"""Lines that the answer to QUESTION has in the sandbox, `__cutoff__` included."""


@pytest.fixture
def short_timeout_sandbox(platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """The sandbox, and a connection that takes one second of silence for a dead stream."""
    connection = platform_sandbox.connection_json(stream_idle_timeout=1)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    return platform_sandbox


def ask(prompt: str = QUESTION, **options: Any) -> ChatResult:
    return PlatformHook().chat(prompt, **{"poll_interval": 0.05, "timeout": 60, **options})


def undisturbed(sandbox: Sandbox) -> ChatResult:
    """What the same question gives without a fault."""
    result = ask()
    sandbox.control.reset()
    return result


def same(found: ChatResult, expected: ChatResult) -> bool:
    """Alike but for ids and usage."""

    def plain(result: ChatResult) -> list[Any]:
        return [
            result.answer,
            [replace(query, uuid=None, memory_id=None) for query in result.queries],
        ]

    return plain(found) == plain(expected)


def assert_asked_once(sandbox: Sandbox) -> None:
    state = sandbox.control.state()
    assert [message.outcome for message in state.messages] == ["started"]
    assert len(state.runs) == 1


@pytest.mark.parametrize("after", [1, 6, 12, RECORDS])
@pytest.mark.parametrize("fault", [{}, {"bytes": 7}, {"inside_character": True}, {"reset": True}])
def test_connection_cut_after_any_record_gives_the_same_answer(
    platform_sandbox: Sandbox, after: int, fault: dict[str, Any]
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.fault("cut", after=after, **fault)
    assert same(ask(), expected)
    assert_asked_once(platform_sandbox)


REPLAYS: list[dict[str, Any]] = [
    {"replay": "before_cutoff"},
    {"replay": "after_cutoff"},
    {"replay": "overlap"},
    {"follow_up": "state"},
]


@pytest.mark.parametrize("settings", REPLAYS, ids=str)
@pytest.mark.parametrize("after", [2, 11])
def test_records_that_a_reconnect_repeats_change_nothing(
    platform_sandbox: Sandbox, settings: dict[str, Any], after: int
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.set(pace=0.02, **settings)
    platform_sandbox.control.fault("cut", after=after)
    found = ask()
    assert same(found, expected)
    assert_asked_once(platform_sandbox)


def test_queries_that_the_service_does_not_repeat_are_reported_as_missing(
    platform_sandbox: Sandbox,
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.set(pace=0.02, follow_up="state", replay="none")
    platform_sandbox.control.fault("cut", after=2)
    found = ask()
    assert found.answer == expected.answer
    assert (found.queries, found.truncated, expected.truncated) == ([], True, False)
    assert_asked_once(platform_sandbox)


ONE_ANSWER: list[tuple[str, dict[str, Any]]] = [
    ("close", {"after": 8}),
    ("silence", {"after": 8}),
    ("blank_lines", {"after": 8, "interval": 0.1}),
    ("gzip", {}),
    ("dribble", {}),
    ("repeat_deltas", {}),
    ("same_sort", {}),
    ("deltas_only", {}),
    ("unknown_records", {}),
    ("huge_line", {}),
    ("decoy_final", {}),
    ("wrong_order", {"order": "usage_first"}),
    ("wrong_order", {"order": "result_first"}),
    ("suspend", {"after": 8, "resume": "follow_up"}),
]


@pytest.mark.parametrize(("kind", "given"), ONE_ANSWER, ids=str)
def test_stream_fault_does_not_change_the_answer(
    short_timeout_sandbox: Sandbox, kind: str, given: dict[str, Any]
) -> None:
    expected = undisturbed(short_timeout_sandbox)
    short_timeout_sandbox.control.fault(kind, **given)
    found = ask()
    assert found.answer == expected.answer
    assert [query.rows for query in found.queries] == [query.rows for query in expected.queries]
    assert_asked_once(short_timeout_sandbox)


def test_half_an_answer_in_the_thread_is_not_an_answer(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault("deltas_only", kept="half")
    with pytest.raises(ChatNoAnswerError, match="last said: Revenue by country"):
        ask()
    assert_asked_once(platform_sandbox)
    looks = [one for one in platform_sandbox.control.state().requests if one.has_input is False]
    assert len(looks) == 1


def test_messages_of_the_state_confirm_an_answer(platform_sandbox: Sandbox) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.set(replay="none")
    platform_sandbox.control.fault("deltas_only")
    assert ask().answer == expected.answer
    assert_asked_once(platform_sandbox)


def test_refusal_may_span_several_lines(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault(
        "jsonrpc", api="chat", indented=True, message="the key is revoked", count=None
    )
    with pytest.raises(ChatRpcError, match="the key is revoked"):
        ask()
    ok, message = PlatformHook().test_connection()
    assert not ok
    assert "the key is revoked" in message


def test_line_separators_inside_a_text_are_kept(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault("line_separators")
    assert set("\u2028\u2029\u0085") & set(ask().answer)
    assert_asked_once(platform_sandbox)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "answer",
    [
        {"status": 429, "retry_after": 1},
        {"status": 429, "retry_after": 1, "retry_after_form": "date"},
        {"status": 503},
        {"status": 500, "body": "html"},
    ],
    ids=str,
)
def test_a_reconnect_that_is_refused_is_tried_again(
    platform_sandbox: Sandbox, answer: dict[str, Any]
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.fault("cut", after=8)
    platform_sandbox.control.fault("status", has_input=False, count=2, **answer)
    assert same(ask(), expected)
    assert_asked_once(platform_sandbox)


@pytest.mark.parametrize(
    "answer", [{"status": 429, "retry_after": 0}, {"status": 503, "retry_after": 0}]
)
def test_a_prompt_that_was_not_processed_is_sent_again(
    platform_sandbox: Sandbox, answer: dict[str, Any]
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.fault("status", has_input=True, **answer)
    assert same(ask(), expected)
    assert_asked_once(platform_sandbox)


def test_a_run_that_stays_suspended_gets_its_input_repeated_once(
    platform_sandbox: Sandbox,
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.fault("suspend", after=8, resume="input")
    assert same(ask(), expected)
    state = platform_sandbox.control.state()
    assert [message.outcome for message in state.messages] == ["started", "resumed"]
    assert len(state.runs) == 1


ENDS: list[tuple[str, dict[str, Any], type[PlatformError]]] = [
    ("abort", {"after": 8}, ChatAbortedError),
    ("error", {"after": 8, "message": "the model is overloaded"}, ChatStreamError),
    ("error", {"after": 8, "message": "Token limit exceeded"}, ChatQuotaError),
    ("error", {"after": 8, "form": "jsonrpc"}, ChatStreamError),
    ("broken_json", {"after": 8}, PlatformProtocolError),
    ("no_answer", {}, ChatNoAnswerError),
    ("no_final", {}, ChatNoAnswerError),
    ("answer_only_in_state", {}, ChatNoAnswerError),
]


@pytest.mark.parametrize(("kind", "given", "error"), ENDS, ids=str)
def test_error_of_an_ended_run_quotes_the_service(
    platform_sandbox: Sandbox, kind: str, given: dict[str, Any], error: type[PlatformError]
) -> None:
    platform_sandbox.control.fault(kind, **given)
    with pytest.raises(error) as caught:
        ask()
    assert given.get("message", "") in str(caught.value)
    assert_asked_once(platform_sandbox)
    assert not platform_sandbox.control.state().active_runs


def test_same_try_does_not_repeat_a_question_that_lost_its_chat_id(
    platform_sandbox: Sandbox,
) -> None:
    platform_sandbox.control.fault("lost_response")
    with pytest.raises(PlatformTransportError, match="may still be running"):
        ask()
    assert_asked_once(platform_sandbox)


def test_question_with_a_lost_response_is_found_in_a_given_thread(
    platform_sandbox: Sandbox,
) -> None:
    first = ask("top 5 products")
    platform_sandbox.control.fault("lost_response", text=QUESTION)
    found = ask(chat_id=first.chat_id)
    assert found.answer.startswith("Revenue by country")
    assert len(platform_sandbox.control.state().runs) == 2


def test_answer_of_an_earlier_turn_is_not_returned(platform_sandbox: Sandbox) -> None:
    first = ask()
    platform_sandbox.control.fault("no_answer", text="top 5 products")
    with pytest.raises(ChatNoAnswerError):
        ask("top 5 products", chat_id=first.chat_id)


def test_if_thread_busy_decides_whether_the_task_waits_or_fails(platform_sandbox: Sandbox) -> None:
    wait_for_a_busy_thread(platform_sandbox)


def wait_for_a_busy_thread(platform_sandbox: Sandbox) -> None:
    first = ask()
    platform_sandbox.control.set_breakpoint("mid_stream", text="orders per month")
    import threading

    other = threading.Thread(
        target=ask, args=("orders per month",), kwargs={"chat_id": first.chat_id}
    )
    other.start()
    platform_sandbox.control.wait_for_breakpoint("mid_stream")
    with pytest.raises(ChatBusyError):
        ask("top 5 products", chat_id=first.chat_id, if_thread_busy="fail")
    waiting = threading.Thread(
        target=ask, args=("top 5 products",), kwargs={"chat_id": first.chat_id}
    )
    waiting.start()
    platform_sandbox.control.wait_until(
        lambda state: [m.outcome for m in state.messages].count("busy") >= 3
    )
    platform_sandbox.control.release()
    other.join(30)
    waiting.join(30)
    texts = [run.text for run in platform_sandbox.control.state().runs]
    assert texts == [QUESTION, "orders per month", "top 5 products"]


def test_failed_tool_call_is_reported(platform_sandbox: Sandbox) -> None:
    with pytest.raises(ChatToolError, match="Bad branch"):
        ask(active_branch_name="nowhere")
    (query,) = ask(active_branch_name="nowhere", fail_on_tool_error="never").queries
    assert "Bad branch" in str(query.error)
