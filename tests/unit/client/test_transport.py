"""The transport over real HTTP: what is sent, what comes back, synchronously and not."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import threading
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import retry, transport
from airflow_provider_platform.client.chat_stop import abort
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformAddressError,
    PlatformAuthenticationError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformProtocolError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.operation import raw_operation
from airflow_provider_platform.client.platform_client import AsyncPlatformClient, PlatformClient
from airflow_provider_platform.client.program import (
    Call,
    CloseStream,
    Notify,
    OpenStream,
    ReadStream,
    Sleep,
)
from tests.unit.client.http_server import (
    STREAM_HEAD,
    Answer,
    Exchange,
    Server,
    answer,
    chunk,
    closed_port,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from airflow_provider_platform.client.program import Program

    Run = Callable[..., Any]

TOKEN = "canary-management"
KEY = "canary-chat"
GET = raw_operation("GET", "/v1/x")
POST = raw_operation("POST", "/v1/x", body={"a": 1})
DELETE = raw_operation("DELETE", "/v1/x")


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.001)


def config_for(server: Server | str, **fields: Any) -> PlatformConfig:
    url = server if isinstance(server, str) else server.url
    chat = {"chat_url": f"{url}/agents/7/chat", "chat_api_key": KEY}
    if "chat_service_token" in fields:
        del chat["chat_api_key"]
    return PlatformConfig.build(host=url, management_token=TOKEN, **{**chat, **fields})


def run_sync(config: PlatformConfig, work: Any, **options: Any) -> Any:
    with PlatformClient(config, **options) as client:
        return client.run(work)


def run_async(config: PlatformConfig, work: Any, **options: Any) -> Any:
    async def run() -> Any:
        reload = options.pop("reload", None)

        async def areload() -> PlatformConfig:
            return reload()  # type: ignore[misc, no-any-return]

        given = {"reload": areload} if reload else {}
        async with AsyncPlatformClient(config, **given, **options) as client:
            return await client.run(work)

    return asyncio.run(run())


@pytest.fixture(params=[run_sync, run_async], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Both clients: every test that uses it holds for the two."""
    client: Run = request.param

    def checked(*args: Any, **options: Any) -> Any:
        try:
            return client(*args, **options)
        except PlatformError as error:
            shown = f"{error!r} {error} {error.to_payload()} {error.__cause__!r}"
            assert "canary" not in shown
            raise

    return checked


# --- what is sent -------------------------------------------------------------------------------


def test_a_management_request(run: Run) -> None:
    query = {"first": 5, "all": True, "no": None, "ids": [1, "b c", None], "q": "é&="}
    operation = raw_operation("POST", "/v1/a%2Fb/c", query=query, body={"name": "Zürich"})
    with serving(answer(body=b'{"id": 1}')) as server:
        assert run(config_for(server), operation) == {"id": 1}
    [request] = server.requests
    expected = "/api/v1/a%2Fb/c?first=5&all=true&ids=1&ids=b%20c&q=%C3%A9%26%3D"
    assert (request.method, request.target.replace("b+c", "b%20c")) == ("POST", expected)
    assert json.loads(request.body) == {"name": "Zürich"}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "airflow-provider-platform"
    assert KEY not in str(request.headers)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_body_that_is_absent_has_a_length(method: str) -> None:
    with serving(answer()) as server:
        run_sync(config_for(server), raw_operation(method, "/v1/x"))
    assert server.requests[0].headers["content-length"] == "0"
    assert "content-type" not in server.requests[0].headers


def test_a_get_has_no_body() -> None:
    with serving(answer()) as server:
        run_sync(config_for(server), GET)
    assert "content-length" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("fields", "header", "value"),
    [
        ({}, "authorization", f"Api-Key {KEY}"),
        ({"chat_service_token": "canary.jwt"}, "x-service-auth-token", "canary.jwt"),
        (
            {"chat_service_token": "canary.jwt", "chat_service_header": "X-Cube-Auth-Token"},
            "x-cube-auth-token",
            "canary.jwt",
        ),
    ],
)
def test_a_chat_request_carries_exactly_one_credential(
    run: Run, fields: dict[str, Any], header: str, value: str
) -> None:
    with serving(answer(204, b"")) as server:
        run(config_for(server, **fields), abort("c1", None))
    [request] = server.requests
    assert (request.method, request.target) == ("POST", "/agents/7/chat/abort")
    assert json.loads(request.body) == {"chatId": "c1"}
    credentials = ["authorization", "x-service-auth-token", "x-cube-auth-token"]
    assert {k: v for k, v in request.headers.items() if k in credentials} == {header: value}


