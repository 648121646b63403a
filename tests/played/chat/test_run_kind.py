"""The chat's run as an operator drives it: what a retry and a trigger's event make of it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    ChatNoAnswerError,
    ChatSuspendedError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.resources.chat.request import input_digest
from airflow_provider_platform.resources.chat.run import ChatRunKind
from airflow_provider_platform.resources.run_kind import RunAccepted, RunEnvironment
from tests.support.fakes.chat_calls import DEADLINE
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import NOON, PlayedService, drive
from tests.support.fakes.streams import (
    CHAT_ID,
    EXPECTED,
    MESSAGE_ID,
    PROMPT,
    cutoff,
    serialized,
    state,
)

CONFIG = PlatformConfig.build(
    chat_url="https://ai.example.com/agents/1/chat",
    chat_api_key="canary-secret",
    session_settings={"externalId": "nightly"},
)
KIND = ChatRunKind(prompt=PROMPT)
ENV = RunEnvironment(DEADLINE)
IDS = {
    "chat_id": CHAT_ID,
    "message_id": MESSAGE_ID,
    "in_existing_thread": False,
    "accepted": True,
    "submitted_at": NOON,
}
RESUMED = {**IDS, "resumed": True}
ASKED = {"identity": {"externalId": "nightly"}, "input_sha256": input_digest(PROMPT)}


def read(service: PlayedService, ids: dict[str, Any], *, event_of: dict[str, Any] = IDS) -> Any:
    """Hand the event "suspended" of the trigger with the ids `event_of` to a task with `ids`."""
    service.starts.append(service.now)
    service.now += 60
    api = api_with(service.clock, CONFIG)
    event = {"status": "suspended", "run": event_of}
    return drive(KIND.read_event(api, ENV, ids, event), service)


def find(service: PlayedService, **ids: Any) -> Any:
    api = api_with(service.clock, CONFIG)
    lost = {**IDS, "accepted": False, **ids}
    return drive(KIND.find(api, ENV, lost), service)


def test_message_of_a_run_that_a_trigger_left_suspended_is_sent_once_more() -> None:
    """The worker leaves the stream once the run goes on, and the trigger follows it again."""
    service = PlayedService(suspends_at=6, resume="input")
    result, ids = read(service, IDS)
    assert [body["messageId"] for body in service.prompts] == [MESSAGE_ID]
    assert (result, ids) == (None, RESUMED)
    api = api_with(service.clock, CONFIG)
    assert drive(KIND.follow(api, ENV, ids), service)["answer"] == EXPECTED["answer"]


def test_run_that_stays_suspended_after_its_message_was_sent_again_fails_the_task() -> None:
    service = PlayedService(suspends_at=6, resume="never")
    with pytest.raises(ChatSuspendedError, match="same message was sent again"):
        read(service, RESUMED, event_of=RESUMED)
    assert service.prompts == []


def test_event_from_before_the_message_was_sent_again_does_not_fail_the_task() -> None:
    """Airflow can deliver the event of an earlier trigger again: the run may have resumed since."""
    service = PlayedService(suspends_at=6, resume="input")
    _, ids = read(service, IDS)
    assert read(service, ids, event_of=IDS) == (None, ids)
    assert [body["messageId"] for body in service.prompts] == [MESSAGE_ID]


def test_a_retry_does_not_send_a_message_again_that_the_thread_lacks_twice() -> None:
    absent = [cutoff(streaming=False), PlayedService()._state()]
    assert find(PlayedService(scripted=[absent] * 9))[0] is False
    with pytest.raises(PlatformOutcomeUnknownError):
        find(PlayedService(scripted=[absent] * 9), repeats=True)


@pytest.mark.parametrize("existing", [True, False])
def test_a_thread_that_is_gone_is_an_error_only_if_the_author_named_it(existing: bool) -> None:
    class Gone(PlayedService):
        def perform(self, effect: Any) -> Any:
            raise PlatformNotFoundError("no such thread", status=404)

    if existing:
        with pytest.raises(PlatformNotFoundError):
            find(Gone(), in_existing_thread=True)
    else:
        found, ids = find(Gone())
        assert (found, ids["chat_id"]) == (False, None)


def test_message_that_only_the_last_record_shows_is_recorded_as_accepted() -> None:
    messages = [serialized("HumanMessage", PROMPT, MESSAGE_ID)]
    service = PlayedService(scripted=[[cutoff(), state(messages)]])
    kind = ChatRunKind(prompt=PROMPT, chat_id=CHAT_ID, message_id=MESSAGE_ID)
    with pytest.raises(ChatNoAnswerError):
        drive(kind.submit(api_with(service.clock, CONFIG), ENV, None, until_end=True), service)
    assert [event.ids for event in service.notices if isinstance(event, RunAccepted)] == [
        {**IDS, "in_existing_thread": True, **ASKED}
    ]
