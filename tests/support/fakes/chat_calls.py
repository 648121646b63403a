"""A prompt sent to a played service: the pieces that every test of the chat programs needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.resources.chat.call import ChatCall, ChatLimits
from airflow_provider_platform.resources.chat.request import ChatRequest
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import NOON, PlayedService, drive
from tests.support.fakes.streams import (
    CHAT_ID,
    EARLIER_ID,
    MESSAGE_ID,
    PROMPT,
    Turn,
    cutoff,
    encode,
    new_run,
)

if TYPE_CHECKING:
    from airflow_provider_platform.resources.chat.run_state import ChatRun

DEADLINE = NOON + 1800
EARLIER = Turn(
    prompt="How many orders?", message_id=EARLIER_ID, answer="42 orders.", rows=[[42]], name="old-"
)
AFTER_MARK = len(encode(cutoff()))
AFTER_ECHO = len(encode(cutoff(), Turn().records()[0]))
"""Bytes of an answer up to its mark, and up to the echo of the prompt."""


@dataclass
class Call:
    """A prompt on its way: the run, the request, the patience and the service."""

    service: PlayedService
    run: ChatRun
    request: ChatRequest
    limits: ChatLimits

    @property
    def chat(self) -> ChatCall:
        return ChatCall(self.run, self.request, self.limits)

    def ask(self, *, until_end: bool = True) -> bool:
        return drive(
            self.chat.submit(api_with(self.service.clock), until_end=until_end), self.service
        )

    def follow(self) -> bool:
        return drive(self.chat.follow(api_with(self.service.clock)), self.service)

    def result(self) -> dict[str, Any]:
        return self.run.result().to_json()


def new_call(service: PlayedService, *, thread: bool = False, **limits: Any) -> Call:
    """A prompt for a new thread, or for the service's own."""
    chat_id = CHAT_ID if thread else None
    return Call(
        service,
        new_run(chat_id=chat_id, in_existing_thread=thread),
        ChatRequest.ask(PROMPT, message_id=MESSAGE_ID, chat_id=chat_id),
        ChatLimits(**{"deadline": DEADLINE, **limits}),
    )


def accepted_call(service: PlayedService, *, thread: bool = False, **limits: Any) -> Call:
    """A message that another process has sent, and that is to be followed by its ids."""
    service.starts.append(service.now)
    return Call(
        service,
        new_run(chat_id=CHAT_ID, in_existing_thread=thread, accepted=True),
        ChatRequest.build(message_id=MESSAGE_ID),
        ChatLimits(**{"deadline": DEADLINE, **limits}),
    )
