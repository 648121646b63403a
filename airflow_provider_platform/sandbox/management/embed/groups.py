"""Groups of an embed tenant and their members."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.embed import tenants as embed_tenants
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.embed_tenants import EmbedTenants, shown
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource, given

resource = Resource(
    f"{embed_tenants.resource.path}/{{embedTenantName:text}}/groups", needs="Admin", since="0.3.0"
)

_RESERVED = ("all", "admin")
_DESCRIPTION = checks.string(min_length=0, max_length=500)
_MEMBERS = checks.structure(
    {
        "members": checks.needed(
            checks.array(
                checks.nullable_fields(
                    {"embedUserId": checks.integer(minimum=1), "externalId": checks.string()}
                ),
                minimum=1,
                maximum=1000,
            )
        )
    }
)


@resource.get(query=paging.PARAMETERS)
def list_embed_groups(call: Call) -> Any:
    groups = call.store(EmbedTenants).groups_of(_tenant(call))
    return paging.page(call, [_shown(call, group) for group in groups])


@resource.post(
    body={"name": checks.needed(checks.string(max_length=100)), "description": _DESCRIPTION}
)
def create_embed_group(call: Call) -> Any:
    store, tenant, name = call.store(EmbedTenants), _tenant(call), call.body["name"]
    taken = {group["name"].lower() for group in store.groups_of(tenant)}
    if name.lower() in (*taken, *_RESERVED):
        raise ApiError(400, [f"the name {name} is taken or reserved"])
    group = store.provide_group(tenant, name, call.body.get("description"))
    call.record("created", "embed-groups", group["id"])
    return _shown(call, group)


@resource.get("/{id}")
def get_embed_group(call: Call) -> Any:
    return _shown(call, _group(call))


@resource.patch("/{id}", body={"description": _DESCRIPTION})
def update_embed_group(call: Call) -> Any:
    """The name stays as it is."""
    group = _group(call)
    if "description" in call.document:
        group["description"] = call.document["description"]
    call.record("updated", "embed-groups", group["id"])
    return _shown(call, group)


@resource.delete("/{id}")
def delete_embed_group(call: Call) -> Response:
    store, group = call.store(EmbedTenants), _group(call)
    if store.members[group["id"]]:
        raise ApiError(400, [f"group {group['id']} still has members"])
    store.groups.delete(group)
    del store.members[group["id"]]
    call.record("deleted", "embed-groups", group["id"])
    return call.deleted()


@resource.get("/{id}/users", query=paging.PARAMETERS)
def list_embed_group_members(call: Call) -> Any:
    store = call.store(EmbedTenants)
    members = store.members[_group(call)["id"]]
    return paging.page(call, [shown(store.users.by_id[user_id]) for user_id in members])


@resource.post("/{id}/users", body=_MEMBERS)
def add_embed_group_members(call: Call) -> Any:
    """All of them or, if one is not known, none."""
    store, group = call.store(EmbedTenants), _group(call)
    members = store.members[group["id"]]
    users = _users(call)
    added = [user for user in users if user["id"] not in members]
    answer = {
        "addedMembers": [shown(user) for user in added],
        "unchangedMembers": [shown(user) for user in users if user["id"] in members],
    }
    members += [user["id"] for user in added]
    call.record("added", "embed-group-members", group["id"])
    return answer


@resource.delete("/{id}/users", body=_MEMBERS)
def remove_embed_group_members(call: Call) -> Response:
    store, group = call.store(EmbedTenants), _group(call)
    gone = {user["id"] for user in _users(call)}
    members = store.members[group["id"]]
    members[:] = [user_id for user_id in members if user_id not in gone]
    call.record("removed", "embed-group-members", group["id"])
    return call.deleted()


def _tenant(call: Call) -> str:
    name: str = call.store(EmbedTenants).named(call.path["embedTenantName"])["name"]
    return name


def _group(call: Call) -> Item:
    tenant, group_id = _tenant(call), call.path["id"]
    group = call.store(EmbedTenants).groups.by_id.get(group_id)
    if group is None or group["embedTenantName"] != tenant:
        raise ApiError(404, f"Group {group_id} not found in embed tenant {tenant}")
    return group


def _users(call: Call) -> list[Item]:
    """The users that the body names, each once; 404 for one who is not there."""
    tenant, found = _tenant(call), {}
    for member in call.body["members"]:
        named = given(member)
        if len(named) != 1:
            raise ApiError(400, ["each member needs exactly one of embedUserId and externalId"])
        for user in call.store(EmbedTenants).users_of(tenant):
            if named.get("embedUserId", user["id"]) == user["id"] and (
                named.get("externalId", user["externalId"]) == user["externalId"]
            ):
                found[user["id"]] = user
                break
        else:
            raise ApiError(404, f"Embed user {next(iter(named.values()))} not found in {tenant}")
    return list(found.values())


def _shown(call: Call, group: Item) -> Item:
    return {**shown(group), "userCount": len(call.store(EmbedTenants).members[group["id"]])}