@pytest.mark.parametrize("body", [{"a": float("nan")}, {"a": object()}, {"a": "\ud800"}])
def test_a_body_that_json_cannot_carry_is_not_sent(run: Run, body: Any) -> None:
    with serving() as server:
        with pytest.raises(PlatformInputError, match="nothing was sent"):
            run(config_for(server), raw_operation("POST", "/v1/x", body=body))
        with pytest.raises(PlatformInputError, match="nothing was sent"):
            run(config_for(server), reading(body))
    assert server.requests == []


def test_sides_that_are_not_configured(run: Run) -> None:
    management = PlatformConfig.build(host="http://127.0.0.1:9", management_token=TOKEN)
    with pytest.raises(PlatformConfigError, match=r"chat_url.*premium or enterprise") as caught:
        run(management, abort("c1", None))
    assert caught.value.field == "chat_url"
    chat = PlatformConfig.build(chat_url="http://127.0.0.1:9/chat", chat_api_key=KEY)
    with pytest.raises(PlatformConfigError, match="management API") as caught:
        run(chat, GET)
    assert caught.value.field == "host"


# --- what comes back ----------------------------------------------------------------------------


def test_compressed_and_chunked_answers(run: Run) -> None:
    packed = gzip.compress(b'{"a": 1}')
    head = STREAM_HEAD % b"Content-Encoding: gzip\r\n"

    def chunked(exchange: Exchange) -> None:
        for at in range(0, len(packed), 7):
            exchange.send((head if at == 0 else b"") + chunk(packed[at : at + 7]))
        exchange.send(chunk(b""))

    with serving(answer(body=packed, headers={"Content-Encoding": "gzip"}), chunked) as server:
        assert run(config_for(server), GET) == {"a": 1}
        assert run(config_for(server), GET) == {"a": 1}


def cut_off(exchange: Exchange) -> None:
    answer(body=b'{"a": ', length=500)(exchange)


def reset(exchange: Exchange) -> None:
    exchange.reset()


def silent_end(exchange: Exchange) -> None:
    """The connection ends without a word."""


BROKEN = [cut_off, reset, silent_end, answer(body=b"junk", headers={"Content-Encoding": "gzip"})]


@pytest.mark.parametrize("broken", BROKEN, ids=["cut off", "reset", "silent end", "no gzip"])
def test_a_broken_answer(run: Run, broken: Answer) -> None:
    """What may be repeated is; what must not be processed twice is sent once."""
    with serving(broken, broken, answer(body=b"[1]")) as server:
        assert run(config_for(server), GET) == [1]
    with serving(broken) as server:
        with pytest.raises(PlatformTransportError, match="API call: POST /v1/x") as caught:
            run(config_for(server), POST)
        assert caught.value.processed is None
    assert len(server.requests) == 1


def test_no_connection(run: Run) -> None:
    with pytest.raises(PlatformTransportError, match="no connection could be made") as caught:
        run(config_for(f"http://127.0.0.1:{closed_port()}", max_attempts=2), POST)
    assert caught.value.processed is False


def test_a_server_that_does_not_speak_tls(run: Run) -> None:
    with serving() as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(PlatformTransportError, match="ca_bundle") as caught:
            run(config_for(url, max_attempts=1), POST)
    assert caught.value.processed is False


def test_a_time_out_is_for_the_whole_answer(run: Run) -> None:
    """Bytes that come one by one do not prolong it."""

    def dribble(exchange: Exchange) -> None:
        answer(body=b"", length=10**6)(exchange)
        for _ in range(500):
            if gone.wait(0.02):
                return
            exchange.send(b" ")

    gone = threading.Event()
    with serving(dribble) as server:
        with pytest.raises(PlatformTransportError, match=r"no complete answer within 0\.3 seconds"):
            run(config_for(server, request_timeout=0.3), POST)
        gone.set()


