"""Settings for what the documents leave open about a dbt sync, and checks of what they say."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

BASE = "deployments/1/dbt-sync"


def start(platform: Platform, **body: Any) -> dict[str, Any]:
    """Start a sync and wait for its end in the journal."""
    count = len(platform.control.state().syncs)
    response = platform.call("POST", BASE, json=body)
    assert response.status_code == 200, response.text
    platform.control.wait_until(lambda state: state.syncs[count].ended_at is not None)
    answer: dict[str, Any] = response.json()
    return answer


def history(platform: Platform) -> list[str]:
    return [run["branchName"] for run in platform.call("GET", BASE).json()["items"]]


def test_without_a_pace_a_sync_is_over_before_the_next_request_is_read(platform: Platform) -> None:
    """However fast a client is: this one sends both requests at once."""
    server = httpx.URL(platform.sandbox.management_url)
    path = f"{server.path}/v1/{BASE}"
    head = f"Host: {server.host}\r\nAuthorization: {platform.bearer['Authorization']}\r\n"
    body = json.dumps({"branchName": "one"})
    start = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    read = f"{head}Connection: close\r\n\r\n"
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{start}GET {path} HTTP/1.1\r\n{read}".encode())
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    [run] = json.loads(answered.rpartition(b"\r\n\r\n")[2])["items"]
    assert (run["branchName"], run["status"]) == ("one", "COMPLETED")


def test_history_is_newest_first(platform: Platform) -> None:
    for name in ("one", "two", "three"):
        start(platform, branchName=name)
    assert history(platform) == ["three", "two", "one"]


def test_described_tenant_drops_unknown_fields(platform: Platform) -> None:
    platform.control.set(tenant="described")
    named = start(platform, ref="release-7", output="files")
    assert "release-7" not in named["branchName"]
    assert named["branchName"] in platform.control.branches()


def test_manifest_with_a_ref_is_refused(platform: Platform) -> None:
    body = {"source": "manifest", "manifest": {"nodes": {}}}
    refused = platform.call("POST", BASE, json={**body, "ref": "main"})
    assert (refused.status_code, platform.control.state().syncs) == (400, [])
    assert "ref" in refused.text
    start(platform, **body)
