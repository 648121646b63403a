"""Reports: the list and its paging rules, writing, versions, public ids and placements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

PATH = "deployments/1/reports"
SPOT = {"externalWorkbookId": "sheet-1", "resultLocation": "A1"}
CHECKSUM = {"v": 1, "chunks": [{"from": 0, "hash": "h"}], "payload": "p"}


def listed(platform: Platform, query: str) -> list[int]:
    response = platform.call("GET", f"{PATH}?{query}")
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["items"]]


def create(platform: Platform, **body: Any) -> dict[str, Any]:
    response = platform.call("POST", PATH, json=body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_report_list_can_be_filtered(platform: Platform) -> None:
    assert listed(platform, "workbookId=301") == [101, 102]
    assert listed(platform, "folderId=11&search=TOP") == [103]
    assert listed(platform, "externalWorkbookId=nowhere") == []
    assert listed(platform, "folderId=11") == [101, 102, 103]


def test_creating_a_report_twice_without_a_public_id_makes_two(platform: Platform) -> None:
    body = {"name": "Daily", "sqlQuery": "SELECT 1", "jsonQuery": "{}", "folderId": 13}
    ids = [create(platform, **body)["id"] for _ in range(2)]
    assert [entry.id for entry in platform.control.state().changed("reports")] == ids


def test_update_changes_only_the_given_fields_and_checks_the_version(platform: Platform) -> None:
    path = f"{PATH}/101"
    before = platform.call("GET", path).json()
    body = {"title": "Revenue", "folderId": None, "expectedVersion": before["version"]}
    after = platform.call("PUT", path, json=body).json()
    assert (after["title"], after["folderId"], after["name"]) == ("Revenue", None, before["name"])
    assert after["version"] == before["version"] + 1
    stale = platform.call("PUT", path, json=body)
    assert (stale.status_code, "version 2" in stale.json()["message"]) == (409, True)


def test_report_is_created_or_updated_by_its_public_id(platform: Platform) -> None:
    path = f"{PATH}/by-public-id/ABCDEFabcdef"
    first = platform.call("PUT", path, json={"name": "As code", "source": "D3"}).json()
    second = platform.call("PUT", path, json={"title": "T"}).json()
    assert first["id"] == second["id"]
    assert (second["name"], second["title"], second["source"]) == ("As code", "T", "D3")
    assert second["publicId"] == "ABCDEFabcdef"


def test_deleted_report_is_gone(platform: Platform) -> None:
    answer = platform.call("DELETE", f"{PATH}/101")
    assert (answer.status_code, answer.content) == (200, b"")
    assert platform.call("DELETE", f"{PATH}/101").status_code == 404
    assert 101 not in listed(platform, "")
    assert platform.control.state().changed("reports", "deleted")[0].id == 101


def test_placements_are_refreshed_corrected_and_listed(platform: Platform) -> None:
    connect = f"{PATH}/101/connect-workbook"
    report = platform.call("PUT", connect, json={**SPOT, "resultChecksum": CHECKSUM}).json()
    (placement,) = report["externalWorkbookPlacements"]
    assert placement["resultChecksum"] == CHECKSUM
    platform.control.advance(60)
    moved = {**SPOT, "placementId": placement["id"], "resultLocation": "B2", "addressOnly": True}
    (corrected,) = platform.call("PUT", connect, json=moved).json()["externalWorkbookPlacements"]
    assert corrected["resultLocation"] == "B2"
    assert corrected["refreshedAt"] == placement["refreshedAt"]
    assert corrected["resultChecksum"] == CHECKSUM
    address = {"externalWorkbookId": "sheet-1", "resultLocation": "B2"}
    refreshed = platform.call("PUT", f"{PATH}/101/refresh", json=address).json()
    assert refreshed["externalWorkbookPlacements"][0]["refreshedAt"] > placement["refreshedAt"]
    assert platform.call("PUT", f"{PATH}/101/refresh").status_code == 200
    other = {**SPOT, "externalWorkbookId": "sheet/1"}
    platform.call("PUT", "deployments/2/reports/201/connect-workbook", json=other)
    platform.call("PUT", connect, json=other)
    answer = platform.call("GET", "external-documents/sheet%2F1/placements").json()
    assert [(one["reportId"], one["access"]) for one in answer["items"]] == [
        (101, "GRANTED"),
        (201, "GRANTED"),
    ]
    page = platform.call("GET", "external-documents/sheet%2F1/placements?first=1").json()
    assert page["pageInfo"]["hasNextPage"] is True


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "", {"name": "n" * 256}, "at most 255"),
        ("POST", "", {"publicId": "short"}, "publicId must be at least 12 characters"),
        ("POST", "", {"jsonQuery": "{"}, "must be JSON text"),
        ("POST", "", {"source": "PAPER"}, "source must be one of"),
        ("POST", "", {"pivotItems": {"rows": []}}, "pivotItems.columns is required"),
        ("PUT", "/101", {"source": "D3"}, "source should not exist"),
        ("PUT", "/101", {"expectedVersion": "1"}, "must be an integer"),
        (
            "PUT",
            "/101/connect-workbook",
            {"resultLocation": "A1"},
            "externalWorkbookId is required",
        ),
        (
            "PUT",
            "/101/connect-workbook",
            {**SPOT, "resultChecksum": {"v": 1, "chunks": [{"from": -1, "hash": "h"}]}},
            "must not be less than 0",
        ),
        ("PUT", "/101/refresh", {"endResultCell": "B2"}, "should not exist"),
        ("GET", "?first=1&page=1", None, "cannot be mixed"),
        ("GET", "?sortDirection=desc", None, "must be one of"),
    ],
)
def test_invalid_reports_requests_are_refused(
    platform: Platform, method: str, path: str, body: Any, words: str
) -> None:
    options = {} if body is None else {"json": body}
    response = platform.call(method, f"{PATH}{path}", **options)
    assert response.status_code == 400
    assert words in str(response.json()["message"])


def test_report_needs_existing_references_and_permissions(platform: Platform) -> None:
    for fields in ({"folderId": 21}, {"workbookId": 401}):
        assert platform.call("POST", PATH, json=fields).status_code == 404
        assert platform.call("PUT", f"{PATH}/101", json=fields).status_code == 404
    platform.control.set(token_lacks=["ReportEdit", "ReportManage"])
    spot = platform.call("PUT", f"{PATH}/101/connect-workbook", json=SPOT)
    assert spot.status_code == 200
    for method, path in (("POST", ""), ("PUT", "/101"), ("DELETE", "/101")):
        assert platform.call(method, f"{PATH}{path}", json={}).status_code == 403


def test_a_placement_and_a_refresh_leave_the_report_as_it_was(platform: Platform) -> None:
    """They record an address and a time: who sorts by `updatedAt` sees who edited the report."""
    before = platform.call("GET", f"{PATH}/101").json()
    for action, body in (("connect-workbook", SPOT), ("refresh", SPOT), ("refresh", {})):
        address = {name: body[name] for name in body if name != "endResultCell"}
        response = platform.call(
            "PUT", f"{PATH}/101/{action}", json=body if action != "refresh" else address
        )
        assert response.status_code == 200, response.text
    after = platform.call("GET", f"{PATH}/101").json()
    assert (after["updatedAt"], after["version"]) == (before["updatedAt"], before["version"])
    assert after["externalWorkbookPlacements"]
    platform.call("PUT", f"{PATH}/101", json={"name": "Changed"})
    assert platform.call("GET", f"{PATH}/101").json()["updatedAt"] > before["updatedAt"]
