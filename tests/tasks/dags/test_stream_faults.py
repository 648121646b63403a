"""Every fault of a chat stream, over HTTP: the same answer, one user message, no second run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    ChatBusyError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.resources.chat.result import ChatResult
    from airflow_provider_platform.sandbox.server import Sandbox

QUESTION = "revenue by country"


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


REPLAYS: list[dict[str, Any]] = [
    {"replay": "before_cutoff"},
    {"replay": "after_cutoff"},
    {"replay": "overlap"},
    {"follow_up": "state"},
]


@pytest.mark.parametrize("settings", REPLAYS, ids=str)
def test_records_that_a_reconnect_repeats_change_nothing(
    platform_sandbox: Sandbox, settings: dict[str, Any]
) -> None:
    expected = undisturbed(platform_sandbox)
    platform_sandbox.control.set(pace=0.02, **settings)
    platform_sandbox.control.fault("cut", after=11)
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
    ("huge_line", {}),
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


def test_if_thread_busy_decides_whether_the_task_waits_or_fails(platform_sandbox: Sandbox) -> None:
    given = {"chat_id": ask().chat_id}
    control = platform_sandbox.control
    control.set_breakpoint("mid_stream", text="orders per month")
    with ThreadPoolExecutor() as others:
        other = others.submit(ask, "orders per month", **given)
        control.wait_for_breakpoint("mid_stream")
        with pytest.raises(ChatBusyError):
            ask("top 5 products", **given, if_thread_busy="fail")
        waiting = others.submit(ask, "top 5 products", **given)
        control.wait_until(lambda state: [m.outcome for m in state.messages].count("busy") >= 3)
        control.release()
        assert other.result().answer
        assert waiting.result().answer
    texts = [run.text for run in platform_sandbox.control.state().runs]
    assert texts == [QUESTION, "orders per month", "top 5 products"]
