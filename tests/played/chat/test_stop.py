"""Stopping ends this run and no other, in a new thread and in a shared one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.config import SessionSettings, session_settings
from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatRpcError,
    PlatformNotFoundError,
    PlatformRateLimitError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.chat.call import (
    LATE_MESSAGE_GRACE,
    ChatCall,
    ChatLimits,
)
from airflow_provider_platform.resources.chat.request import ChatRequest
from airflow_provider_platform.resources.chat.thread import abort
from tests.support.fakes.chat_calls import EARLIER, accepted_call
from tests.support.fakes.effects import API, OpenStream, ReloadCredentials, SendChat, api_with
from tests.support.fakes.played_service import NOON, Fault, PlayedService, drive
from tests.support.fakes.streams import (
    CHAT_ID,
    MESSAGE_ID,
    PROMPT,
    Record,
    aborted,
    cutoff,
    echo,
    new_run,
    serialized,
    state,
    tool,
)

if TYPE_CHECKING:
    from airflow_provider_platform.resources.chat.run_state import ChatRun

SECONDS = 3.0
LATER = echo("1732512999999-message", "Something else?")
RPC = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Unauthorized"}}


def stop(service: PlayedService, run: ChatRun, settings: SessionSettings | None = None) -> bool:
    request = ChatRequest.build(message_id=MESSAGE_ID, session_settings=settings)
    call = ChatCall(run, request, ChatLimits(deadline=NOON))
    return drive(call.stop(api_with(service.clock), seconds=SECONDS), service)


def given_thread() -> ChatRun:
    return new_run(chat_id=CHAT_ID, in_existing_thread=True, accepted=True)


@pytest.mark.parametrize("refusal", ["401", "JSON-RPC"])
def test_a_rotated_key_is_read_again_before_an_existing_thread_is_stopped(refusal: str) -> None:
    service = PlayedService(reloads=[True])
    call = accepted_call(service, thread=True)
    if refusal == "401":
        service.faults.append(Fault("refuse", status=401))
    else:
        service.scripted.append([RPC])
    assert stop(service, call.run) is True
    assert len(service.bodies) == 2
    assert service.aborts == [{"chatId": CHAT_ID}]


def test_new_thread_is_read_before_the_abort() -> None:
    service = PlayedService()
    call = accepted_call(service)
    assert stop(service, call.run) is True
    assert service.bodies == [{"chatId": CHAT_ID, "messageId": MESSAGE_ID}]
    assert service.aborts == [{"chatId": CHAT_ID}]
    with pytest.raises(ChatAbortedError):
        drive(call.chat.poll_final_state(api_with(service.clock)), service)


def own_thread() -> ChatRun:
    return new_run(chat_id=CHAT_ID, accepted=True)


@pytest.mark.parametrize(
    "sent",
    [
        [echo(), cutoff(streaming=True), LATER, tool("SqlApi", record_id="x")],
        [echo("renamed-by-the-service", "In other words"), LATER, cutoff(), state()],
        [cutoff(streaming=True), {"error": "Streaming for thread is in progress"}],
        [
            cutoff(streaming=True),
            state(
                [
                    serialized("HumanMessage", PROMPT, MESSAGE_ID),
                    serialized("HumanMessage", "Other?"),
                ]
            ),
        ],
    ],
    ids=["later echo", "renamed echo and a later one", "busy", "messages"],
)
def test_later_question_in_a_new_thread_is_not_stopped(sent: list[Record]) -> None:
    service = PlayedService(scripted=[sent])
    assert stop(service, own_thread()) is False
    assert service.aborts == []


@pytest.mark.parametrize(
    "sent",
    [
        [echo("renamed-by-the-service", "In other words"), cutoff(streaming=True)],
        [cutoff(streaming=True), state()],
        [cutoff(streaming=True), tool("SqlApi", record_id="x"), state([])],
        [cutoff(streaming=True), state([serialized("HumanMessage", "In other words")])],
    ],
    ids=["renamed echo", "no messages", "no echo", "other words"],
)
def test_a_thread_of_our_own_without_a_later_question_is_aborted(sent: list[Record]) -> None:
    service = PlayedService(scripted=[sent])
    assert stop(service, own_thread()) is True


@pytest.mark.parametrize(
    "fault", [Fault("silence"), Fault("blank"), Fault("reset"), Fault("refuse", status=502)]
)
def test_new_thread_that_cannot_be_read_is_stopped_without_a_read(fault: Fault) -> None:
    """Otherwise nobody would stop its run."""
    service = PlayedService(faults=[fault] * 99)
    accepted_call(service)
    assert stop(service, own_thread()) is True
    assert service.aborts == [{"chatId": CHAT_ID}]
    assert service.now <= NOON + SECONDS + 1


LIMITED = PlatformRateLimitError("answered 429", status=429)
LOST = PlatformTransportError("the connection broke")


@pytest.mark.parametrize("thread", [False, True], ids=["own thread", "existing thread"])
def test_abort_that_was_not_processed_is_sent_again(thread: bool) -> None:
    service = PlayedService(abort_errors=[LIMITED, LIMITED])
    call = accepted_call(service, thread=thread)
    assert stop(service, call.run) is True
    assert len(service.aborts) == 3
    assert service.now <= NOON + SECONDS


def test_lost_abort_is_sent_again_only_in_a_thread_of_our_own() -> None:
    own = PlayedService(abort_errors=[LOST])
    assert stop(own, accepted_call(own).run) is True
    assert len(own.aborts) == 2
    shared = PlayedService(abort_errors=[LOST])
    run = accepted_call(shared, thread=True).run
    with pytest.raises(PlatformTransportError, match="connection broke"):
        stop(shared, run)
    assert len(shared.aborts) == 1


def test_abort_is_sent_again_until_the_stop_has_no_time_left() -> None:
    service = PlayedService(abort_errors=[LIMITED] * 99)
    run = accepted_call(service).run
    with pytest.raises(PlatformRateLimitError):
        stop(service, run)
    assert 2 < len(service.aborts) < 20
    assert service.now <= NOON + SECONDS


def test_a_run_without_a_thread_cannot_be_stopped() -> None:
    service = PlayedService()
    assert stop(service, new_run()) is False
    assert service.aborts == service.bodies == []


@pytest.mark.parametrize(
    ("settings", "identity"),
    [
        ({"externalId": "nightly", "groups": ["a"]}, {"externalId": "nightly"}),
        ({"internalId": "ann@example.com"}, {"internalId": "ann@example.com"}),
    ],
)
def test_abort_sends_the_identity_of_the_session(
    settings: dict[str, Any], identity: dict[str, str]
) -> None:
    service = PlayedService()
    checked = session_settings(settings)
    stop(service, new_run(chat_id=CHAT_ID), checked)
    drive(abort(API, "other", checked), service)
    assert service.aborts == [
        {"chatId": CHAT_ID, "sessionSettings": identity},
        {"chatId": "other", "sessionSettings": identity},
    ]


@pytest.mark.parametrize("replay", ["before", "after"])
@pytest.mark.parametrize("follow_up", ["subscribe", "state"])
def test_our_run_in_an_existing_thread_is_stopped(replay: Any, follow_up: Any) -> None:
    service = PlayedService(earlier=(EARLIER,), replay=replay, follow_up=follow_up)
    accepted_call(service)
    service.now += 5
    assert stop(service, given_thread()) is True
    assert service.aborts == [{"chatId": CHAT_ID}]
    assert service.bodies == [{"chatId": CHAT_ID, "messageId": MESSAGE_ID}]
    assert service.now - NOON - 5 <= LATE_MESSAGE_GRACE


BUSY = {"error": "Streaming for thread is in progress"}
OURS = [echo(), tool("SqlApi")]
THEIRS = [serialized("HumanMessage", PROMPT, MESSAGE_ID), serialized("HumanMessage", "Other?")]


@pytest.mark.parametrize(
    "sent",
    [
        [*OURS, LATER, cutoff(streaming=True), tool("SqlApi", record_id="x")],
        [*OURS, cutoff(streaming=True), LATER, tool("SqlApi", record_id="x")],
        [*OURS, aborted(), LATER, cutoff(streaming=True), tool("SqlApi", record_id="x")],
        [*OURS, cutoff(streaming=True), BUSY],
        [cutoff(streaming=True), BUSY],
        [*EARLIER.records(), cutoff(streaming=True), state()],
        [cutoff(streaming=True), state(THEIRS)],
        [cutoff(), state([])],
    ],
    ids=[
        "later before",
        "later after",
        "later after a stop",
        "busy",
        "only busy",
        "earlier",
        "messages",
        "empty",
    ],
)
@pytest.mark.parametrize("by_lines", [True, False])
def test_another_run_in_an_existing_thread_is_left_alone(
    sent: list[Record], by_lines: bool
) -> None:
    service = PlayedService(scripted=[sent], by_lines=by_lines)
    assert stop(service, given_thread()) is False
    assert service.aborts == []


def test_a_thread_that_is_busy_by_its_error_status_is_left_alone() -> None:
    body = b'{"error": "Streaming for thread is in progress"}'
    service = PlayedService(faults=[Fault("refuse", status=409, body=body)])
    assert stop(service, given_thread()) is False
    assert service.aborts == []


@pytest.mark.parametrize("kind", ["reset", "close"])
def test_a_read_that_breaks_is_repeated(kind: Any) -> None:
    """A broken read may end with our message although a later one follows: it proves nothing."""
    service = PlayedService(scripted=[OURS, [*OURS, LATER, cutoff(), state()]])
    assert stop(service, given_thread()) is False
    again = PlayedService(faults=[Fault(kind, 10), Fault("unreachable"), Fault("none")])
    accepted_call(again)
    assert stop(again, given_thread()) is True
    assert len(again.bodies) == 3


@pytest.mark.parametrize(
    "fault", [Fault("silence"), Fault("blank"), Fault("reset"), Fault("refuse", status=502)]
)
def test_a_thread_that_cannot_be_read_is_left_alone(fault: Fault) -> None:
    service = PlayedService(faults=[fault] * 99)
    accepted_call(service)
    with pytest.raises(PlatformTransportError, match="Nothing was stopped"):
        stop(service, given_thread())
    assert service.aborts == []
    assert service.now <= NOON + SECONDS + 1


@pytest.mark.parametrize("code", [-32001, -32603])
def test_stop_raises_the_refusal_of_its_read(code: int) -> None:
    missing = PlayedService(faults=[Fault("refuse", status=404)])
    with pytest.raises(PlatformNotFoundError):
        stop(missing, given_thread())
    refused = PlayedService(scripted=[[RPC | {"error": {"code": code, "message": "Not now"}}]])
    with pytest.raises(ChatRpcError, match="Not now"):
        stop(refused, given_thread())
    assert missing.aborts == refused.aborts == []


def test_a_refused_abort_is_sent_again_with_other_credentials() -> None:
    def refuse_once(program: Any) -> list[Any]:
        effects = [program.send(None), program.throw(ChatRpcError("Unauthorized"))]
        effects.append(program.send(True))
        with pytest.raises(StopIteration):
            program.send(None)
        return effects

    first, reload, second = refuse_once(abort(API, CHAT_ID, None))
    assert reload == ReloadCredentials()
    assert first == second == SendChat("/abort", {"chatId": CHAT_ID})
    refused = abort(API, CHAT_ID, None)
    refused.send(None)
    refused.throw(ChatRpcError("Unauthorized"))
    with pytest.raises(ChatRpcError):
        refused.send(False)


class SlowService(PlayedService):
    """Takes nearly two seconds for the head of each answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.timeouts: list[float | None] = []

    def perform(self, effect: Any) -> Any:
        if isinstance(effect, OpenStream | SendChat):
            self.timeouts.append(effect.timeout)
        if isinstance(effect, OpenStream):
            self.now += 1.9
        return super().perform(effect)


def test_a_slow_read_leaves_time_for_the_abort() -> None:
    """One budget covers both."""
    service = SlowService(earlier=(EARLIER,))
    accepted_call(service)
    service.timeouts.clear()
    began = service.now
    assert stop(service, given_thread()) is True
    read, abort_timeout = service.timeouts
    assert read is not None
    assert abort_timeout is not None
    assert read <= SECONDS * 2 / 3
    assert service.now - began + abort_timeout <= SECONDS
    assert abort_timeout >= SECONDS / 3
