"""Items of one resource, kept by id: what the stores of the management API have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.resource import Call

Item = dict[str, Any]


class Items:
    """Items by id, oldest first. ``what`` names one of them in messages."""

    what = "Item"

    def __init__(self, samples: Iterable[Item] = (), *, first_id: int = 1) -> None:
        self.by_id: dict[int, Item] = {item["id"]: item for item in samples}
        self._next = max([*self.by_id, first_id - 1]) + 1

    def add(self, **fields: Any) -> Item:
        """A new item under the next free id; ids are never used again."""
        item = {"id": self._next, **fields}
        self.by_id[self._next] = item
        self._next += 1
        return item

    def all(self) -> list[Item]:
        return list(self.by_id.values())

    def of(self, deployment: int) -> list[Item]:
        return [item for item in self.by_id.values() if item["deploymentId"] == deployment]

    def find(self, deployment: int, item_id: Any) -> Item | None:
        item = self.by_id.get(item_id)
        return item if item is not None and item["deploymentId"] == deployment else None

    def get(self, call: Call, parameter: str) -> Item:
        """The item named in the path; 404 where the deployment has none of this id."""
        return self.known(call, call.path[parameter])

    def known(self, call: Call, item_id: Any) -> Item:
        """As ``get``, for an id that came in the body."""
        item = self.find(call.deployment, item_id)
        if item is None:
            raise ApiError(404, f"{self.what} {item_id} not found in deployment {call.deployment}")
        return item

    def delete(self, item: Item) -> None:
        del self.by_id[item["id"]]
