"""The branches of the data model: the default one, and those that dbt syncs or tests have made."""

from __future__ import annotations

DEFAULT_BRANCH = "main"


class Branches:
    """Branch names. The sandbox has one data model, so all deployments share them."""

    def __init__(self) -> None:
        self._names = {DEFAULT_BRANCH, "dev"}

    def add(self, name: str) -> None:
        self._names.add(name)

    def names(self) -> list[str]:
        return sorted(self._names)

    def reachable(self, name: str | None, is_default: bool) -> bool:
        """Whether a chat request that names this branch gets data.

        The default branch must be named as such, and no other branch may be.
        """
        if name is None:
            return True
        return name in self._names and (name == DEFAULT_BRANCH) == is_default
