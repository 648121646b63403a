"""The sandbox serves programs of this machine: what a web page can make a browser send is refused.

Requests are written byte by byte, since an HTTP library would set the headers right.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from airflow_provider_platform.sandbox import Sandbox
from tests.support.raw_client import Platform, answer

if TYPE_CHECKING:
    from collections.abc import Iterable

PATHS = [
    "/",
    "/app/threads/none",
    "/sandbox/info",
    "/sandbox/state",
    "/sandbox/no-such-operation",
    "/api/v1/deployments",
    "/api/v1/spec",
    "/build/api/v1/deployments/1/branches",
    "/api/v1/public/acme/agents/1/chat/stream-chat-state",
    "/deployments/1/cubejs-api/v1/cubesql",
    "/some/page/of/the/web/application",
    "/%73andbox/info",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "MOVE", "REPORT"]
FOREIGN_NAMES = [
    "evil.example.com",
    "evil.example.com:{port}",
    "127.0.0.1.evil.example.com:{port}",
    "localhost.evil.example.com:{port}",
    "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example.com",
    "0.0.0.0:{port}",
    "[::]:{port}",
    "127.0.0.1:{port}:80",
    "",
]
FOREIGN_ORIGINS = [
    "http://evil.example.com",
    "http://evil.example.com:{port}",
    "https://127.0.0.1:{port}",
    "http://localhost:{port}",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "null",
]
JSON = {"Content-Type": "application/json"}


def raw(
    platform: Platform, method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, str]:
    """Send exactly this request; returns the status and everything that was answered."""
    url = urlsplit(platform.sandbox.url)
    lines: Iterable[str] = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {value}".format(port=url.port) for name, value in headers.items()),
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    with socket.create_connection((url.hostname or "", url.port or 0), timeout=30) as peer:
        peer.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        received = b""
        while piece := peer.recv(65536):
            received += piece
    return int(received.split(b" ", 2)[1]), received.decode()


def secrets(platform: Platform) -> list[str]:
    info = platform.control.info()
    return [info[name] for name in ("management_token", "chat_api_key", "api_secret")]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_refuses_a_foreign_name_and_a_foreign_origin(
    platform: Platform, path: str
) -> None:
    version = platform.control.state().version
    for method in METHODS:
        for headers in (
            {"Host": "evil.example.com:{port}", **JSON},
            {"Host": "127.0.0.1:{port}", "Origin": "http://evil.example.com", **JSON},
        ):
            status, answered = raw(platform, method, path, headers, b"{}")
            assert status == 403, (method, headers)
            assert not any(secret in answered for secret in secrets(platform))
    assert platform.control.state().version == version


@pytest.mark.parametrize("name", FOREIGN_NAMES)
def test_foreign_host_names_are_refused(platform: Platform, name: str) -> None:
    status, answered = raw(platform, "GET", "/sandbox/info", {"Host": name, **JSON})
    assert status in (400, 403)
    assert not any(secret in answered for secret in secrets(platform))


@pytest.mark.parametrize(
    "name", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LocalHost"]
)
def test_own_host_names_are_accepted(platform: Platform, name: str) -> None:
    """Any port will do: the sandbox may be reached through a forwarded one."""
    assert raw(platform, "GET", "/sandbox/info", {"Host": name})[0] == 200
    same_origin = {"Host": name, "Origin": f"http://{name}", **JSON}
    assert raw(platform, "POST", "/sandbox/settings", same_origin, b"{}")[0] == 200


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_foreign_origins_are_refused(platform: Platform, origin: str) -> None:
    headers = {"Host": "127.0.0.1:{port}", "Origin": origin, **JSON}
    for method, path in (("GET", "/sandbox/info"), ("POST", "/sandbox/reset")):
        status, answered = raw(platform, method, path, headers, b"{}")
        assert status == 403
        assert not any(secret in answered for secret in secrets(platform))


def test_a_request_without_a_name_is_refused(platform: Platform) -> None:
    url = urlsplit(platform.sandbox.url)
    with socket.create_connection((url.hostname or "", url.port or 0), timeout=30) as peer:
        peer.sendall(b"GET /sandbox/info HTTP/1.0\r\n\r\n")
        assert b" 403 " in peer.recv(65536).partition(b"\r\n")[0]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PROPPATCH"])
@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json"]
)
def test_a_control_request_that_is_not_json_changes_nothing(
    platform: Platform, method: str, kind: str | None
) -> None:
    headers = {"Host": "127.0.0.1:{port}", **({"Content-Type": kind} if kind else {})}
    platform.control.fault("drop", path="/never")
    for path, body in (
        ("/sandbox/settings", {"pace": 3}),
        ("/sandbox/arm", {"kind": "drop"}),
        ("/sandbox/reset", {}),
        ("/sandbox/rotate", {"which": "chat_api_key"}),
    ):
        assert raw(platform, method, path, headers, json.dumps(body).encode())[0] == 415
    assert platform.control.settings()["pace"] == 0
    assert len(platform.control.faults()) == 1
    assert answer(platform.ask("orders per month"))


def test_a_preflight_is_not_allowed(platform: Platform) -> None:
    """Without a permission in the answer, a browser does not send the request that it asks for."""
    asking = {"Access-Control-Request-Method": "POST", "Origin": "http://evil.example.com"}
    status, answered = raw(platform, "OPTIONS", "/sandbox/reset", {"Host": "localhost", **asking})
    assert status == 403
    assert "access-control-allow" not in answered.lower()


def test_a_sandbox_on_ipv6_answers_to_its_name() -> None:
    with Sandbox(host="::1") as sandbox:
        assert sandbox.control.info()["url"] == sandbox.url
