"""Hundreds of waits in one event loop, as in a triggerer, while connections are cut at random."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.chat import input_digest
from airflow_provider_platform.client.chat_call import ChatCall
from airflow_provider_platform.client.chat_program import Patience, ask
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.triggers.chat import PlatformChatTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

pytestmark = pytest.mark.system

CHATS = 300
CUTS = 150
QUESTIONS = ("revenue by country", "top 5 products", "orders per month")


async def submit(client: Any, prompt: str) -> PlatformChatTrigger:
    patience = Patience(deadline=client.clock() + 300)
    call = ChatCall.prepare(client.config, prompt, patience)
    await client.run(ask(call.run, call.request, patience, client.clock, whole=False))
    return PlatformChatTrigger(
        platform_conn_id="platform_default",
        run={"chat_id": call.run.chat_id, "message_id": call.run.message_id},
        input_sha256=input_digest(prompt),
        max_rows=100,
        deadline=client.clock() + 300,
        poll_interval=0.5,
    )


async def wait_for_all() -> list[tuple[PlatformChatTrigger, dict[str, Any]]]:
    async with PlatformHook().async_client() as client:
        prompts = (QUESTIONS * CHATS)[:CHATS]
        triggers = [await submit(client, prompt) for prompt in prompts]

    async def event_of(trigger: PlatformChatTrigger) -> dict[str, Any]:
        events = [event.payload async for event in trigger.run()]
        assert len(events) == 1
        return events[0]

    return list(zip(triggers, await asyncio.gather(*map(event_of, triggers)), strict=True))


def test_all_end_right_and_none_is_asked_twice(platform_sandbox: Sandbox) -> None:
    control = platform_sandbox.control
    control.set(pace=0.3)
    for _ in range(CUTS):
        after, nth = random.randint(1, 15), random.randint(1, CHATS)
        control.fault("cut", has_input=False, after=after, nth=nth)

    found = asyncio.run(wait_for_all())

    answers = {event["result"]["answer"] for _, event in found}
    assert [event["status"] for _, event in found] == ["success"] * CHATS
    assert len(answers) == len(QUESTIONS)
    for trigger, event in found:
        assert event["run"]["message_id"] == trigger.ids["message_id"]
    state = control.state()
    assert len(state.messages) == len(state.runs) == CHATS
    assert not state.active_runs
