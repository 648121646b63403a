"""What many deferred chats cost one triggerer: memory of each, and time until all have ended.

The triggers of 300 chats follow runs of a sandbox in another process. The runs stand still until
all are followed; then they go on, and connections are cut at random.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import psutil

from airflow_provider_platform.sandbox import Sandbox
from airflow_provider_platform.sandbox.control.client import SandboxControl

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.journal import SandboxState
    from airflow_provider_platform.triggers import PlatformRunTrigger

CHATS = 300
CUTS = 150
AT_ONCE = 20
PROMPT = "revenue by country"


def main() -> None:
    """Print memory and time."""
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "AIRFLOW_HOME": home,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW_CONN_PLATFORM_DEFAULT": sandbox.connection_json(),
        }
        subprocess.run([sys.executable, __file__, sandbox.url], env=environment, check=True)


async def follow_all(control: SandboxControl) -> None:
    """Ask, then follow every run with a trigger of its own on one event loop."""
    control.set_breakpoint("mid_stream", count=CHATS)
    triggers = await submit_all()
    for _ in range(CUTS):
        after, nth = random.randint(2, 15), random.randint(1, CHATS)
        control.fault("cut", has_input=False, after=after, nth=nth)
    before = _memory()
    waits = asyncio.gather(*(anext(trigger.run()) for trigger in triggers))
    await asyncio.to_thread(control.wait_until, all_are_followed, 300)
    print(f"memory of a waiting chat: {(_memory() - before) / CHATS / 1024:.0f} KiB")
    began = time.monotonic()
    control.release()
    ended = sum(event.payload["status"] == "success" for event in await waits)
    print(f"{ended} of {CHATS} ended with an answer {time.monotonic() - began:.1f} s later")
    state = control.state()
    print(f"messages at the service: {len(state.messages)}, runs: {len(state.runs)}")


def all_are_followed(state: SandboxState) -> bool:
    """Whether every run has a connection besides the one that asked."""
    return len({one.message_id for one in state.subscriptions[CHATS:]}) == CHATS


async def submit_all() -> list[PlatformRunTrigger]:
    """Ask every chat, as its operator would before it defers."""
    from airflow_provider_platform.hooks.platform import PlatformHook

    some = asyncio.Semaphore(AT_ONCE)
    async with PlatformHook().async_client() as client:

        async def one() -> PlatformRunTrigger:
            async with some:
                return await submit(client)

        return list(await asyncio.gather(*(one() for _ in range(CHATS))))


async def submit(client: Any) -> PlatformRunTrigger:
    """Ask one chat; the trigger that follows it."""
    from airflow_provider_platform.resources.chat.call import ChatCall, ChatLimits
    from airflow_provider_platform.resources.chat.request import input_digest
    from airflow_provider_platform.triggers import PlatformRunTrigger

    patience = ChatLimits(deadline=client.clock() + 600)
    call = ChatCall.prepare(client.config, PROMPT, patience)
    await client.run(lambda api: call.submit(api, until_end=False))
    return PlatformRunTrigger(
        kind="chat.run.ChatRunKind",
        platform_conn_id="platform_default",
        run={
            "chat_id": call.run.chat_id,
            "message_id": call.run.message_id,
            "input_sha256": input_digest(PROMPT),
        },
        arguments={"max_rows": 100, "details": False, "session_settings": None},
        deadline=patience.deadline,
        poll_interval=1.0,
    )


def _memory() -> int:
    used: int = psutil.Process().memory_info().rss
    return used


if __name__ == "__main__":
    asyncio.run(follow_all(SandboxControl(sys.argv[1])))
