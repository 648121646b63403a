"""A long chat answer over loopback HTTP, from the request to the result, beside what can be had at
least: `httpx.stream`, and `json.loads` of each line.

Each round runs every competitor once, the best round of each counts; 1.0 is as fast as the anchor.
The processor time of this process (all its threads) stands beside the clock's: what else the
machine does moves it less.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.platform_client import AsyncPlatformClient, PlatformClient
from airflow_provider_platform.resources.chat.call import ChatCall, ChatLimits

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 40_000
TEXT = 400
ROUNDS = 5
PIECES = {"64 KB at a time": 64 * 1024, "a record at a time": 0}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def main() -> None:
    """Print the ratios."""
    for name, size in PIECES.items():
        server = subprocess.Popen(
            [sys.executable, __file__, str(size)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            print(f"{RECORDS} records of {TEXT} characters, sent {name}:")
            compare(url)
        finally:
            server.kill()
            server.wait()


def compare(url: str) -> None:
    """Every competitor in turn, several times over."""
    config = PlatformConfig.build(chat_url=f"{url}/agents/1/chat", chat_service_token="x.y.z")
    runs: dict[str, Callable[[], None]] = {
        "httpx.stream": lambda: read_lines(url),
        "httpx.AsyncClient.stream": lambda: asyncio.run(read_lines_on_loop(url)),
        "chat": lambda: chat(config),
        "achat": lambda: asyncio.run(achat(config)),
    }
    clocks = {"clock": time.perf_counter, "processor": time.process_time}
    best = {of: dict.fromkeys(runs, float("inf")) for of in clocks}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = {of: clock() for of, clock in clocks.items()}
            run()
            for of, clock in clocks.items():
                best[of][name] = min(best[of][name], clock() - began[of])
    for ours, anchor in (("chat", "httpx.stream"), ("achat", "httpx.AsyncClient.stream")):
        for of, seconds in best.items():
            print(
                f"  {ours}: {seconds[ours]:.2f} s, {anchor}: {seconds[anchor]:.2f} s by the {of}, "
                f"ratio {seconds[anchor] / seconds[ours]:.2f} (to httpx.stream "
                f"{seconds['httpx.stream'] / seconds[ours]:.2f})"
            )


def read_lines(url: str) -> None:
    """The anchor of synchronous code."""
    with httpx.stream("POST", url, json={}, timeout=None) as response:
        for line in response.iter_lines():
            json.loads(line)


async def read_lines_on_loop(url: str) -> None:
    """The anchor of an event loop."""
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("POST", url, json={}) as response,
    ):
        async for line in response.aiter_lines():
            json.loads(line)


def chat(config: PlatformConfig) -> None:
    """As `PlatformHook.chat`."""
    with PlatformClient(config) as client:
        call = ChatCall.prepare(config, "why?", ChatLimits(deadline=client.clock() + 600))
        client.run(lambda api: call.ask(api, client.clock))
    check(call)


async def achat(config: PlatformConfig) -> None:
    """As a trigger."""
    async with AsyncPlatformClient(config) as client:
        call = ChatCall.prepare(config, "why?", ChatLimits(deadline=client.clock() + 600))
        await client.run(lambda api: call.ask(api, client.clock))
    check(call)


def check(call: ChatCall) -> None:
    """A benchmark of a wrong result says nothing."""
    assert len(call.run.result().answer) == RECORDS * TEXT


def records() -> list[bytes]:
    """A run whose answer comes in many pieces. The user's echo is not told: the mark will do."""
    state = {"isStreaming": True, "chatId": "chat-1"}
    lines: list[dict[str, object]] = [{"id": "__cutoff__", "state": state}]
    lines += [
        {
            "id": "answer",
            "role": "assistant",
            "content": "x" * TEXT,
            "sort": number,
            "isDelta": True,
            "isInProcess": number < RECORDS - 1,
            "graphPath": ["final"],
        }
        for number in range(RECORDS)
    ]
    lines.append({"id": "__state__", "state": {"isStreaming": False, "messages": []}})
    lines.append({"id": "__usage__", "usage": {"tokens": 1}})
    return [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]


def serve(size: int) -> None:
    """Send the same answer to everybody."""
    lines = records()
    whole = b"".join(lines)
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)] if size else lines
    body = HEAD + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"

    def answer(connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            while connection.recv(65536):
                connection.sendall(body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(int(sys.argv[1]))
    else:
        main()
