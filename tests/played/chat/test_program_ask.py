"""Asking: what is sent and when, with lost answers and busy threads."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    ChatBusyError,
    ChatRpcError,
    ChatSuspendedError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInputError,
    PlatformOutcomeUnknownError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.chat.request import ChatRequest, new_message_id
from airflow_provider_platform.resources.chat.run_state import Accepted
from tests.support.fakes.chat_calls import (
    AFTER_ECHO,
    AFTER_MARK,
    EARLIER,
    accepted_call,
    new_call,
)
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import NOON, Fault, PlayedService, drive
from tests.support.fakes.streams import (
    CHAT_ID,
    EXPECTED,
    LATE,
    MESSAGE_ID,
    PROMPT,
    Turn,
    cutoff,
    encode,
    serialized,
    state,
)


def test_prompt_in_a_new_thread_is_sent_once_and_answered() -> None:
    service = PlayedService()
    call = new_call(service)
    assert call.ask() is True
    assert call.result() == EXPECTED
    assert service.bodies == [{"input": PROMPT, "messageId": MESSAGE_ID}]
    assert service.sleeps == []
    assert Accepted(CHAT_ID, MESSAGE_ID) in service.notices


def test_follow_up_names_its_thread_in_the_request() -> None:
    service = PlayedService(earlier=(EARLIER,))
    call = new_call(service, thread=True)
    assert call.ask() is True
    assert call.result() == EXPECTED
    assert service.bodies == [{"input": PROMPT, "messageId": MESSAGE_ID, "chatId": CHAT_ID}]


def test_worker_stops_reading_at_acceptance_and_the_trigger_follows() -> None:
    service = PlayedService()
    call = new_call(service)
    assert call.ask(until_end=False) is False
    assert call.run.accepted
    assert service.now < NOON + 2
    following = accepted_call(service)
    service.starts.pop()
    assert following.follow() is True
    assert following.result() == EXPECTED
    assert service.bodies[1:] == [{"chatId": CHAT_ID, "messageId": MESSAGE_ID}]


@pytest.mark.parametrize("kind", ["reset", "close", "silence", "blank"])
@pytest.mark.parametrize("thread", [True, False])
def test_broken_answer_does_not_repeat_the_question(kind: Any, thread: bool) -> None:
    until_end = encode(*Turn().stream())
    for after in sorted({*range(0, len(until_end), 97), AFTER_MARK, AFTER_ECHO}):
        service = PlayedService(faults=[Fault(kind, after)])
        call = new_call(service, thread=thread)
        if after < AFTER_MARK and not thread:
            with pytest.raises(
                PlatformTransportError, match=r"may still be running.*same message id"
            ):
                call.ask()
            assert call.run.chat_id is None
        else:
            assert call.ask() is True
            assert call.result() in (EXPECTED, LATE)
        assert len(service.prompts) == 1
        assert len(service.starts) == 1


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_question_that_the_thread_does_not_hold_is_asked_again(status: int) -> None:
    service = PlayedService(earlier=(EARLIER,), faults=[Fault("refuse", status=status)])
    call = new_call(service, thread=True)
    assert call.ask() is True
    assert ["input" in body for body in service.bodies] == [True, False, True]
    assert len(service.starts) == 1
    assert service.sleeps


@pytest.mark.parametrize("repeats", [False, True])
def test_outcome_is_unknown_if_a_question_sent_twice_is_not_in_its_thread(
    repeats: bool,
) -> None:
    """The first of the two may have been an earlier try's."""
    service = PlayedService(
        earlier=(EARLIER,), faults=[Fault("refuse", status=500), Fault("none")] * 9
    )
    call = new_call(service, thread=True, max_attempts=5)
    program = call.chat.submit(api_with(service.clock), repeats=repeats)
    with pytest.raises(PlatformOutcomeUnknownError, match=r"sent twice.*Try later"):
        drive(program, service)
    assert len(service.prompts) == (1 if repeats else 2)
    assert len({body["messageId"] for body in service.prompts}) == 1
    assert service.starts == []


