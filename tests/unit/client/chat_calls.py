"""A prompt sent to a played service: the pieces that every test of the chat programs needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.chat import ChatRequest
from airflow_provider_platform.client.chat_program import Patience, ask, follow
from tests.unit.client.played_service import NOON, PlayedService, drive
from tests.unit.client.streams import (
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
    from airflow_provider_platform.client.chat_run import ChatRun

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
    patience: Patience

    def ask(self, *, whole: bool = True) -> bool:
        program = ask(self.run, self.request, self.patience, self.service.clock, whole=whole)
        return drive(program, self.service)

    def follow(self) -> bool:
        return drive(
            follow(self.run, self.request, self.patience, self.service.clock), self.service
        )

    def result(self) -> dict[str, Any]:
        return self.run.result().to_json()


def new_call(service: PlayedService, *, thread: bool = False, **patience: Any) -> Call:
    """A prompt for a new thread, or for the service's own."""
    chat_id = CHAT_ID if thread else None
    return Call(
        service,
        new_run(chat_id=chat_id, thread_given=thread),
        ChatRequest.ask(PROMPT, message_id=MESSAGE_ID, chat_id=chat_id),
        Patience(**{"deadline": DEADLINE, **patience}),
    )


def accepted_call(service: PlayedService, *, thread: bool = False, **patience: Any) -> Call:
    """A message that another process has sent, and that is to be followed by its ids."""
    service.starts.append(service.now)
    return Call(
        service,
        new_run(chat_id=CHAT_ID, thread_given=thread, accepted=True),
        ChatRequest.build(message_id=MESSAGE_ID),
        Patience(**{"deadline": DEADLINE, **patience}),
    )