def test_a_time_out_ends_with_the_deadline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LEAST_SECONDS", 0.2)

    def silence(exchange: Exchange) -> None:
        exchange.wait_for_the_client_to_leave()

    def late() -> Program[Any]:
        return (yield Call(GET, deadline=1000.0))

    timed_out = pytest.raises(PlatformTransportError, match=r"within 0\.2 seconds")
    with serving(silence) as server, timed_out:
        run(config_for(server), late(), clock=lambda: 1000.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(run: Run, status: int) -> None:
    with serving(answer()) as other, serving() as server:
        server.answers += [answer(status, b"", {"Location": other.url})] * 3
        config = config_for(server)
        for work in (GET, abort("c1", None), reading({})):
            with pytest.raises(PlatformAddressError, match=f"answered {status}, a redirect to"):
                run(config, work)
    assert len(server.requests) == 3
    assert other.requests == []


def test_an_error_whose_body_breaks_is_still_that_error(run: Run) -> None:
    broken = answer(429, b'{"mess', {"Retry-After": "0"}, length=500)
    with serving(broken, answer(body=b"[1]")) as server:
        assert run(config_for(server), POST) == [1]
    with serving(broken) as server, pytest.raises(PlatformRateLimitError) as caught:
        run(config_for(server, max_attempts=1), POST)
    assert caught.value.retry_after == 0


def test_attempts(run: Run) -> None:
    with serving(*[answer(502)] * 9) as server:
        with pytest.raises(PlatformServerError):
            run(config_for(server, max_attempts=3), GET)
        assert len(server.requests) == 3

        def once() -> Program[Any]:
            return (yield Call(GET, once=True))

        with pytest.raises(PlatformServerError):
            run(config_for(server, max_attempts=3), once())
        assert len(server.requests) == 4


def test_a_repeated_delete_that_finds_nothing_is_done(run: Run) -> None:
    with serving(answer(502), answer(404), answer(404)) as server:
        assert run(config_for(server), DELETE) is None
        with pytest.raises(PlatformNotFoundError):
            run(config_for(server), DELETE)
    with serving(answer(502), answer(404)) as server, pytest.raises(PlatformNotFoundError):
        run(config_for(server), GET)


def test_an_answer_that_is_too_long(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1000)
    too_long = pytest.raises(PlatformProtocolError, match="GET /v1/x: the answer exceeds 1000 by")
    with serving(answer(body=b'"%s"' % (b"x" * 2000))) as server, too_long:
        run(config_for(server), GET)


# --- credentials that change --------------------------------------------------------------------


def test_a_rotated_token_is_read_again(run: Run) -> None:
    with serving(answer(401), answer(body=b"[1]")) as server:
        fresh = config_for(server).model_copy(
            update={"management_token": type(config_for(server).management_token)("canary-new")}
        )
        assert run(config_for(server), POST, reload=lambda: fresh) == [1]
    tokens = [request.headers["authorization"] for request in server.requests]
    assert tokens == [f"Bearer {TOKEN}", "Bearer canary-new"]


def test_credentials_that_did_not_change_are_not_tried_again(run: Run) -> None:
    with serving(answer(401)) as server:
        config = config_for(server)
        with pytest.raises(PlatformAuthenticationError):
            run(config, GET, reload=lambda: config)
    assert len(server.requests) == 1


def test_a_connection_that_points_elsewhere_now_gets_nothing(run: Run) -> None:
    with serving() as other, serving(answer(401)) as server:
        moved = PlatformConfig.build(host=other.url, management_token="canary-new")
        with pytest.raises(PlatformAuthenticationError):
            run(config_for(server), GET, reload=lambda: moved)
    assert other.requests == []


# --- proxies and certificates -------------------------------------------------------------------

PROXY_VARIABLES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_system_proxies_do_not_hold_for_this_machine(
    run: Run, environment: pytest.MonkeyPatch
) -> None:
    for name in PROXY_VARIABLES[:3]:
        environment.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with serving(answer(body=b"[1]")) as server:
        assert run(config_for(server), GET) == [1]


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_system_proxies_hold_for_others(
    run: Run, environment: pytest.MonkeyPatch, scheme: str
) -> None:
    config = config_for("http://platform.test", allow_http=True, max_attempts=1)
    with serving(answer(body=b"[1]")) as proxy:
        environment.setenv("http_proxy", f"{scheme}127.0.0.1:{proxy.port}")
        assert run(config, GET) == [1]
        environment.setenv("no_proxy", "platform.test")
        with pytest.raises(PlatformTransportError):
            run(config, GET)
    assert [request.target for request in proxy.requests] == ["http://platform.test/api/v1/x"]


def test_the_connections_proxy(run: Run) -> None:
    with serving(answer(body=b"[1]")) as proxy:
        config = config_for(
            "http://platform.test",
            allow_http=True,
            proxy=f"http://me:canary@127.0.0.1:{proxy.port}",
        )
        assert run(config, GET) == [1]
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_that_refuses(run: Run) -> None:
    with serving(answer(407)) as proxy:
        config = config_for(
            "https://platform.test",
            max_attempts=1,
            proxy=f"http://me:canary@127.0.0.1:{proxy.port}",
        )
        with pytest.raises(PlatformTransportError, match="407") as caught:
            run(config, POST)
    assert caught.value.processed is False


def test_a_proxy_that_cannot_be_used(run: Run, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("https_proxy", "gopher://canary@proxy.test")
    with pytest.raises(PlatformConfigError, match="proxy") as caught:
        run(config_for("https://platform.test"), GET)
    assert caught.value.field == "proxy"


def test_a_ca_bundle_without_certificates(run: Run, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("no certificate")
    with pytest.raises(PlatformConfigError, match="ca_bundle"):
        run(config_for("https://127.0.0.1:9", ca_bundle=str(bundle)), GET)


# --- streams ------------------------------------------------------------------------------------


def reading(body: Any, *, timeout: float = 20.0) -> Program[list[bytes | None]]:
    """Open the chat stream and read it to its end, or to a silence."""
    yield OpenStream(body, timeout=timeout)
    pieces: list[bytes | None] = []
    while not pieces or pieces[-1]:
        pieces.append((yield ReadStream(timeout)))
    yield CloseStream()
    return pieces


def streaming(*pieces: bytes, end: bytes = b"", encoding: bytes = b"") -> Answer:
    def told(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD % encoding)
        for piece in pieces:
            exchange.send(chunk(piece))
        exchange.send(end)

    return told


def joined(pieces: list[bytes | None]) -> bytes:
    return b"".join(piece or b"" for piece in pieces)


def test_a_stream(run: Run) -> None:
    with serving(streaming(b'{"a":1}\n', b'{"b', b'":2}\n', end=chunk(b""))) as server:
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
    heard = threading.Event()

    def told(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD % b"Content-Encoding: gzip\r\n" + chunk(packed[0]))
        heard.wait(20)
        exchange.send(chunk(packed[1] + packer.flush()) + chunk(b""))

    def listening() -> Program[list[bytes]]:
        yield OpenStream({}, timeout=20.0)
        first = yield ReadStream(20.0)
        heard.set()
        return [first, (yield ReadStream(20.0)), (yield ReadStream(20.0))]

    with serving(told) as server:
        assert run(config_for(server), listening()) == [b"one\n", b"two\n", b""]


@pytest.mark.parametrize("encoding", [b"", b"Content-Encoding: gzip\r\n"])
def test_a_stream_that_breaks(run: Run, encoding: bytes) -> None:
    piece = gzip.compress(b"one\n")[:-12] if encoding else b"one\n"
    broken = pytest.raises(PlatformTransportError, match="the connection broke")
    with serving(streaming(piece, end=b"9\r\ncut", encoding=encoding)) as server, broken as caught:
        run(config_for(server), reading({}))
    assert caught.value.processed is None


def test_a_stream_that_falls_silent(run: Run) -> None:
    left = threading.Event()

    def told(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD % b"" + chunk(b"one\n"))
        if exchange.wait_for_the_client_to_leave():
            left.set()

    with serving(told) as server:
        assert run(config_for(server), reading({}, timeout=0.3))[-1] is None
    assert left.is_set()


def test_a_stream_that_never_starts(run: Run) -> None:
    def told(exchange: Exchange) -> None:
        exchange.wait_for_the_client_to_leave()

    timed_out = pytest.raises(PlatformTransportError, match=r"within 0\.3 seconds")
    with serving(told) as server, timed_out as caught:
        run(config_for(server), reading({}, timeout=0.3))
    assert caught.value.processed is None


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        (answer(500, b'{"error": "Out of order"}'), PlatformServerError, "Out of order"),
        (answer(404, b""), PlatformNotFoundError, "premium or enterprise"),
        (answer(200, b"<html>", {"Content-Type": "text/html"}), PlatformAddressError, "HTML"),
        (answer(429, b"", {"Retry-After": "9"}), PlatformRateLimitError, "429"),
    ],
)
def test_a_stream_that_is_refused(run: Run, told: Answer, error: Any, words: str) -> None:
    with serving(told) as server, pytest.raises(error, match=words):
        run(config_for(server), reading({}))
    assert len(server.requests) == 1


def test_a_stream_under_another_success_is_read(run: Run) -> None:
    with serving(answer(201, b"one\n"), answer(204, b"")) as server:
        assert joined(run(config_for(server), reading({}))) == b"one\n"
        assert run(config_for(server), reading({})) == [b""]


def test_an_abort_that_is_not_confirmed(run: Run) -> None:
    refusal = b'{"jsonrpc": "2.0", "error": {"code": -32001, "message": "Unauthorized"}}'
    with serving(answer(200, refusal)) as server, pytest.raises(ChatRpcError, match="Unauthorized"):
        run(config_for(server), abort("c1", None))


def test_an_abort_has_its_own_time_out(run: Run) -> None:
    def told(exchange: Exchange) -> None:
        exchange.wait_for_the_client_to_leave()

    with serving(told) as server, pytest.raises(PlatformTransportError, match=r"0\.3 seconds"):
        run(config_for(server), abort("c1", None, timeout=0.3))


# --- programs -----------------------------------------------------------------------------------


def test_notices_come_before_the_program_goes_on() -> None:
    told: list[Any] = []

    def program() -> Program[str]:
        yield Notify("one")
        told.append("between")
        yield Sleep(-1.0)
        yield Notify("two")
        return "done"

    config = config_for("http://127.0.0.1:9")
    with PlatformClient(config) as client:
        assert client.run(program(), told.append) == "done"
    assert told == ["one", "between", "two"]

    async def run() -> str:
        async with AsyncPlatformClient(config) as aclient:
            return await aclient.run(program(), told.append)

    assert asyncio.run(run()) == "done"
    assert told == ["one", "between", "two"] * 2


def test_a_listener_that_fails_ends_the_program(run: Run) -> None:
    closed: list[str] = []

    def program() -> Program[None]:
        try:
            yield Notify("one")
        finally:
            closed.append("closed")

    def listener(event: Any) -> None:
        raise ZeroDivisionError(event)

    with PlatformClient(config_for("http://127.0.0.1:9")) as client:
        with pytest.raises(ZeroDivisionError):
            client.run(program(), listener)
        assert closed == ["closed"]

        def again() -> Program[str]:
            yield Sleep(0)
            return "usable"

        assert client.run(again()) == "usable"


def test_an_effect_that_is_none() -> None:
    def program() -> Program[None]:
        yield "no effect"  # type: ignore[misc]

    with pytest.raises(TypeError, match="not an effect"):
        run_sync(config_for("http://127.0.0.1:9"), program())


class Stopped(BaseException):
    """What a signal handler raises."""


@pytest.mark.parametrize("work", [POST, None], ids=["a call", "a stream"])
def test_a_signal_cancels_what_is_under_way(work: Any) -> None:
    """As when Airflow stops a task: the handler raises in the middle of `run`."""
    left = threading.Event()

    def told(exchange: Exchange) -> None:
        if work is None:
            exchange.send(STREAM_HEAD % b"" + chunk(b"one\n"))
        os.kill(os.getpid(), signal.SIGUSR1)
        if exchange.wait_for_the_client_to_leave():
            left.set()

    def stop(number: int, frame: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        answers = [told, answer(body=b"[1]")]
        with serving(*answers) as server, PlatformClient(config_for(server)) as client:
            with pytest.raises(Stopped):
                client.run(work or reading({}))
            assert left.wait(20)
            assert client.run(GET) == [1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_cancelling_a_task_closes_its_connection() -> None:
    left = threading.Event()

    async def run(server: Server) -> None:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()

        def told(exchange: Exchange) -> None:
            exchange.send(STREAM_HEAD % b"" + chunk(b"one\n"))
            loop.call_soon_threadsafe(arrived.set)
            if exchange.wait_for_the_client_to_leave():
                left.set()

        server.answers.append(told)
        async with AsyncPlatformClient(config_for(server)) as client:
            task = asyncio.create_task(client.run(reading({})))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(left.wait, 20)

    with serving() as server:
        asyncio.run(run(server))


def test_closing_twice_is_closing() -> None:
    client = PlatformClient(config_for("http://127.0.0.1:9"))
    client.close()
    with serving(answer(body=b"[1]"), answer(body=b"[2]")) as server:
        client = PlatformClient(config_for(server))
        assert client.run(GET) == [1]
        client.close()
        client.close()
