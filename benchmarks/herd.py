"""How late one triggerer's event loop is while a thousand syncs and a thousand chats wait in it.

The loop's lag is how much later than asked a task wakes that sleeps for 5 ms; beside it stands the
lag of the same loop with nothing to do, which is the machine's own. What the loop's own thread has
worked meanwhile (processor time) is what holds it up itself: where that is far less than the lag,
others have the processor. What of it the garbage collector took is told too: a full collection
looks at every object of the process, Airflow's and some 160 for each sync, 270 for each chat: a
third of these are the HTTP libraries', the rest is the wait itself. All triggers start in the same
instant, each chat brings a record a second; the polls of the waits are counted, and the connections
that they took. HERD_WAITS and HERD_CHATS set other numbers of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

WAITS = int(os.environ.get("HERD_WAITS", "1000"))
CHATS = int(os.environ.get("HERD_CHATS", "1000"))
POLL_INTERVAL = 5.0
SECONDS = 30.0
STARTING = 10.0
"""Seconds after which the start is taken to be over."""
TICK = 0.005
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def main() -> None:
    """Print lags, polls and connections."""
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        extra = {"chat_url": f"{url}/agents/1/chat", "chat_service_token": "x.y.z"}
        connection = {
            "conn_type": "platform",
            "host": f"{url}/api",
            "password": "token-of-a-benchmark",
            "extra": json.dumps(extra),
        }
        with tempfile.TemporaryDirectory() as home:
            environment = {
                **os.environ,
                "AIRFLOW_HOME": home,
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
                "AIRFLOW_CONN_PLATFORM_DEFAULT": json.dumps(connection),
            }
            command = [sys.executable, __file__, "wait"]
            subprocess.run(command, env=environment, check=True, timeout=SECONDS + 120)
        server.terminate()
        print(server.stdout.read().decode(), end="")
    finally:
        server.kill()
        server.wait()


async def wait_all() -> None:
    """Start every trigger at once and watch the loop."""
    from airflow_provider_platform.triggers import PlatformRunTrigger

    limits = {"platform_conn_id": "platform_default", "deadline": time.time() + 3600}
    waits: list[Any] = [
        PlatformRunTrigger(
            kind="dbt_sync.DbtSyncRunKind",
            run={"deployment_id": 1, "sync_job_id": f"job-{n}", "branch_name": "b", "waits": True},
            poll_interval=POLL_INTERVAL,
            **limits,
        )
        for n in range(WAITS)
    ]
    waits += [
        PlatformRunTrigger(
            kind="chat.run.ChatRunKind",
            run={
                "chat_id": f"chat-{n}",
                "message_id": f"{10**12 + n}-message",
                "input_sha256": "0" * 64,
            },
            arguments={"max_rows": 100, "details": False, "session_settings": None},
            poll_interval=POLL_INTERVAL,
            **limits,
        )
        for n in range(CHATS)
    ]
    gc.callbacks.append(Collections.note)
    idle = await lags(3.0)
    gc.collect()
    tasks = [asyncio.create_task(anext(trigger.run())) for trigger in waits]
    starting = await lags(STARTING)
    print(f"idle:                    {idle}")
    print(f"{WAITS} + {CHATS} start:       {starting}")
    print(f"{WAITS} syncs, {CHATS} chats:  {await lags(SECONDS - STARTING)}")
    for task in tasks:
        if task.done():
            sys.exit(f"a wait has ended, so that this measured nothing: {task.result()}")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Lags:
    """How late the loop was, again and again, and what its thread had worked meanwhile; seconds."""

    late: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    collections: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        full = f", {len(self.collections)} full collections" if self.collections else ""
        longest = f" of at most {max(self.collections) * 1e3:.0f} ms" if self.collections else ""
        return f"lag {spread(self.late)}; worked {spread(self.worked)}{full}{longest}"


class Collections:
    """Hears of the garbage collector's full collections."""

    seconds: ClassVar[list[float]] = []
    began: ClassVar[float] = 0.0

    @classmethod
    def note(cls, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            cls.began = time.thread_time()
        elif info["generation"] == 2:
            cls.seconds.append(time.thread_time() - cls.began)


async def lags(seconds: float) -> Lags:
    """Watch the loop for so long."""
    found = Lags()
    Collections.seconds = found.collections
    until = time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        worked = time.thread_time()
        await asyncio.sleep(TICK)
        found.late.append(time.monotonic() - began - TICK)
        found.worked.append(time.thread_time() - worked)
    return found


def spread(seconds: list[float]) -> str:
    """The spread of times in milliseconds."""
    found = sorted(seconds)
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    return f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.0f} ms, worst {found[-1] * 1e3:.0f} ms"


@dataclass
class Tally:
    """What the service saw."""

    polls: int = 0
    polled_on: set[int] = field(default_factory=set)
    streams: list[asyncio.Transport] = field(default_factory=list)


class Service(asyncio.Protocol):
    """Answers polls, and streams to chats, with as little work as can be."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        sizes = [int(line[15:]) for line in lines if line.startswith(b"content-length:")]
        if not end or len(body) < sum(sizes):
            return
        self._buffer = b""
        if head.startswith(b"GET /api/polls"):
            told = b"%d" % self._tally.polls
            self._transport.write(LENGTH % (len(told), told))
            return
        if head.startswith(b"GET"):
            self._tally.polls += 1
            self._tally.polled_on.add(id(self._transport))
            told = b'{"rows":[]}' if b"dbt-sync?" in lines[0] else b'{"status":"RUNNING"}'
            if b"/accounts/" in lines[0]:  # of dbt Cloud
                told = b'{"data":{"status":3}}'
            self._transport.write(LENGTH % (len(told), told))
            return
        wanted = json.loads(body)
        state = {"isStreaming": True, "chatId": wanted["chatId"]}
        self._transport.write(CHUNKED + chunk({"id": "__cutoff__", "state": state}))
        self._tally.streams.append(self._transport)


def chunk(record: dict[str, Any]) -> bytes:
    """A record as a piece of a stream."""
    line = json.dumps(record).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


async def serve() -> None:
    """Answer until the process is ended; every chat gets a record each second."""
    tally = Tally()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Service(tally), "127.0.0.1", 0, backlog=4096)
    ended = asyncio.Event()
    loop.add_signal_handler(15, ended.set)
    print(server.sockets[0].getsockname()[1], flush=True)
    thought = {"role": "assistant", "content": "thinking ", "isDelta": True, "isInProcess": True}
    number = 0
    while not ended.is_set():
        for part in range(20):
            number += 1
            record = chunk({"id": "thought", "sort": number, "graphPath": ["agent"], **thought})
            for stream in tally.streams[part::20]:
                if not stream.is_closing():
                    stream.write(record)
            await asyncio.sleep(0.05)
    print(f"{tally.polls} polls on {len(tally.polled_on)} connections", flush=True)


if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1] == "serve" else wait_all())
