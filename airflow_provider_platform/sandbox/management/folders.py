"""Folders: a tree for workbooks and reports, one level per list."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.samples import owner

DEPTH = 5
"""Levels that folders may be nested."""


def ancestors(call: Call, folder_id: int | None) -> list[Item]:
    """Return the folders from the root to this one, which is the last."""
    folder = call.items.get("folders", folder_id)
    return [*ancestors(call, folder["parentId"]), folder] if folder else []


def path(call: Call, folder_id: int | None) -> list[Item]:
    """Return what items show as ``folderPath``."""
    return [{"id": one["id"], "name": one["name"]} for one in ancestors(call, folder_id)]


def check_folder(call: Call, folder_id: int | None) -> None:
    """Raise ``ApiError`` (404) if an item is to go into a folder that does not exist."""
    if folder_id is not None:
        store.item(call, "folders", folder_id)


@store.view("folders")
def shown(call: Call, folder: Item) -> Item:
    user, parents = owner(folder["createdBy"]), path(call, folder["parentId"])
    return {**folder, "type": "FOLDER", "user": user, "folderPath": parents}


@handles("getFolders")
def get_folders(call: Call) -> Any:
    """One level, in the order of the positions."""
    parent = call.query.get("parentId")
    check_folder(call, parent)
    level = [one for one in store.of(call, "folders") if one["parentId"] == parent]
    level.sort(key=lambda folder: folder["position"])
    return store.page(call, [shown(call, folder) for folder in level])


@handles("createFolder")
def create_folder(call: Call) -> Any:
    parent = call.body.get("parentId")
    check_folder(call, parent)
    if len(ancestors(call, parent)) >= DEPTH:
        raise ApiError(400, [f"folders can be nested {DEPTH} levels deep"])
    return shown(call, store.create(call, call.body))


@handles("getFolderAncestors")
def get_folder_ancestors(call: Call) -> Any:
    folder = store.item(call, "folders", call.path["folderId"])
    return [shown(call, one) for one in ancestors(call, folder["id"])]
