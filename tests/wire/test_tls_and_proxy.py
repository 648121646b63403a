"""Proxies, of the connection and of the system, and certificates."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import http
from airflow_provider_platform.client.errors import (
    PlatformConfigError,
    PlatformPermissionError,
    PlatformTransportError,
)
from airflow_provider_platform.client.platform_client import AsyncPlatformClient
from airflow_provider_platform.resources.deployments import get_deployment
from tests.support.wire.calls import GET, POST, Run, config_for, run_sync
from tests.support.wire.http_server import WAIT, answer, closed_port, serving
from tests.wire.test_certificates import authority, bundle, certified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import trustme

__all__ = ["authority", "bundle"]

PROXY_VARIABLES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_system_proxies_are_not_used_for_this_machine(
    run: Run, environment: pytest.MonkeyPatch
) -> None:
    for name in PROXY_VARIABLES[:3]:
        environment.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with serving(answer(body=b"[1]")) as server:
        assert run(config_for(server), GET) == [1]


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_system_proxies_are_used_for_other_hosts(
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


def test_system_proxies_are_used_for_addresses_of_ipv6(
    run: Run, environment: pytest.MonkeyPatch
) -> None:
    with serving(answer(body=b"[1]")) as proxy:
        environment.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert run(config_for("http://[2001:db8::1]:8080", allow_http=True), GET) == [1]
    assert proxy.requests[0].headers["host"] == "[2001:db8::1]:8080"


@pytest.mark.parametrize("proxy_has_tls", [False, True])
def test_tls_of_the_service_goes_through_the_tunnel_of_a_proxy(
    run: Run, authority: trustme.CA, bundle: Path, proxy_has_tls: bool
) -> None:
    tls = certified(authority)
    with (
        serving(answer(body=b"[1]"), tls=tls) as server,
        tunnelling(tls if proxy_has_tls else None) as (proxy, targets),
    ):
        assert run(config_for(server, proxy=proxy, ca_bundle=str(bundle)), GET) == [1]
    assert targets == [f"127.0.0.1:{server.port}"]


@pytest.mark.parametrize("proxy_has_tls", [False, True])
def test_certificate_of_the_service_is_checked_inside_the_tunnel_of_a_proxy(
    run: Run, authority: trustme.CA, bundle: Path, proxy_has_tls: bool
) -> None:
    with (
        serving(answer(), tls=certified(authority, "platform.test")) as server,
        tunnelling(certified(authority) if proxy_has_tls else None) as (proxy, _),
    ):
        config = config_for(server, proxy=proxy, ca_bundle=str(bundle), max_attempts=1)
        with pytest.raises(PlatformTransportError, match="certificate is not valid") as caught:
            run(config, POST)
    assert caught.value.processed is False


@contextmanager
def tunnelling(tls: ssl.SSLContext | None) -> Iterator[tuple[str, list[str]]]:
    """A proxy that opens one tunnel: its address, and where the tunnel leads."""
    targets: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            raw, _ = listener.accept()
            with (
                suppress(OSError),  # the client has left
                tls.wrap_socket(raw, server_side=True) if tls else raw as client,
            ):
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += client.recv(4096)
                targets.append(head.split()[1].decode())
                host, port = targets[0].split(":")
                with socket.create_connection((host, int(port))) as target:
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    relay(client, target)

        serving_tunnel = threading.Thread(target=serve, daemon=True)
        serving_tunnel.start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}", targets
        serving_tunnel.join(WAIT)


def relay(client: socket.socket, target: socket.socket) -> None:
    """Pass on what either side sends, until one of them closes."""
    while True:
        readable, _, _ = select.select([client, target], [], [], WAIT)
        for one, other in ((client, target), (target, client)):
            while one in readable:
                data = one.recv(65536)
                if not data:
                    return
                other.sendall(data)
                if not (isinstance(one, ssl.SSLSocket) and one.pending()):
                    break


def test_refusal_by_a_proxy_is_a_transport_error(run: Run) -> None:
    with serving(answer(407)) as proxy:
        config = config_for(
            "https://platform.test",
            max_attempts=1,
            proxy=f"http://me:canary@127.0.0.1:{proxy.port}",
        )
        with pytest.raises(PlatformTransportError, match="407") as caught:
            run(config, POST)
    assert caught.value.processed is False


def hang_up(client: socket.socket) -> None:
    """End the connection after the first bytes of the client."""
    client.recv(65536)


def stay_silent(client: socket.socket) -> None:
    """Answer nothing until the client leaves."""
    while client.recv(65536):
        pass


def talk_nonsense(client: socket.socket) -> None:
    """Answer what is no protocol."""
    client.recv(65536)
    client.sendall(b"\x00\x00nonsense\r\n\r\n")
    stay_silent(client)


@contextmanager
def accepting(behave: Callable[[socket.socket], None]) -> Iterator[tuple[int, list[int]]]:
    """A server that does this with each connection: its port, and the connections so far."""
    came: list[int] = []

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(WAIT)
            behave(client)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, address = listener.accept()
                came.append(address[1])
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepts = threading.Thread(target=accept, daemon=True)
        accepts.start()
        yield listener.getsockname()[1], came
        listener.shutdown(socket.SHUT_RDWR)
        accepts.join(WAIT)


@pytest.mark.parametrize("behave", [hang_up, stay_silent, talk_nonsense])
@pytest.mark.parametrize("proxy", ["http", "socks5", ""])
def test_request_that_never_left_is_tried_again_and_its_error_names_the_proxy(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    environment: pytest.MonkeyPatch,
    proxy: str,
    behave: Callable[[socket.socket], None],
) -> None:
    """Also one that must not be sent twice. Without a proxy, the TLS handshake fails."""
    del environment
    if proxy == "socks5":
        pytest.importorskip("socksio")
    monkeypatch.setattr(http, "CONNECT_TIMEOUT", 0.2)
    with accepting(behave) as (port, connections):
        fields: dict[str, Any] = {"max_attempts": 2}
        address = f"https://127.0.0.1:{port}"
        if proxy:
            address = "https://platform.test"
            fields["proxy"] = f"{proxy}://me:canary@127.0.0.1:{port}"
        with pytest.raises(PlatformTransportError) as caught:
            run(config_for(address, **fields), POST)
    through = f" through the proxy 127.0.0.1:{port}" if proxy else ""
    assert f"no connection could be made to {address}{through} (" in caught.value.message
    assert caught.value.processed is False
    assert len(connections) == 2
    if behave is stay_silent:
        waited_for = "the answer of the proxy" if proxy else "the TLS handshake"
        assert f"(no end of {waited_for} within 0.2 seconds)" in caught.value.message


def test_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A triggerer that cannot reach the service for hours must not keep a socket for each try."""
    monkeypatch.setattr(http, "CONNECT_TIMEOUT", 0.2)
    ended = threading.Event()

    def note_end(client: socket.socket) -> None:
        stay_silent(client)
        ended.set()

    async def on_a_loop(port: int) -> None:
        async with AsyncPlatformClient(config_for(f"https://127.0.0.1:{port}")) as client:
            with suppress(PlatformTransportError):
                await client.run(lambda api: api.call(GET, once=True))
            assert await asyncio.to_thread(ended.wait, WAIT)

    with accepting(note_end) as (port, _):
        asyncio.run(on_a_loop(port))


