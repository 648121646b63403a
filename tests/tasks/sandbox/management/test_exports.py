"""Dashboard exports: from submission to file, expiry after five minutes, refusals."""

from __future__ import annotations

import struct
import zlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

PATH = "deployments/1/dashboard-exports"


def submit(platform: Platform, **body: Any) -> str:
    response = platform.call("POST", PATH, json={"dashboardId": 501, "format": "png", **body})
    assert response.status_code == 200, response.text
    job: str = response.json()["jobId"]
    return job


def status(platform: Platform, job: str) -> dict[str, Any]:
    response = platform.call("GET", f"{PATH}/{job}")
    assert response.status_code == 200, response.text
    return dict(response.json())


def pixels(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG whose checksums and data are sound."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    position, data = 8, b""
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        chunk = png[position + 4 : position + 8 + length]
        (checksum,) = struct.unpack(">I", png[position + 8 + length : position + 12 + length])
        assert zlib.crc32(chunk) == checksum
        if chunk[:4] == b"IHDR":
            width, height = struct.unpack(">II", chunk[4:12])
        if chunk[:4] == b"IDAT":
            data += chunk[4:]
        position += 12 + length
    assert len(zlib.decompress(data)) == height * (1 + 3 * width)
    return width, height


def test_export_gives_a_picture(platform: Platform) -> None:
    platform.control.set(export_pace=60)
    job = submit(platform)
    assert status(platform, job) == {"status": "pending", "progress": 0}
    assert platform.call("GET", f"{PATH}/{job}/download").status_code == 409
    platform.control.advance(60)
    assert status(platform, job)["status"] == "processing"
    platform.control.advance(60)
    assert status(platform, job) == {
        "status": "completed",
        "progress": 100,
        "contentType": "image/png",
    }
    answer = platform.call("GET", f"{PATH}/{job}/download", params={"filename": "Umsätze"})
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-disposition"].endswith("Ums%C3%A4tze.png")
    assert pixels(answer.content) == (480, 270)


@pytest.mark.parametrize("layout", ["screenshot", "print"])
def test_export_gives_a_pdf(platform: Platform, layout: str) -> None:
    body = {"dashboardId": None, "dashboardPublicId": "dash00000502"}
    job = submit(platform, format="pdf", layout=layout, **body)
    content = platform.call("GET", f"{PATH}/{job}/download").content
    assert content.startswith(b"%PDF-1.4")
    assert content.endswith(b"%%EOF\n")
    start = int(content.split(b"startxref\n")[1].split(b"\n")[0])
    assert content[start:].startswith(b"xref")
    assert b"Customer health" in content
    assert (b"[0 0 595 842]" in content) == (layout == "print")


def test_export_is_deleted_after_five_minutes(platform: Platform) -> None:
    response = platform.call("POST", PATH, json={"dashboardId": 501, "format": "png"})
    expires = datetime.fromisoformat(response.json()["expiresAt"])
    created = platform.control.state().changed("dashboard-exports")[0]
    assert 299 < expires.timestamp() - created.at < 301
    job = response.json()["jobId"]
    platform.control.advance(299)
    assert platform.call("GET", f"{PATH}/{job}").status_code == 200
    platform.control.advance(1.5)
    assert platform.call("GET", f"{PATH}/{job}").status_code == 404
    assert platform.call("GET", f"{PATH}/{job}/download").status_code == 404


def test_running_exports_are_limited_per_rendered_user(platform: Platform) -> None:
    platform.control.set(export_pace=60)
    for _ in range(5):
        submit(platform)
    body = {"dashboardId": 501, "format": "png"}
    assert platform.call("POST", PATH, json=body).status_code == 429
    submit(platform, renderAs={"type": "USER", "userId": 8})
    platform.control.advance(120)
    submit(platform)
