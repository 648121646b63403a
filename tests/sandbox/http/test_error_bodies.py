"""Forms of errors and of requests in which tenants and their front ends differ."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("message", {"statusCode": 404, "message": "Deployment 9 not found", "error": "Not Found"}),
        ("error", {"error": "Deployment 9 not found"}),
        ("empty", None),
    ],
)
def test_setting_sets_the_form_of_error_bodies(
    platform: Platform, form: str, expected: dict[str, Any] | None
) -> None:
    platform.control.set(error_body=form)
    response = platform.call("GET", "deployments/9")
    assert response.status_code == 404
    assert (response.json() if response.content else None) == expected


def test_error_text_joins_several_broken_rules(platform: Platform) -> None:
    platform.control.set(error_body="error")
    response = platform.chat(input=5, foo=1)
    assert response.json() == {"error": "property foo should not exist; input must be a string"}


@pytest.mark.parametrize("required", [False, True])
def test_setting_decides_whether_a_content_length_is_required(
    platform: Platform, required: bool
) -> None:
    platform.control.set(length_required=required)
    url = urlsplit(platform.sandbox.url)
    lines = [
        "DELETE /build/api/v1/deployments/1/dev-mode HTTP/1.1",
        f"Host: {url.netloc}",
        f"Authorization: {platform.bearer['Authorization']}",
        "Connection: close",
        "",
        "",
    ]
    with socket.create_connection((url.hostname or "", url.port or 0), timeout=30) as peer:
        peer.sendall("\r\n".join(lines).encode())
        assert (b" 411 " in peer.recv(65536).partition(b"\r\n")[0]) is required
    assert platform.call("POST", "deployments/1/token", content=b"").status_code == 200
    assert platform.call("GET", "deployments").status_code == 200
