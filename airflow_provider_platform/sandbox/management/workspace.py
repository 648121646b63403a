"""The workspace: folders, workbooks and reports in one list, moved and deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.embed import shared_with
from airflow_provider_platform.sandbox.management.folders import check_folder, path
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.workbooks import forget_dashboard

_NAMES = {"FOLDER": "folders", "WORKBOOK": "workbooks", "REPORT": "reports"}
_ORDERS = {
    "updated_at": "updatedAt",
    "created_at": "createdAt",
    "name": "name",
    "viewer_last_viewed_at": "lastViewedAt",
}


@handles("workspaceObjects")
def get_workspace(call: Call) -> Any:
    """One level, folders first; a search goes through all levels."""
    folder = call.query.get("folderId")
    return _listed(
        call,
        [
            (kind, one)
            for kind in call.query.get("types", _NAMES)
            for one in store.of(call, _NAMES[kind])
            if "search" in call.query
            or one["parentId" if kind == "FOLDER" else "folderId"] == folder
        ],
    )


@handles("sharedWorkspaceObjects")
def get_shared_workspace(call: Call) -> Any:
    """What is shared with embed users: workbooks, whatever their folder unless one is named."""
    return _listed(
        call,
        [
            ("WORKBOOK", one)
            for one in store.of(call, "workbooks")
            if "WORKBOOK" in call.query.get("types", _NAMES)
            and shared_with(call, one["id"])
            and call.query.get("folderId", one["folderId"]) == one["folderId"]
        ],
    )


def _listed(call: Call, found: list[tuple[str, Item]]) -> Any:
    check_folder(call, call.query.get("folderId"))
    text = str(call.query.get("search", "")).lower()
    found = [(kind, one) for kind, one in found if text in one["name"].lower()]
    field = _ORDERS[call.query.get("orderByField", "updated_at")]
    backwards = call.query.get("orderByDirection") == "DESC"
    found.sort(key=lambda one: str(one[1].get(field, "")), reverse=backwards)
    found.sort(key=lambda one: one[0] != "FOLDER")
    return store.page(call, [store.shown(call, _NAMES[kind], one) for kind, one in found])


@handles("moveWorkspaceObject")
def move(call: Call) -> Any:
    return _move(call, call.body["type"], call.body["id"])


@handles("bulkMoveWorkspaceObjects")
def bulk_move(call: Call) -> Any:
    moved, failed = _each(call, _move)
    return {"moved": moved, "failed": failed}


@handles("bulkDeleteWorkspaceObjects")
def bulk_delete(call: Call) -> Any:
    deleted, failed = _each(call, _delete)
    return {"deleted": deleted, "failed": failed}


@handles("deleteFolder")
def delete_folder(call: Call) -> None:
    """Workbooks and reports in it go to the root; a folder with folders in it is not deleted."""
    _delete(call, "FOLDER", call.path["folderId"])


@handles("deleteWorkbook", "deleteReport")
def delete_workbook_or_report(call: Call) -> None:
    kind = "WORKBOOK" if "workbookId" in call.path else "REPORT"
    _delete(call, kind, call.path["workbookId" if kind == "WORKBOOK" else "reportId"])


def _each(call: Call, act: Callable[[Call, str, int], Item]) -> tuple[list[Item], list[Item]]:
    """Act on each item of the body. Those that fail are named with the reason."""
    done, failed = [], []
    for reference in call.body["items"]:
        try:
            done.append(act(call, reference["type"], reference["id"]))
        except ApiError as error:
            message = "; ".join(error.message) if isinstance(error.message, list) else error.message
            failed.append({**reference, "error": {"status": error.status, "message": message}})
    return done, failed


def _move(call: Call, kind: str, item_id: int) -> Item:
    name, target = _NAMES[kind], call.body.get("folderId")
    found = store.item(call, name, item_id)
    check_folder(call, target)
    if kind == "FOLDER" and any(one["id"] == item_id for one in path(call, target)):
        raise ApiError(400, ["a folder cannot be moved into itself"])
    found["parentId" if kind == "FOLDER" else "folderId"] = target
    found["updatedAt"] = call.now
    call.record("moved", name, item_id)
    return store.shown(call, name, found)


def _children(call: Call, folder: Item) -> list[Item]:
    return [one for one in call.items.all("folders") if one["parentId"] == folder["id"]]


def _delete(call: Call, kind: str, item_id: int) -> Item:
    found = store.item(call, _NAMES[kind], item_id)
    if kind == "WORKBOOK":
        forget_dashboard(call, found)
    if kind == "FOLDER":
        if _children(call, found):
            raise ApiError(400, [f"folder {item_id} still has folders in it"])
        for one in [*store.of(call, "workbooks"), *store.of(call, "reports")]:
            if one["folderId"] == item_id:
                one["folderId"] = None
    store.delete(call, _NAMES[kind], found)
    return {"type": kind, "id": item_id}
