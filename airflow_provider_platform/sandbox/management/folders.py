"""The folders in which workbooks and reports are."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.samples import owner


def path(call: Call, folder_id: int | None) -> list[Item]:
    """Return what items show as ``folderPath``: the folders from the root to this one."""
    folder = call.items.get("folders", folder_id)
    if folder is None:
        return []
    return [*path(call, folder["parentId"]), {"id": folder["id"], "name": folder["name"]}]


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
    level = [
        one for one in store.of(call, "folders") if one["parentId"] == call.query.get("parentId")
    ]
    level.sort(key=lambda folder: folder["position"])
    return store.page(call, [shown(call, folder) for folder in level])
