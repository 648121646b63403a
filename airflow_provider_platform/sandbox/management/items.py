"""The items of all resources of the generic store, by their resource and their id."""

from __future__ import annotations

import copy
from typing import Any

from airflow_provider_platform.sandbox.management import samples

Item = dict[str, Any]


class Items:
    """The items, which are the samples at the start. Ids are never used again."""

    def __init__(self) -> None:
        self._of = {
            name: {item["id"]: item for item in copy.deepcopy(items)}
            for name, items in samples.ITEMS.items()
        }
        self._next = {name: max(items, default=0) + 1 for name, items in self._of.items()}

    def names(self) -> list[str]:
        return sorted(self._of)

    def all(self, name: str) -> list[Item]:
        """Return the items of a resource, oldest first."""
        return list(self._of[name].values())

    def get(self, name: str, item_id: Any) -> Item | None:
        return self._of[name].get(item_id)

    def find(self, resource: str, /, **fields: Any) -> Item | None:
        """Return the first item that has these values."""
        return next(
            (
                item
                for item in self.all(resource)
                if all(item.get(key) == value for key, value in fields.items())
            ),
            None,
        )

    def add(self, name: str, fields: dict[str, Any]) -> Item:
        """Add an item with the next free id."""
        item = {"id": self._next[name], **fields}
        self._of[name][item["id"]] = item
        self._next[name] += 1
        return item

    def remove(self, name: str, item: Item) -> None:
        del self._of[name][item["id"]]
