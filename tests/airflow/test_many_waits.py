"""Hundreds of waits in one triggerer while connections are cut at random."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.chat.call import ChatCall, ChatLimits
from airflow_provider_platform.resources.chat.request import input_digest
from airflow_provider_platform.triggers import PlatformRunTrigger
from tests.airflow.config.chat_by_number import CHATS as CHATS_FILE
from tests.airflow.dags.many_waits import CHATS

if TYPE_CHECKING:
    from airflow_provider_platform.client.platform_client import AsyncPlatformClient
    from airflow_provider_platform.sandbox.state.journal import SandboxState
    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

CUTS = 150
AT_ONCE = 20
_LONG = 900.0
QUESTIONS = ("revenue by country", "top 5 products", "orders per month")


async def submit(client: AsyncPlatformClient, prompt: str, connection_id: str) -> dict[str, Any]:
    """Ask as the operator does before it defers; the arguments of the trigger that follows."""
    patience = ChatLimits(deadline=client.clock() + 2 * _LONG)
    call = ChatCall.prepare(client.config, prompt, patience)
    await client.run(lambda api: call.submit(api, until_end=False))
    _, arguments = PlatformRunTrigger(
        kind="chat.run.ChatRunKind",
        platform_conn_id=connection_id,
        run={
            "chat_id": call.run.chat_id,
            "message_id": call.run.message_id,
            "input_sha256": input_digest(prompt),
        },
        arguments={"max_rows": 100, "details": False, "session_settings": None},
        deadline=patience.deadline,
        poll_interval=0.5,
    ).serialize()
    return arguments


async def submit_all(connection_id: str) -> list[dict[str, Any]]:
    some = asyncio.Semaphore(AT_ONCE)

    async def one(client: AsyncPlatformClient, prompt: str) -> dict[str, Any]:
        async with some:
            return await submit(client, prompt, connection_id)

    prompts = (QUESTIONS * CHATS)[:CHATS]
    async with PlatformHook(connection_id).async_client() as client:
        return await asyncio.gather(*(one(client, prompt) for prompt in prompts))


def all_are_followed(state: SandboxState) -> bool:
    """Whether every run has a connection besides the one that asked."""
    return len({one.message_id for one in state.subscriptions[CHATS:]}) == CHATS


@pytest.mark.history_allows("asked_by_no_task", because="the test asks, the tasks only wait")
def test_every_chat_gets_its_answer_and_is_asked_once(
    airflow: RunningAirflow,
    sandbox: PatientControl,
    connection_id: str,
    start_task: StartTask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{connection_id.upper()}", json.dumps(sandbox.connection()))
    sandbox.set_breakpoint("mid_stream", count=CHATS)
    chats = asyncio.run(submit_all(connection_id))
    (airflow.home / CHATS_FILE).write_text(json.dumps(chats))
    for _ in range(CUTS):
        after, nth = random.randint(1, 15), random.randint(1, CHATS)
        sandbox.fault("cut", has_input=False, after=after, nth=nth)

    tasks = start_task("many_waits", "follow")
    sandbox.wait_until(all_are_followed, timeout=_LONG)
    sandbox.release()
    tasks.mapped(0).wait_run("success", timeout=_LONG)

    events = [json.loads(tasks.mapped(number).xcom("event")) for number in range(CHATS)]
    assert [event["status"] for event in events] == ["success"] * CHATS
    assert [event["run"] for event in events] == [chat["run"] for chat in chats]
    assert len({event["result"]["answer"] for event in events}) == len(QUESTIONS)
    state = sandbox.state()
    assert len(state.messages) == len(state.runs) == CHATS
    assert {run.status for run in state.runs} == {"finished"}
