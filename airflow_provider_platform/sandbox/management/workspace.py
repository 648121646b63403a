"""The workspace: folders, workbooks and reports in one list; moving and deleting across them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import folders
from airflow_provider_platform.sandbox.management.folders import DEPTH, Folders
from airflow_provider_platform.sandbox.management.reports import reports
from airflow_provider_platform.sandbox.management.reports.reports import Reports
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.embed_tenants import EmbedAccess
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.workbooks import workbooks
from airflow_provider_platform.sandbox.management.workbooks.workbooks import Workbooks

resource = Resource("/api/v1/deployments/{deploymentId}", needs="FolderRead")

_KINDS: dict[str, tuple[type[Items], Callable[[Call, Item], Item]]] = {
    "FOLDER": (Folders, folders.shown),
    "WORKBOOK": (Workbooks, workbooks.shown),
    "REPORT": (Reports, reports.shown),
}
_ORDERS = {
    "updated_at": "updatedAt",
    "created_at": "createdAt",
    "name": "name",
    "viewer_last_viewed_at": "lastViewedAt",
}
_QUERY: checks.Fields = {
    **paging.PARAMETERS,
    "folderId": checks.integer(),
    "types": checks.array(checks.string(one_of=tuple(_KINDS))),
    "orderByField": checks.string(one_of=tuple(_ORDERS)),
    "orderByDirection": checks.string(one_of=("ASC", "DESC")),
    "search": checks.string(),
}
_REFERENCE = checks.structure(
    {
        "type": checks.needed(checks.string(one_of=tuple(_KINDS))),
        "id": checks.needed(checks.integer()),
    }
)
_REFERENCES = checks.array(_REFERENCE, minimum=1, maximum=100)


@resource.get("/workspace", query=_QUERY)
def list_workspace(call: Call) -> Any:
    """One level, folders first; a search goes through all levels."""
    found = [
        (kind, item)
        for kind in call.query.get("types", _KINDS)
        for item in _all(call, kind)
        if "search" in call.query or _parent(kind, item) == call.query.get("folderId")
    ]
    return _listed(call, found)


@resource.get("/shared-workspace", query=_QUERY)
def list_shared_workspace(call: Call) -> Any:
    """What is shared with embed users: workbooks, whatever their folder unless one is named."""
    access = call.store(EmbedAccess)
    found = [
        ("WORKBOOK", item)
        for item in _all(call, "WORKBOOK")
        if "WORKBOOK" in call.query.get("types", _KINDS)
        and access.of(item["id"])
        and call.query.get("folderId", item["folderId"]) == item["folderId"]
    ]
    return _listed(call, found)


@resource.post(
    "/workspace/move",
    needs="FolderEdit",
    body={
        "type": checks.needed(checks.string(one_of=tuple(_KINDS))),
        "id": checks.needed(checks.integer()),
        "folderId": checks.integer(),
    },
)
def move_workspace_object(call: Call) -> Any:
    """Into a folder, or to the root without one; gives the moved item."""
    return _move(call, call.body["type"], call.body["id"])


@resource.post(
    "/workspace/bulk-move",
    since="0.3.0",
    needs="FolderEdit",
    body={"items": checks.needed(_REFERENCES), "folderId": checks.integer()},
)
def bulk_move_workspace_objects(call: Call) -> Any:
    """What can be moved is; what cannot is named with the reason."""
    moved, failed = _each(call, _move)
    return {"moved": moved, "failed": failed}


@resource.post(
    "/workspace/bulk-delete",
    since="0.3.0",
    needs="FolderManage",
    body={"items": checks.needed(_REFERENCES)},
)
def bulk_delete_workspace_objects(call: Call) -> Any:
    deleted, failed = _each(call, _delete)
    return {"deleted": deleted, "failed": failed}


@resource.delete("/folders/{folderId}", needs="FolderManage")
def delete_folder(call: Call) -> Response:
    """Workbooks and reports in it go to the root; a folder with folders in it is not deleted."""
    _delete(call, "FOLDER", call.path["folderId"])
    return call.deleted()


def _all(call: Call, kind: str) -> list[Item]:
    return call.store(_KINDS[kind][0]).of(call.deployment)


def _known(call: Call, kind: str, item_id: int) -> Item:
    return call.store(_KINDS[kind][0]).known(call, item_id)


def _parent(kind: str, item: Item) -> int | None:
    parent: int | None = item["parentId" if kind == "FOLDER" else "folderId"]
    return parent


def _listed(call: Call, found: list[tuple[str, Item]]) -> dict[str, Any]:
    call.store(Folders).check_target(call, call.query.get("folderId"))
    text = str(call.query.get("search", "")).lower()
    found = [one for one in found if text in one[1]["name"].lower()]
    field = _ORDERS[call.query.get("orderByField", "updated_at")]
    backwards = call.query.get("orderByDirection", "ASC") == "DESC"
    found.sort(key=lambda one: str(one[1].get(field, "")), reverse=backwards)
    found.sort(key=lambda one: one[0] != "FOLDER")
    return paging.page(call, [_KINDS[kind][1](call, item) for kind, item in found])


def _each(call: Call, act: Callable[[Call, str, int], Item]) -> tuple[list[Item], list[Item]]:
    done, failed = [], []
    for reference in call.body["items"]:
        try:
            done.append(act(call, reference["type"], reference["id"]))
        except ApiError as error:
            message = "; ".join(error.message) if isinstance(error.message, list) else error.message
            failed.append({**reference, "error": {"status": error.status, "message": message}})
    return done, failed


def _move(call: Call, kind: str, item_id: int) -> Item:
    store = call.store(Folders)
    item, target = _known(call, kind, item_id), call.body.get("folderId")
    store.check_target(call, target)
    if kind == "FOLDER":
        way = store.ancestors(target)
        if item in way:
            raise ApiError(400, ["a folder cannot be moved into itself"])
        if len(way) + store.height(item) > DEPTH:
            raise ApiError(400, [f"folders can be nested {DEPTH} levels deep"])
        item["parentId"] = target
    else:
        item["folderId"] = target
    item["updatedAt"] = call.server.clock.stamp()
    call.record("moved", f"{kind.lower()}s", item_id)
    return _KINDS[kind][1](call, item)


def _delete(call: Call, kind: str, item_id: int) -> Item:
    item = _known(call, kind, item_id)
    if kind == "WORKBOOK":
        workbooks.delete(call, item)
    elif kind == "REPORT":
        reports.delete(call, item)
    else:
        _delete_folder(call, item)
    return {"type": kind, "id": item_id}


def _delete_folder(call: Call, folder: Item) -> None:
    store = call.store(Folders)
    if store.children(folder["id"]):
        raise ApiError(400, [f"folder {folder['id']} still has folders in it"])
    for kind in ("WORKBOOK", "REPORT"):
        for item in call.store(_KINDS[kind][0]).of(call.deployment):
            if item["folderId"] == folder["id"]:
                item["folderId"] = None
    store.delete(folder)
    call.record("deleted", "folders", folder["id"])
