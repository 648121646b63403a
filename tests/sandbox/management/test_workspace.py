"""Folders and the workspace: trees, one list of everything, moving and deleting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform

FOLDERS = "deployments/1/folders"
SPACE = "deployments/1/workspace"


def make(platform: Platform, name: str, parent: int | None = None) -> int:
    response = platform.call("POST", FOLDERS, json={"name": name, "parentId": parent})
    assert response.status_code == 200, response.text
    return int(response.json()["id"])


def names(platform: Platform, path: str) -> list[str]:
    response = platform.call("GET", path)
    assert response.status_code == 200, response.text
    return [item["name"] for item in response.json()["items"]]


def test_folders_are_listed_by_parent(platform: Platform) -> None:
    page = platform.call("GET", FOLDERS).json()
    assert [folder["name"] for folder in page["items"]] == ["Finance", "Operations"]
    assert page["data"] == page["items"]
    assert page["count"] == 2
    assert names(platform, f"{FOLDERS}?parentId=11") == ["Monthly"]
    assert names(platform, f"{FOLDERS}?first=1") == ["Finance"]
    assert page["items"][0]["type"] == "FOLDER"


def test_a_folder_is_made_renamed_and_deleted(platform: Platform) -> None:
    folder = make(platform, "Weekly", 11)
    path = f"{FOLDERS}/{folder}"
    renamed = platform.call("PUT", path, json={"name": "Each week", "position": 1}).json()
    assert (renamed["name"], renamed["parentId"]) == ("Each week", 11)
    assert renamed["folderPath"] == [{"id": 11, "name": "Finance"}]
    platform.call("PUT", "deployments/1/workbooks/302", json={"folderId": folder})
    assert platform.call("DELETE", f"{FOLDERS}/11").status_code == 400
    assert platform.call("DELETE", path).status_code == 204
    assert platform.call("GET", "deployments/1/workbooks/302").json()["folderId"] is None
    assert platform.call("DELETE", path).status_code == 404
    changes = platform.control.state().changes
    assert [(c.action, c.resource) for c in changes if c.id == folder] == [
        ("created", "folders"),
        ("updated", "folders"),
        ("deleted", "folders"),
    ]


def test_workspace_list_has_every_kind_of_item(platform: Platform) -> None:
    root = platform.call("GET", f"{SPACE}?orderByField=name").json()["items"]
    kinds = [item["type"] for item in root]
    assert kinds[:2] == ["FOLDER", "FOLDER"]
    assert set(kinds) == {"FOLDER", "WORKBOOK", "REPORT"}
    assert names(platform, f"{SPACE}?folderId=11&types=WORKBOOK") == ["Sales overview"]
    both = names(platform, f"{SPACE}?folderId=11&types=WORKBOOK&types=FOLDER")
    assert both == ["Monthly", "Sales overview"]
    assert "Monthly" in names(platform, f"{SPACE}?search=month")
    ordered = f"{SPACE}?types=REPORT&folderId=11&orderByField=name&orderByDirection=DESC"
    assert names(platform, ordered) == ["Top products", "Revenue by country", "Orders per month"]
    assert len(names(platform, f"{SPACE}?first=3")) == 3
    shared = platform.call("GET", "deployments/1/shared-workspace").json()["items"]
    assert {item["id"] for item in shared} == {301, 302}


def test_moving_an_item_changes_its_folder(platform: Platform) -> None:
    moved = platform.call(
        "POST", f"{SPACE}/move", json={"type": "WORKBOOK", "id": 302, "folderId": 12}
    )
    assert moved.json()["folderPath"] == [
        {"id": 11, "name": "Finance"},
        {"id": 12, "name": "Monthly"},
    ]
    back = platform.call(
        "POST", f"{SPACE}/move", json={"type": "WORKBOOK", "id": 302, "folderId": None}
    )
    assert back.json()["folderId"] is None
    folder = platform.call("POST", f"{SPACE}/move", json={"type": "FOLDER", "id": 12})
    assert (folder.json()["parentId"], folder.json()["type"]) == (None, "FOLDER")
    assert len(platform.control.state().changed("workbooks", "moved")) == 2


def test_each_failed_item_of_a_bulk_call_is_named(platform: Platform) -> None:
    items = [
        {"type": "REPORT", "id": 104},
        {"type": "FOLDER", "id": 11},
        {"type": "REPORT", "id": 201},
    ]
    answer = platform.call(
        "POST", f"{SPACE}/bulk-move", json={"items": items, "folderId": 12}
    ).json()
    assert [item["id"] for item in answer["moved"]] == [104]
    assert [(one["id"], one["error"]["status"]) for one in answer["failed"]] == [
        (11, 400),
        (201, 404),
    ]
    answer = platform.call("POST", f"{SPACE}/bulk-delete", json={"items": items}).json()
    assert answer["deleted"] == [{"type": "REPORT", "id": 104}]
    assert "folders in it" in answer["failed"][0]["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", FOLDERS, {}, 400, "name is required"),
        ("POST", FOLDERS, {"name": "n" * 256}, 400, "at most 255"),
        ("PUT", f"{FOLDERS}/11", {"parentId": 12}, 400, "parentId should not exist"),
        ("GET", f"{FOLDERS}?parentId=-1", None, 400, "less than 0"),
        ("GET", f"{FOLDERS}/99/ancestors", None, 404, "Folder 99 not found in deployment 1"),
        ("GET", f"{SPACE}?types=CHART", None, 400, "types[0] must be one of"),
        ("GET", f"{SPACE}?folderId=99", None, 404, "Folder 99"),
        ("POST", f"{SPACE}/move", {"id": 301}, 400, "type is required"),
        ("POST", f"{SPACE}/move", {"type": "FOLDER", "id": 11, "folderId": 12}, 400, "into itself"),
        ("POST", f"{SPACE}/bulk-move", {"items": []}, 400, "at least 1"),
        (
            "POST",
            f"{SPACE}/bulk-delete",
            {"items": [{"type": "REPORT", "id": 101}] * 101},
            400,
            "no more than 100",
        ),
    ],
)
def test_invalid_workspace_requests_are_refused(
    platform: Platform, method: str, path: str, body: Any, status: int, words: str
) -> None:
    response = platform.call(method, path, **({} if body is None else {"json": body}))
    assert response.status_code == status
    assert words in str(response.json()["message"])
