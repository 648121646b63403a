"""Streams over real HTTP, and the request that aborts one."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformNotFoundError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.chat.thread import abort
from tests.support.wire.calls import KEY, Run, config_for, reading
from tests.support.wire.http_server import (
    STREAM_HEAD,
    Answer,
    Exchange,
    answer,
    chunk,
    serving,
    streamed,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


def joined(pieces: list[bytes | None]) -> bytes:
    return b"".join(piece or b"" for piece in pieces)


def test_stream_returns_all_pieces_until_its_end(run: Run) -> None:
    with serving(streamed(b'{"a":1}\n', b'{"b', b'":2}\n')) as server:
        pieces = run(config_for(server), reading({"input": "Ü?"}))
    assert joined(pieces) == b'{"a":1}\n{"b":2}\n'
    assert pieces[-1] == b""
    [request] = server.requests
    assert (request.method, request.target) == ("POST", "/agents/7/chat/stream-chat-state")
    assert json.loads(request.body) == {"input": "Ü?"}
    assert request.headers["authorization"] == f"Api-Key {KEY}"
    assert request.headers["content-type"] == "application/json"


def test_a_compressed_stream_comes_as_it_is_sent(run: Run) -> None:
    """Each piece can be read before the next one is written."""
    packer = zlib.compressobj(wbits=31)
    packed = [packer.compress(n) + packer.flush(zlib.Z_SYNC_FLUSH) for n in (b"one\n", b"two\n")]
    acknowledged = threading.Event()

    def respond(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD % b"Content-Encoding: gzip\r\n" + chunk(packed[0]))
        acknowledged.wait(20)
        exchange.send(chunk(packed[1] + packer.flush()) + chunk(b""))

    async def listening(api: Api) -> list[bytes]:
        await api.open_stream({}, timeout=20.0)
        first = await api.read_stream(20.0)
        acknowledged.set()
        return [first, await api.read_stream(20.0), await api.read_stream(20.0)]

    with serving(respond) as server:
        assert run(config_for(server), listening) == [b"one\n", b"two\n", b""]


@pytest.mark.parametrize("encoding", [b"", b"Content-Encoding: gzip\r\n"])
def test_broken_stream_is_a_transport_error(run: Run, encoding: bytes) -> None:
    piece = gzip.compress(b"one\n")[:-12] if encoding else b"one\n"
    broken = pytest.raises(PlatformTransportError, match="the connection broke")
    cut = streamed(piece, headers=encoding, then=lambda exchange: exchange.send(b"9\r\ncut"))
    with serving(cut) as server, broken as caught:
        run(config_for(server), reading({}))
    assert caught.value.processed is None


def test_silent_stream_times_out_and_is_closed(run: Run) -> None:
    left = threading.Event()

    def respond(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD % b"" + chunk(b"one\n"))
        if exchange.wait_for_the_client_to_leave():
            left.set()

    with serving(respond) as server:
        assert run(config_for(server), reading({}, timeout=0.2))[-1] is None
    assert left.is_set()


def test_stream_that_never_starts_is_a_transport_error(run: Run) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.wait_for_the_client_to_leave()

    timed_out = pytest.raises(PlatformTransportError, match=r"within 0\.2 seconds")
    with serving(respond) as server, timed_out as caught:
        run(config_for(server), reading({}, timeout=0.2))
    assert caught.value.processed is None


@pytest.mark.parametrize(
    ("respond", "error", "words"),
    [
        (answer(500, b'{"error": "Out of order"}'), PlatformServerError, "Out of order"),
        (answer(404, b""), PlatformNotFoundError, "premium or enterprise"),
        (answer(429, b"", {"Retry-After": "9"}), PlatformRateLimitError, "429"),
    ],
)
def test_refused_stream_raises_the_error_of_its_status(
    run: Run, respond: Answer, error: Any, words: str
) -> None:
    with serving(respond) as server, pytest.raises(error, match=words):
        run(config_for(server), reading({}))
    assert len(server.requests) == 1


def test_a_stream_under_the_content_type_of_a_page_is_read(run: Run) -> None:
    """The service's document names it for this answer: its first bytes show what it is."""
    with serving(answer(200, b"{}\n", {"Content-Type": "text/html; charset=utf-8"})) as server:
        assert joined(run(config_for(server), reading({}))) == b"{}\n"


def test_unconfirmed_abort_raises_the_error(run: Run) -> None:
    refusal = b'{"jsonrpc": "2.0", "error": {"code": -32001, "message": "Unauthorized"}}'
    with serving(answer(200, refusal)) as server, pytest.raises(ChatRpcError, match="Unauthorized"):
        run(config_for(server), lambda api: abort(api, "c1", None))