def test_unusable_system_proxy_names_the_field_proxy(
    run: Run, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("https_proxy", "gopher://canary@proxy.test")
    with pytest.raises(PlatformConfigError, match="proxy") as caught:
        run(config_for("https://platform.test"), GET)
    assert caught.value.field == "proxy"


def test_certificate_of_a_proxy_is_checked_like_that_of_the_service(
    run: Run, authority: trustme.CA, bundle: Path
) -> None:
    with serving(answer(body=b"[1]"), answer(body=b"[2]"), tls=certified(authority)) as proxy:
        fields = {"allow_http": True, "proxy": f"https://127.0.0.1:{proxy.port}", "max_attempts": 1}
        target = "http://platform.test"
        with pytest.raises(PlatformTransportError, match="certificate verify failed"):
            run(config_for(target, **fields), GET)
        assert proxy.requests == []
        assert run(config_for(target, ca_bundle=str(bundle), **fields), GET) == [1]
        assert run(config_for(target, verify_tls=False, **fields), GET) == [2]


@pytest.mark.parametrize(
    ("no_proxy", "host", "by_proxy"),
    [
        ("a.test, .test ,b.test", "platform.test", False),
        (".platform.test", "platform.test", True),
        ("", "127.0.0.2", True),
    ],
)
def test_no_proxy_names_hosts_and_addresses_as_httpx_reads_it(
    environment: pytest.MonkeyPatch, no_proxy: str, host: str, by_proxy: bool
) -> None:
    with serving(answer(body=b"[1]")) as proxy:
        environment.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        environment.setenv("no_proxy", no_proxy)
        with suppress(PlatformTransportError):
            run_sync(config_for(f"http://{host}:9", allow_http=True, max_attempts=1), GET)
    assert len(proxy.requests) == by_proxy


def test_ca_bundle_without_certificates_is_refused(run: Run, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("no certificate")
    with pytest.raises(PlatformConfigError, match="ca_bundle"):
        run(config_for("https://127.0.0.1:9", ca_bundle=str(bundle)), GET)


def test_address_that_a_later_call_uses_is_not_redacted(
    run: Run, environment: pytest.MonkeyPatch
) -> None:
    """A proxy's password may be a word of it. The name is data, and is redacted."""
    del environment
    body = b"""{"id": 1, "name": "of acme-tenant", "creationStep": "done",
        "deploymentUrl": "https://acme-tenant.example.com"}"""
    with serving(answer(body=body)) as proxy:
        address = f"http://me:acme-tenant@127.0.0.1:{proxy.port}"
        config = config_for("http://platform.test", allow_http=True, proxy=address)
        deployment = run(config, get_deployment(deployment_id=1))
    assert deployment.deployment_url == "https://acme-tenant.example.com"
    assert deployment.name == "of ***"


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_password_of_the_systems_proxy_is_hidden_in_its_error_page(
    run: Run, environment: pytest.MonkeyPatch, scheme: str
) -> None:
    config = config_for("http://platform.test", allow_http=True, max_attempts=1)
    with serving(answer(status=403, body=b"no entry for me:canary/of a proxy")) as proxy:
        password = "canary%2Fof%20a%20proxy"
        environment.setenv("http_proxy", f"{scheme}me:{password}@127.0.0.1:{proxy.port}")
        with pytest.raises(PlatformPermissionError, match=r"no entry for me:\*\*\*"):
            run(config, GET)
