"""Folders: a tree for workbooks and reports, one level per list."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging, users
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource

resource = Resource("/api/v1/deployments/{deploymentId}/folders", needs="FolderRead")

DEPTH = 5
"""Levels that folders may be nested."""
_SAMPLES = (
    (11, 1, "Finance", None),
    (12, 1, "Monthly", 11),
    (13, 1, "Operations", None),
    (21, 2, "Trials", None),
)


class Folders(Items):
    """Folders by id: 11 with 12 in it and 13 in deployment 1, 21 in deployment 2."""

    what = "Folder"

    def __init__(self) -> None:
        super().__init__(
            {
                "id": folder_id,
                "name": name,
                "position": folder_id,
                "deploymentId": deployment,
                "createdAt": "2026-02-01",
                "updatedAt": "2026-02-01T09:00:00.000Z",
                "createdBy": 7,
                "updatedBy": 7,
                "parentId": parent,
            }
            for folder_id, deployment, name, parent in _SAMPLES
        )

    def ancestors(self, folder_id: int | None) -> list[Item]:
        """The way from the root to this folder, itself included."""
        way: list[Item] = []
        while folder_id is not None:
            folder = self.by_id[folder_id]
            way.insert(0, folder)
            folder_id = folder["parentId"]
        return way

    def children(self, folder_id: int) -> list[Item]:
        return [folder for folder in self.all() if folder["parentId"] == folder_id]

    def path(self, folder_id: int | None) -> list[dict[str, Any]]:
        """What items show as ``folderPath``."""
        return [{"id": one["id"], "name": one["name"]} for one in self.ancestors(folder_id)]

    def height(self, folder: Item) -> int:
        """Levels of this folder and what is below it."""
        return 1 + max((self.height(child) for child in self.children(folder["id"])), default=0)

    def check_target(self, call: Call, folder_id: int | None) -> None:
        """404 where an item is to go into a folder that is not there."""
        if folder_id is not None:
            self.known(call, folder_id)


resource.collections["folders"] = lambda server: server.store(Folders).all()


def shown(call: Call, folder: Item) -> Item:
    """A folder as answers carry it."""
    return {
        **folder,
        "type": "FOLDER",
        "user": users.owner(folder["createdBy"]),
        "folderPath": call.store(Folders).path(folder["parentId"]),
    }


@resource.get(query={"parentId": checks.integer(minimum=0), **paging.PARAMETERS})
def list_folders(call: Call) -> Any:
    store = call.store(Folders)
    parent = call.query.get("parentId")
    store.check_target(call, parent)
    level = [folder for folder in store.of(call.deployment) if folder["parentId"] == parent]
    level.sort(key=lambda folder: folder["position"])
    return paging.page(call, [shown(call, folder) for folder in level], deprecated=True)


@resource.post(
    needs="FolderEdit",
    body={
        "name": checks.needed(checks.string(max_length=255)),
        "parentId": checks.integer(),
        "position": checks.integer(),
    },
)
def create_folder(call: Call) -> Any:
    store = call.store(Folders)
    parent = call.body.get("parentId")
    store.check_target(call, parent)
    if len(store.ancestors(parent)) >= DEPTH:
        raise ApiError(400, [f"folders can be nested {DEPTH} levels deep"])
    now, caller = call.server.clock.stamp(), call.user
    folder = store.add(
        name=call.body["name"],
        position=call.body.get("position", 0),
        deploymentId=call.deployment,
        createdAt=now,
        updatedAt=now,
        createdBy=caller,
        updatedBy=caller,
        parentId=parent,
    )
    call.record("created", "folders", folder["id"])
    return shown(call, folder)


@resource.put(
    "/{folderId}",
    needs="FolderEdit",
    body={"name": checks.string(max_length=255), "position": checks.integer()},
)
def update_folder(call: Call) -> Any:
    """Rename or reorder; moving is an operation of the workspace."""
    folder = call.store(Folders).get(call, "folderId")
    folder |= call.body
    folder |= {"updatedAt": call.server.clock.stamp(), "updatedBy": call.user}
    call.record("updated", "folders", folder["id"])
    return shown(call, folder)


@resource.get("/{folderId}/ancestors")
def list_folder_ancestors(call: Call) -> Any:
    """Root first, the folder itself last."""
    folder = call.store(Folders).get(call, "folderId")
    return [shown(call, one) for one in call.store(Folders).ancestors(folder["id"])]
