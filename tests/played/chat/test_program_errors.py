"""Refusals and errors of a chat run, while asking and while following."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatNoAnswerError,
    ChatQuotaError,
    ChatRpcError,
    ChatStreamError,
    ChatUserLimitError,
    PlatformAddressError,
    PlatformAuthenticationError,
    PlatformBadRequestError,
    PlatformError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformTransportError,
)
from tests.support.fakes.chat_calls import EARLIER, accepted_call, new_call
from tests.support.fakes.played_service import Fault, PlayedService
from tests.support.fakes.streams import EXPECTED, Record, Turn, aborted, cutoff

RPC = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Unauthorized"}}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, PlatformBadRequestError),
        (401, PlatformAuthenticationError),
        (403, PlatformPermissionError),
        (404, PlatformNotFoundError),
    ],
)
@pytest.mark.parametrize("asking", [True, False])
def test_http_error_of_a_chat_request_is_raised_without_a_repeat(
    status: int, error: type[PlatformError], asking: bool
) -> None:
    service = PlayedService(faults=[Fault("refuse", status=status)])
    call = new_call(service) if asking else accepted_call(service)
    with pytest.raises(error, match="Try later"):
        call.ask() if asking else call.follow()
    assert len(service.bodies) == 1


ENDS = [
    ([{"error": "Out of memory"}], ChatStreamError, r"Out of memory\."),
    ([RPC], ChatRpcError, r"Unauthorized.*chat_api_key.*premium or enterprise"),
    ([aborted()], ChatAbortedError, "stopped before it had an answer"),
    (
        [{"error": {"reason": "no memory", "fatal": True}}],
        ChatStreamError,
        r'\{"reason": "no memory", "fatal": true\}\.',
    ),
    (
        [{"error": "Token limit exceeded for this account"}],
        ChatQuotaError,
        "no tokens are left: Token limit exceeded for this account. .*administrator",
    ),
    ([{"error": "Rate limit: 10,000 tokens per minute"}], ChatStreamError, "Rate limit"),
    ([{"error": "The prompt exceeds the limit of 8,000 tokens"}], ChatStreamError, "The prompt"),
    (
        [{"error": "The account reached its limit of external users"}],
        ChatUserLimitError,
        "refused the message: The account reached",
    ),
    (
        [{**RPC, "error": {"code": 1, "message": "Too many external users"}}],
        ChatUserLimitError,
        "10,000 external users",
    ),
]


@pytest.mark.parametrize(("ends", "error", "words"), ENDS)
@pytest.mark.parametrize("asking", [True, False])
def test_error_in_place_of_an_answer_is_reported(
    ends: list[Record], error: type[PlatformError], words: str, asking: bool
) -> None:
    service = PlayedService(records=Turn().records()[:3], ends=ends)
    call = new_call(service) if asking else accepted_call(service)
    with pytest.raises(error, match=words):
        call.ask() if asking else call.follow()
    assert len(service.bodies) == 1


def test_a_run_without_an_answer_is_not_asked_again() -> None:
    turn = Turn()
    ends = turn.end([EARLIER], answered=False)
    service = PlayedService(earlier=(EARLIER,), records=turn.records()[:5], ends=ends)
    call = new_call(service, thread=True)
    assert call.ask() is True
    with pytest.raises(ChatNoAnswerError, match="I look at the model"):
        call.result()
    assert len(service.bodies) == 1


@pytest.mark.parametrize(
    ("junk", "error"), [("{]", PlatformProtocolError), ("<html>", PlatformAddressError)]
)
@pytest.mark.parametrize("asking", [True, False])
def test_line_that_is_not_a_record_fails_the_try(
    junk: str, error: type[PlatformError], asking: bool
) -> None:
    service = PlayedService(scripted=[[junk.encode() + b"\n"]])
    call = new_call(service) if asking else accepted_call(service)
    with pytest.raises(error):
        call.ask() if asking else call.follow()
    assert len(service.bodies) == 1


def test_credentials_are_read_again_once() -> None:
    refused = Fault("refuse", status=401)
    for asking in (True, False):
        service = PlayedService(faults=[refused], reloads=[True])
        call = new_call(service) if asking else accepted_call(service)
        assert (call.ask() if asking else call.follow()) is True
        twice = PlayedService(faults=[refused, refused], reloads=[True])
        call = new_call(twice) if asking else accepted_call(twice)
        with pytest.raises(PlatformAuthenticationError):
            call.ask() if asking else call.follow()
        assert len(twice.bodies) == 2


@pytest.mark.parametrize("received", [1, 2, 3])
@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("until_end", [False, True])
def test_message_is_not_sent_again_after_a_refusal_in_mid_stream(
    received: int, thread: bool, until_end: bool
) -> None:
    turn = Turn()
    first = [*turn.stream()[:received], RPC]
    after = [*turn.records(), cutoff(), *turn.end()]
    service = PlayedService(scripted=[first, after, after], reloads=[True])
    call = new_call(service, thread=thread)
    assert call.ask(until_end=until_end) is until_end
    assert call.run.accepted
    assert len(service.prompts) == 1
    if until_end:
        assert call.result() == EXPECTED


@pytest.mark.parametrize("asking", [True, False])
def test_credentials_are_read_again_after_a_json_rpc_error(asking: bool) -> None:
    service = PlayedService(scripted=[[RPC]], reloads=[True])
    call = new_call(service) if asking else accepted_call(service)
    assert (call.ask() if asking else call.follow()) is True
    service = PlayedService(scripted=[[RPC], [RPC]], reloads=[True])
    call = new_call(service) if asking else accepted_call(service)
    with pytest.raises(ChatRpcError):
        call.ask() if asking else call.follow()
    assert len(service.bodies) == 2


@pytest.mark.parametrize(
    ("recorded", "promise"),
    [(True, "A retry follows the run again"), (False, "A retry of the task asks the question")],
)
def test_error_promises_only_a_retry_that_can_find_the_run(recorded: bool, promise: str) -> None:
    """`hook.chat` keeps no record."""
    call = accepted_call(PlayedService(faults=[Fault("close")] * 99))
    call.run.is_recorded = recorded
    with pytest.raises(PlatformTransportError, match=promise):
        call.follow()
