"""What many deferred chats cost one triggerer: memory of each, and time until all have ended.

300 triggers follow runs of a sandbox in another process, while connections are cut at random.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from airflow_provider_platform.sandbox import Sandbox

CHATS = 300
CUTS = 100


def main() -> None:
    """Print memory and time."""
    with Sandbox(pace=0.2) as sandbox:
        with tempfile.TemporaryDirectory() as home:
            environment = {
                **os.environ,
                "AIRFLOW_HOME": home,
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW_CONN_PLATFORM_DEFAULT": sandbox.connection_json(),
            }
            for _ in range(CUTS):
                after, nth = random.randint(2, 15), random.randint(1, CHATS)
                sandbox.control.fault("cut", after=after, nth=nth)
            subprocess.run([sys.executable, str(Path(__file__))], env=environment, check=True)
        state = sandbox.control.state()
        print(f"messages at the service: {len(state.messages)}, runs: {len(state.runs)}")


async def follow_all() -> None:
    """Ask, then follow every run with a trigger of its own on one event loop."""
    from airflow_provider_platform.client.chat import input_digest, new_message_id
    from airflow_provider_platform.client.chat_call import ChatCall
    from airflow_provider_platform.client.chat_program import Patience, ask
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.triggers.chat import PlatformChatTrigger

    prompt = "revenue by country"
    triggers = []
    async with PlatformHook().async_client() as client:
        for _ in range(CHATS):
            patience = Patience(deadline=client.clock() + 600)
            call = ChatCall.prepare(client.config, prompt, patience, message_id=new_message_id())
            await client.run(ask(call.run, call.request, patience, client.clock, whole=False))
            triggers.append(
                PlatformChatTrigger(
                    platform_conn_id="platform_default",
                    run={"chat_id": call.run.chat_id, "message_id": call.run.message_id},
                    input_sha256=input_digest(prompt),
                    max_rows=100,
                    deadline=client.clock() + 600,
                    poll_interval=1.0,
                )
            )
    before, began = _memory(), time.monotonic()
    events = await asyncio.gather(*(anext(trigger.run()) for trigger in triggers))
    ended = sum(event.payload["status"] == "success" for event in events)
    print(f"{ended} of {CHATS} ended with an answer after {time.monotonic() - began:.1f} s")
    print(f"memory of a waiting chat: {(_memory() - before) / CHATS:.0f} KiB at its peak")


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    asyncio.run(follow_all())
