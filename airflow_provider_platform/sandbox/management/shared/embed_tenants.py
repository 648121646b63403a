"""Embed tenants with their users and groups: what several resources know about embedding."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.items import Item, Items

NAME = r"[a-z][a-z0-9-]{0,34}[a-z0-9]"
"""A tenant's name in its canonical form."""


class EmbedTenants(Items):
    """Tenants; ``users`` and ``groups`` carry the tenant's name, a group the ids of its members.

    One tenant is there from the start, with a user who has an e-mail address and one who has none.
    """

    what = "Embed tenant"

    def __init__(self) -> None:
        super().__init__()
        self.users = Items(first_id=901)
        self.groups = Items(first_id=951)
        self.members: dict[int, list[int]] = {}
        self.provide("acme-retail", "Acme Retail", "2026-04-02")
        self.provide_user("acme-retail", "shop-berlin", email="berlin@retail.example.com")
        self.provide_user("acme-retail", "shop-paris")
        self.provide_group("acme-retail", "buyers", "Those who order")

    def named(self, name: str) -> Item:
        tenant = self.find_name(name)
        if tenant is None:
            raise ApiError(404, f"Embed tenant {name} not found")
        return tenant

    def find_name(self, name: str) -> Item | None:
        return next((tenant for tenant in self.all() if tenant["name"] == name), None)

    def provide(self, name: str, display_name: str | None, now: str) -> Item:
        """The tenant of this name, made if it is not there; a display name replaces its own."""
        tenant = self.find_name(name)
        if tenant is None:
            tenant = self.add(name=name, createdAt=now, displayName=None)
        if display_name is not None:
            tenant["displayName"] = display_name
        return tenant

    def users_of(self, name: str) -> list[Item]:
        return [user for user in self.users.all() if user["embedTenantName"] == name]

    def user(self, name: str, external_id: str) -> Item | None:
        users = self.users_of(name)
        return next((user for user in users if user["externalId"] == external_id), None)

    def provide_user(self, name: str, external_id: str, **fields: Any) -> Item:
        """The user with this external id, made if it is not there; ``fields`` replace its own."""
        user = self.user(name, external_id)
        if user is None:
            user = self.users.add(
                embedTenantName=name,
                externalId=external_id,
                username=external_id,
                email=None,
                firstName=None,
                createdAt="2026-04-02",
                lastLogin=None,
            )
        user.update(fields)
        return user

    def groups_of(self, name: str) -> list[Item]:
        return [group for group in self.groups.all() if group["embedTenantName"] == name]

    def provide_group(self, name: str, group_name: str, description: str | None = None) -> Item:
        """The group of this name, made if it is not there."""
        for group in self.groups_of(name):
            if group["name"] == group_name:
                return group
        group = self.groups.add(embedTenantName=name, name=group_name, description=description)
        self.members[group["id"]] = []
        return group

    def put_in_groups(self, user: Item, groups: list[Item]) -> None:
        """Make ``groups`` the groups of their tenant that the user is in."""
        wanted = {group["id"] for group in groups}
        for group in self.groups_of(user["embedTenantName"]):
            members = self.members[group["id"]]
            if user["id"] in members and group["id"] not in wanted:
                members.remove(user["id"])
            elif user["id"] not in members and group["id"] in wanted:
                members.append(user["id"])

    def forget(self, name: str) -> None:
        """Delete the tenant with all its users and groups."""
        for user in self.users_of(name):
            self.users.delete(user)
        for group in self.groups_of(name):
            self.members.pop(group["id"])
            self.groups.delete(group)
        self.delete(self.named(name))


class EmbedAccess:
    """Who sees the published dashboard of a workbook embedded: tenants by name, or all embed users.

    At the start workbook 301 is shared with the sample tenant, 302 with all embed users.
    """

    ALL = "*"

    def __init__(self) -> None:
        self._granted: dict[int, set[str]] = {301: {"acme-retail"}, 302: {self.ALL}}

    def change(self, workbook_id: int, whom: str, *, allowed: bool) -> None:
        granted = self._granted.setdefault(workbook_id, set())
        if allowed:
            granted.add(whom)
        else:
            granted.discard(whom)

    def forget(self, name: str) -> None:
        """Take everything away from a tenant."""
        for granted in self._granted.values():
            granted.discard(name)

    def of(self, workbook_id: int) -> set[str]:
        return self._granted.get(workbook_id, set())


def shown(item: Item) -> Item:
    """A user or a group as answers carry it: without the name of its tenant."""
    return {name: value for name, value in item.items() if name != "embedTenantName"}