def test_a_question_that_a_busy_thread_did_not_process_does_not_count_as_sent() -> None:
    refused, lost = Fault("refuse", status=500), Fault("none")
    service = PlayedService(
        earlier=(EARLIER,), faults=[refused, lost, Fault("none"), refused], busy_until=NOON + 3
    )
    call = new_call(service, thread=True, poll_interval=5.0)
    assert call.ask() is True
    assert [("input" in body) for body in service.bodies] == [
        *(True, False),  # refused, and not in the thread
        True,  # busy
        *(True, False),  # refused, and not in the thread
        True,
    ]
    assert len(service.starts) == 1


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault("refuse", status=500), PlatformServerError, "the service answered 500: Try later"),
        (Fault("refuse", status=503), PlatformServerError, "the service answered 503: Try later"),
        (Fault("lose"), PlatformTransportError, "no complete answer in time"),
    ],
    ids=["500", "503", "lost"],
)
def test_a_question_in_a_new_thread_that_may_be_running_is_not_repeated(
    fault: Fault, error: type[PlatformError], words: str
) -> None:
    service = PlayedService(faults=[fault])
    call = new_call(service)
    with pytest.raises(error, match="may still be running") as caught:
        call.ask()
    assert type(caught.value) is error
    assert words in caught.value.message
    assert getattr(caught.value, "status", None) == (None if fault.kind == "lose" else fault.status)
    assert caught.value.retryable
    assert len(service.bodies) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault("unreachable"),
        Fault("refuse", status=429),
        Fault("refuse", status=503, retry_after="7"),
    ],
    ids=["unreachable", "429", "503 with Retry-After"],
)
def test_prompt_that_was_not_processed_is_repeated(fault: Fault) -> None:
    service = PlayedService(faults=[fault, fault])
    call = new_call(service)
    assert call.ask() is True
    assert len(service.prompts) == 3
    assert len(service.starts) == 1
    if fault.retry_after:
        assert all(7 <= pause <= 14 for pause in service.sleeps)


def test_prompt_is_sent_max_attempts_times_at_most() -> None:
    service = PlayedService(faults=[Fault("unreachable")] * 9)
    with pytest.raises(PlatformTransportError, match="no connection"):
        new_call(service, max_attempts=4).ask()
    assert len(service.bodies) == 4


def test_repeated_prompt_stays_in_the_thread_that_the_service_named() -> None:
    """The answer broke after the mark and nothing was processed: not a second thread."""
    service = PlayedService(scripted=[[cutoff()], [cutoff(), state([])]])
    call = new_call(service)
    assert call.ask() is True
    assert call.result() == EXPECTED
    assert [body.get("chatId") for body in service.bodies] == [None, CHAT_ID, CHAT_ID]
    assert ["input" in body for body in service.bodies] == [True, False, True]


def test_outcome_needs_a_full_stream_if_the_service_names_no_thread() -> None:
    unnamed = [cutoff(chat_id=None), *Turn().records()]
    with pytest.raises(PlatformTransportError, match="may still be running"):
        new_call(PlayedService(scripted=[unnamed])).ask()
    call = new_call(PlayedService(scripted=[[*unnamed, *Turn().end()]]))
    assert call.ask(until_end=False) is True
    assert call.result() == {**EXPECTED, "chat_id": ""}


def test_retry_looks_for_a_prompt_that_its_thread_does_not_show() -> None:
    """The try that sent it may not take it for dead: a retry may read more in the thread."""
    service = PlayedService(scripted=[[cutoff()]] * 9)
    with pytest.raises(PlatformTransportError, match="A retry looks for the message"):
        new_call(service, thread=True).ask()
    assert len(service.prompts) == 1


@pytest.mark.parametrize("messages", [[serialized("HumanMessage", PROMPT)], None])
@pytest.mark.parametrize(
    ("faults", "came"),
    [([], ""), ([Fault("refuse", status=500)], r"500: Try later.*")],
    ids=["stream without records", "500"],
)
def test_outcome_is_unknown_if_the_thread_does_not_show_it(
    messages: Any, faults: list[Fault], came: str
) -> None:
    shown = [cutoff(), state(messages)]
    service = PlayedService(scripted=[shown] if faults else [[], shown], faults=[*faults])
    words = f"{came}did not confirm the message.*may be an earlier one"
    with pytest.raises(PlatformOutcomeUnknownError, match=words) as caught:
        new_call(service, thread=True).ask()
    assert not caught.value.retryable
    assert len(service.prompts) == 1


