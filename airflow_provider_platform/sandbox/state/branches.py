"""The branches of the data model: the default one, and those that syncs or callers have made."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_BRANCH = "main"


@dataclass
class Branch:
    """One branch. ``staging``: whether its staging environment is switched on."""

    id: int
    name: str
    parent: str | None
    staging: bool = False


class Branches:
    """Branches by name. The sandbox has one data model, so all deployments share them."""

    def __init__(self) -> None:
        self._by_name: dict[str, Branch] = {}
        self._last_id = 0
        self.in_dev_mode: dict[int, str] = {}
        """The personal branch that each user works on, by the user's id."""
        for name, parent in ((DEFAULT_BRANCH, None), ("dev", DEFAULT_BRANCH)):
            self.add(name, parent)

    def add(self, name: str, parent: str | None = DEFAULT_BRANCH) -> Branch:
        """The branch of this name, made from ``parent`` if it is not there."""
        if name not in self._by_name:
            self._last_id += 1
            self._by_name[name] = Branch(self._last_id, name, parent)
        return self._by_name[name]

    def get(self, name: str) -> Branch | None:
        return self._by_name.get(name)

    def with_id(self, branch_id: int) -> Branch | None:
        return next((one for one in self._by_name.values() if one.id == branch_id), None)

    def remove(self, branch: Branch) -> None:
        del self._by_name[branch.name]
        users = [user for user, name in self.in_dev_mode.items() if name == branch.name]
        for user in users:
            del self.in_dev_mode[user]

    def all(self) -> list[Branch]:
        return list(self._by_name.values())

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def reachable(self, name: str | None, is_default: bool) -> bool:
        """Whether a chat request that names this branch gets data.

        The default branch must be named as such, and no other branch may be.
        """
        if name is None:
            return True
        return name in self._by_name and (name == DEFAULT_BRANCH) == is_default
