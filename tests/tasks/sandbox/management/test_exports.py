"""Dashboard exports: from submission to file, expiry after five minutes, refusals."""

from __future__ import annotations

import struct
import zlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx
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


def test_failed_export_reports_its_error(platform: Platform) -> None:
    platform.control.set(export_outcome="failed")
    job = submit(platform)
    assert "time limit" in status(platform, job)["error"]
    assert platform.call("GET", f"{PATH}/{job}/download").status_code == 422


def test_a_download_can_be_cut_and_repeated(platform: Platform) -> None:
    job = submit(platform)
    platform.control.fault("cut", path="download$", after=1)
    with pytest.raises(httpx.RemoteProtocolError):
        platform.call("GET", f"{PATH}/{job}/download")
    assert pixels(platform.call("GET", f"{PATH}/{job}/download").content) == (480, 270)


def test_running_exports_are_limited_per_rendered_user(platform: Platform) -> None:
    platform.control.set(export_pace=60)
    for _ in range(5):
        submit(platform)
    body = {"dashboardId": 501, "format": "png"}
    assert platform.call("POST", PATH, json=body).status_code == 429
    submit(platform, renderAs={"type": "USER", "userId": 8})
    platform.control.advance(120)
    submit(platform)


def test_export_can_be_rendered_as_another_user(platform: Platform) -> None:
    retail = {"type": "EMBED_USER", "embedTenantName": "acme-retail", "externalId": "shop-9"}
    submit(platform, renderAs=retail)
    platform.control.set(token_lacks=["Admin"])
    submit(platform)
    refused = {"dashboardId": 501, "format": "png", "renderAs": retail}
    assert platform.call("POST", PATH, json=refused).status_code == 403


def test_export_needs_permission_to_download(platform: Platform) -> None:
    platform.control.change("dashboards", 501, restrictDataDownload=True)
    body = {"dashboardId": 501, "format": "png"}
    response = platform.call("POST", PATH, json=body)
    assert (response.status_code, "downloaded" in response.json()["message"]) == (403, True)
    platform.control.set(token_lacks=["DownloadData"])
    assert platform.call("POST", PATH, json={**body, "dashboardId": 502}).status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"dashboardId": 501}, 400, "format is required"),
        ({"dashboardId": 501, "format": "svg"}, 400, "format must be one of"),
        ({"dashboardId": 501, "format": "png", "layout": "print"}, 400, "needs format pdf"),
        ({"format": "png"}, 404, "exactly one"),
        ({"format": "png", "dashboardId": 501, "dashboardPublicId": "x"}, 404, "exactly one"),
        ({"format": "png", "dashboardId": 601}, 404, "Dashboard 601 not found in deployment 1"),
        ({"format": "png", "dashboardId": 501, "width": 5}, 400, "width should not exist"),
        (
            {"format": "png", "dashboardId": 501, "renderAs": {"type": "USER"}},
            400,
            "exactly one of userId and email",
        ),
        (
            {"format": "png", "dashboardId": 501, "renderAs": {"type": "USER", "userId": 99}},
            404,
            "no active user",
        ),
    ],
)
def test_invalid_export_bodies_are_refused(
    platform: Platform, body: dict[str, Any], status: int, words: str
) -> None:
    response = platform.call("POST", PATH, json=body)
    assert response.status_code == status
    assert words in str(response.json()["message"])
    assert platform.control.state().changed("dashboard-exports") == []