def test_a_busy_thread_fails_the_task_if_the_author_chose_fail() -> None:
    service = PlayedService(busy_until=NOON + 12)
    with pytest.raises(ChatBusyError, match="if_thread_busy"):
        new_call(service, thread=True, if_thread_busy="fail").ask()
    assert service.starts == []


def test_a_busy_thread_is_recognized_by_its_error_status() -> None:
    busy = Fault("refuse", status=409, body=b'{"error": "Streaming for thread is in progress"}')
    service = PlayedService(faults=[busy, busy])
    assert new_call(service, thread=True).ask() is True
    assert service.sleeps == [5.0, 5.0]


def test_a_thread_that_stays_busy_ends_at_the_deadline() -> None:
    service = PlayedService(busy_until=NOON + 10_000)
    with pytest.raises(PlatformDeadlineError, match="was not accepted before its deadline") as late:
        new_call(service, thread=True, deadline=NOON + 60).ask()
    assert "raise timeout, or the task's execution_timeout if that is shorter" in str(late.value)
    assert service.now == NOON + 60


def test_response_to_a_repeated_input_is_read_until_it_shows_the_run() -> None:
    """That the message was accepted before says nothing of the repetition."""
    service = PlayedService(suspends_at=6, resume="input", replay="none", by_lines=True)
    call = new_call(service)
    with pytest.raises(ChatSuspendedError):
        call.ask()
    following = new_call(service, thread=True)
    following.run.accepted = True
    assert following.ask(until_end=False) is False
    assert list(following.run._records())


def test_another_prompt_is_not_sent_under_the_id_of_a_suspended_run() -> None:
    """A template may render to another text when the worker resumes the run."""
    service = PlayedService(suspends_at=6, resume="input")
    call = accepted_call(service)
    other = ChatRequest.ask("Delete everything?", message_id=MESSAGE_ID)
    program = replace(call.chat, request=other).follow_or_resume(api_with(service.clock))
    with pytest.raises(ChatSuspendedError, match="now renders to another text"):
        drive(program, service)
    assert service.prompts == []


def test_refusal_of_a_repeated_input_is_reported() -> None:
    refused = {"jsonrpc": "2.0", "error": {"code": -32001, "message": "Unauthorized"}}
    service = PlayedService(scripted=[[cutoff(streaming=True), refused]], by_lines=True)
    call = new_call(service, thread=True)
    call.run.accepted = True
    with pytest.raises(ChatRpcError, match="Unauthorized"):
        call.ask(until_end=False)


@given(st.floats(min_value=1e9, max_value=9_999_999_999.0))
def test_message_id_is_the_time_and_five_digits_and_fits_64_bits(now: float) -> None:
    number = new_message_id(now).removesuffix("-message")
    assert re.fullmatch(r"[0-9]{18}", number)
    assert int(number[:13]) == int(now * 1000)
    assert int(number) < 2**63


@given(st.lists(st.integers(min_value=0, max_value=3), min_size=2, max_size=200))
def test_message_ids_are_distinct_however_the_clock_goes(milliseconds: list[int]) -> None:
    made = [new_message_id(NOON + tick / 1000) for tick in milliseconds]
    assert len(set(made)) == len(made)


def test_each_process_draws_digits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([7, 40_000])
    monkeypatch.setattr(secrets, "randbelow", lambda _below: next(drawn))
    ids = []
    for process in (-1, -2, -1):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        ids.append(new_message_id(NOON)[13:18])
    assert ids == ["00007", "40000", "00008"]


@pytest.mark.parametrize("number", ["1795262400000", str(2**63 - 1)])
def test_message_id_of_64_bits_is_sent(number: str) -> None:
    assert ChatRequest.ask(PROMPT, message_id=f"{number}-message").message_id


@pytest.mark.parametrize("number", [str(2**63), "1" * 25, "9" * 5000])
def test_message_id_of_more_than_64_bits_is_refused(number: str) -> None:
    with pytest.raises(PlatformInputError, match="fits a signed 64-bit integer"):
        ChatRequest.ask(PROMPT, message_id=f"{number}-message")


def test_retry_after_beyond_the_deadline_ends_the_question_at_once() -> None:
    service = PlayedService(faults=[Fault("refuse", status=429, retry_after="86400")])
    with pytest.raises(PlatformRateLimitError, match="Try later"):
        new_call(service).ask()
    assert service.sleeps == []
    assert len(service.bodies) == 1
