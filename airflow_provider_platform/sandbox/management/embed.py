"""Embedding: tenants with their users and groups, who sees which dashboard, and sessions."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_platform.client.table.table import problems
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, given, handles
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import branches_of

NAME = r"[a-z][a-z0-9-]{0,34}[a-z0-9]"
"""A tenant's name in its canonical form."""
EVERYBODY = "*"
_DAY = 86400
_RESERVED = ("all", "admin")
_FOR_CREATORS = ("tenantGroups", "tenantGroupDefinitions")


# -- tenants ---------------------------------------------------------------------------------


def tenant_named(call: Call, name: str) -> Item:
    """Return the embed tenant; raises ``ApiError`` (404)."""
    tenant = call.items.find("embed-tenants", name=name)
    if tenant is None:
        raise ApiError(404, f"Embed tenant {name} not found")
    return tenant


def embed_user(call: Call, tenant: str, external_id: str) -> Item | None:
    return call.items.find("embed-users", embedTenantName=tenant, externalId=external_id)


def _provide_tenant(call: Call, name: str, display_name: str | None = None) -> None:
    """Create the tenant if it does not exist; a display name replaces its own."""
    tenant = call.items.find("embed-tenants", name=name) or call.items.add(
        "embed-tenants", {"name": name, "createdAt": call.now, "displayName": None}
    )
    if display_name is not None:
        tenant["displayName"] = display_name


def _provide_group(call: Call, tenant: str, name: str, description: str | None = None) -> Item:
    blank: Item = {
        "embedTenantName": tenant,
        "name": name,
        "description": description,
        "members": [],
    }
    found = call.items.find("groups", embedTenantName=tenant, name=name)
    return found or call.items.add("groups", blank)


def _provide_user(call: Call, tenant: str, external_id: str, fields: Item) -> Item:
    user = embed_user(call, tenant, external_id) or call.items.add(
        "embed-users",
        {
            "embedTenantName": tenant,
            "externalId": external_id,
            "username": external_id,
            **dict.fromkeys(("email", "firstName", "lastLogin")),
            "createdAt": call.now,
        },
    )
    user.update(fields)
    return user


def _put_in_groups(call: Call, user: Item, names: list[str]) -> None:
    """Make these groups the groups of their tenant that the user is in."""
    tenant = user["embedTenantName"]
    wanted = [_provide_group(call, tenant, name)["id"] for name in names]
    for group in call.items.all("groups"):
        if group["embedTenantName"] == tenant:
            others = [user_id for user_id in group["members"] if user_id != user["id"]]
            group["members"] = others + [user["id"]] * (group["id"] in wanted)


@store.view("embed-tenants")
def _tenant(call: Call, tenant: Item) -> Item:
    users = call.items.all("embed-users")
    return {**tenant, "userCount": sum(u["embedTenantName"] == tenant["name"] for u in users)}


@handles("listEmbedTenants")
def list_tenants(call: Call) -> Any:
    return store.page(call, _searched(call, "embed-tenants", "name", "displayName"))


def _searched(call: Call, name: str, *fields: str) -> list[Item]:
    text = str(call.query.get("search") or "").lower()
    return [
        store.shown(call, name, one)
        for one in store.of(call, name)
        if text in " ".join(str(one[key] or "") for key in fields).lower()
    ]


@handles("deleteEmbedTenant")
def delete_tenant(call: Call) -> None:
    """Delete the tenant, its users and groups; one that does not exist is deleted already."""
    name = call.path["embedTenantName"]
    if not re.fullmatch(NAME, name):
        raise ApiError(400, [f"embedTenantName must match {NAME}"])
    tenant = call.items.find("embed-tenants", name=name)
    if tenant is None:
        return
    for resource in ("embed-users", "groups"):
        for one in store.of(call, resource):
            call.items.remove(resource, one)
    for granted in call.store(EmbedAccess).granted.values():
        granted.discard(name)
    store.delete(call, "embed-tenants", tenant)


@handles("listEmbedTenantWorkbooks")
def list_tenant_workbooks(call: Call) -> Any:
    """What its users see, by being the tenant's or everybody's; folders are not shared here."""
    name = tenant_named(call, call.path["embedTenantName"])["name"]
    by_source = {"tenant": {name}, "allEmbedUsers": {EVERYBODY}, "folder": set[str]()}
    wanted = by_source.get(call.query.get("accessSource") or "", {name, EVERYBODY})
    shared = [one for one in store.of(call, "workbooks") if shared_with(call, one["id"]) & wanted]
    return store.page(call, [store.shown(call, "workbooks", one) for one in shared])


# -- users -----------------------------------------------------------------------------------


@store.view("embed-users")
def _without_tenant(_call: Call, user: Item) -> Item:
    return {name: value for name, value in user.items() if name != "embedTenantName"}


@handles("listEmbedUsers")
def list_users(call: Call) -> Any:
    tenant_named(call, call.path["embedTenantName"])
    return store.page(call, _searched(call, "embed-users", "externalId", "email"))


@handles("provisionEmbedUser")
def provision_user(call: Call) -> Any:
    """Create or change the user; the same request again changes nothing."""
    return _provision(call, call.body)


@handles("provisionEmbedUsers")
def provision_users(call: Call) -> Any:
    """Those that can be provisioned are; those that cannot are named with the reason."""
    succeeded, failed = [], []
    for user in call.body["users"]:
        messages = problems({"$ref": "#/$defs/ProvisionEmbedUserInput"}, user)
        if messages:
            error = {"status": 400, "message": "; ".join(messages)}
            failed.append({"externalId": user["externalId"], "error": error})
        else:
            succeeded.append(_provision(call, given(user)))
    return {"succeeded": succeeded, "failed": failed}


def _provision(call: Call, fields: Item) -> Item:
    tenant, external_id = call.path["embedTenantName"], fields["externalId"]
    known = embed_user(call, tenant, external_id)
    _provide_tenant(call, tenant)
    name = fields.get("userProfile", {}).get("displayName")
    changes = {"firstName": name} if name else {}
    changes |= {"email": fields["email"]} if "email" in fields else {}
    user = _provide_user(call, tenant, external_id, changes)
    if "tenantGroups" in fields:
        _put_in_groups(call, user, fields["tenantGroups"])
    call.record("created" if known is None else "updated", "embed-users", user["id"])
    return _without_tenant(call, user)


# -- groups ----------------------------------------------------------------------------------


@store.view("groups")
def _group(_call: Call, group: Item) -> Item:
    shown = {name: group[name] for name in ("id", "name", "description")}
    return {**shown, "userCount": len(group["members"])}


def _meant(call: Call) -> Item:
    tenant_named(call, call.path["embedTenantName"])
    return store.item(call, "groups", call.path["id"])


@handles("getGroups", "getGroup", "updateGroup")
def groups(call: Call) -> Any:
    """As in the generic store, if the tenant exists. A name is never changed."""
    tenant_named(call, call.path["embedTenantName"])
    return store.perform(call)


@handles("createGroup")
def create_group(call: Call) -> Any:
    tenant_named(call, call.path["embedTenantName"])
    name = call.body["name"]
    taken = {group["name"].lower() for group in store.of(call, "groups")}
    if name.lower() in (*taken, *_RESERVED):
        raise ApiError(400, [f"the name {name} is taken or reserved"])
    return _group(call, store.create(call, call.body, members=[]))


@handles("deleteGroup")
def delete_group(call: Call) -> None:
    group = _meant(call)
    if group["members"]:
        raise ApiError(400, [f"group {group['id']} still has members"])
    store.delete(call, "groups", group)


@handles("getGroupMembers")
def list_members(call: Call) -> Any:
    users = [call.items.get("embed-users", user_id) for user_id in _meant(call)["members"]]
    return store.page(call, [_without_tenant(call, user) for user in users if user is not None])


@handles("addGroupMembers")
def add_members(call: Call) -> Any:
    """All of them or, if one is not known, none."""
    group = _meant(call)
    users = {user["id"]: user for user in (_member(call, one) for one in call.body["members"])}
    added = [user_id for user_id in users if user_id not in group["members"]]
    group["members"] += added
    call.record("added", "group-members", group["id"])
    shown = {user_id: _without_tenant(call, user) for user_id, user in users.items()}
    return {
        "addedMembers": [shown[user_id] for user_id in added],
        "unchangedMembers": [one for user_id, one in shown.items() if user_id not in added],
    }


@handles("removeGroupMembers")
def remove_members(call: Call) -> None:
    group = _meant(call)
    gone = {_member(call, one)["id"] for one in call.body["members"]}
    group["members"] = [user_id for user_id in group["members"] if user_id not in gone]
    call.record("removed", "group-members", group["id"])


def _member(call: Call, named: Item) -> Item:
    named = given(named)
    if len(named) != 1:
        raise ApiError(400, ["each member needs exactly one of embedUserId and externalId"])
    field = "id" if "embedUserId" in named else "externalId"
    (value,) = named.values()
    tenant = call.path["embedTenantName"]
    user = call.items.find("embed-users", embedTenantName=tenant, **{field: value})
    if user is None:
        raise ApiError(404, f"Embed user {value} not found in {tenant}")
    return user


# -- access ----------------------------------------------------------------------------------


@dataclass
class EmbedAccess:
    """Who sees the published dashboard of a workbook embedded: tenants by name, or everybody.

    At the start, workbook 301 is shared with the sample tenant, 302 with everybody.
    """

    granted: dict[int, set[str]] = field(
        default_factory=lambda: {301: {"acme-retail"}, 302: {EVERYBODY}}
    )


def shared_with(call: Call, workbook_id: int) -> set[str]:
    return call.store(EmbedAccess).granted.setdefault(workbook_id, set())


@handles("getEmbedAccess", "updateEmbedAccess")
def embed_access(call: Call) -> Any:
    """Show who sees a workbook's dashboard, after a change of one target."""
    workbook, body = store.item(call, "workbooks", call.path["workbookId"]), call.body
    dashboard = call.items.find("dashboards", workbookId=workbook["id"])
    granted = shared_with(call, workbook["id"])
    if call.operation.method == "PUT":
        targets = [name for name in ("allEmbedUsers", "embedTenantName") if body.get(name)]
        _check_access(body, targets, has_dashboard=dashboard is not None)
        whom = EVERYBODY
        if "embedTenantName" in body:
            whom = tenant_named(call, body["embedTenantName"])["name"]
        if dashboard is not None and "allowEmbed" in body:
            dashboard["allowEmbed"] = body["allowEmbed"]
        if targets and body["action"] == "read":
            granted.add(whom)
        elif targets:
            granted.discard(whom)
        call.record("updated", "embed-access", workbook["id"])
    everybody = EVERYBODY in granted
    return {
        "allowEmbed": dashboard is not None and dashboard["allowEmbed"],
        "allEmbedUsers": {
            "enabled": everybody,
            "action": "read" if everybody else "none",
            "groupId": 900 if everybody else None,
        },
        "tenants": [
            {
                "embedTenantName": name,
                "groupId": 900 + tenant_named(call, name)["id"],
                "action": "read",
            }
            for name in sorted(granted - {EVERYBODY})
        ],
    }


def _check_access(body: Item, targets: list[str], *, has_dashboard: bool) -> None:
    if len(targets) > 1:
        raise ApiError(400, ["allEmbedUsers and embedTenantName exclude each other"])
    if bool(targets) != ("action" in body):
        raise ApiError(400, ["action goes with allEmbedUsers=true or embedTenantName"])
    if not targets and "allowEmbed" not in body:
        raise ApiError(400, ["no change is specified"])
    if "allowEmbed" in body and not has_dashboard:
        raise ApiError(400, ["allowEmbed needs a published dashboard"])


# -- sessions --------------------------------------------------------------------------------


class Sessions:
    """Sessions by their secret id: their number, and the claims of the token; None if used."""

    def __init__(self) -> None:
        self.by_id: dict[str, tuple[int, Item | None]] = {}


@handles("generateSession")
def generate_session(call: Call) -> Any:
    """One more session; tenant, groups and user that it names are created if they do not exist."""
    body, tenant = call.body, call.body.get("embedTenantName")
    _check_session(call, body)
    if tenant is not None:
        _provide_tenant(call, tenant, body.get("embedTenantProfile", {}).get("displayName"))
        for group in body.get("tenantGroupDefinitions", []):
            _provide_group(call, tenant, group["name"], group.get("description"))
        for name in body.get("tenantGroups", []):
            _provide_group(call, tenant, name)
        if "externalId" in body:
            email = {"email": body["email"]} if "email" in body else {}
            user = _provide_user(call, tenant, body["externalId"], email)
            _put_in_groups(call, user, body.get("tenantGroups", []))
    claims = {
        "deploymentId": body["deploymentId"],
        "branchName": body.get("branchName"),
        "sub": body.get("externalId") or body.get("internalId"),
        "embedTenantName": tenant,
        "creatorMode": body.get("creatorMode", False),
    }
    session_id, sessions = secrets.token_hex(16), call.store(Sessions).by_id
    sessions[session_id] = (len(sessions) + 1, claims)
    call.record("created", "embed-sessions", len(sessions))
    return {"sessionId": session_id}


@handles("postTokenBySessionId")
def redeem_session(call: Call) -> Any:
    """The session id is the credential, and good for one exchange."""
    sessions, session_id = call.store(Sessions).by_id, call.body["sessionId"]
    number, claims = sessions.get(session_id, (0, None))
    if claims is None:
        raise ApiError(401, "The session is unknown or has been used")
    sessions[session_id] = (number, None)
    now = int(call.server.clock.now())
    call.record("redeemed", "embed-sessions", number)
    token = {**claims, "iat": now, "exp": now + _DAY}
    return {"token": credentials.sign(token, call.server.credentials.api_secret)}


@handles("revokeSession")
def revoke_session(call: Call) -> None:
    """A session that does not exist is revoked already."""
    sessions, session_id = call.store(Sessions).by_id, call.body["sessionId"]
    if session_id in sessions:
        number, _ = sessions[session_id]
        sessions[session_id] = (number, None)
        call.record("revoked", "embed-sessions", number)


def _check_session(call: Call, body: Item) -> None:
    messages = [
        f"{name} needs creatorMode and embedTenantName"
        for name in _FOR_CREATORS
        if name in body and not (body.get("creatorMode") and "embedTenantName" in body)
    ]
    if "externalId" in body and "internalId" in body:
        messages.append("externalId and internalId exclude each other")
    if "embedTenantProfile" in body and "embedTenantName" not in body:
        messages.append("embedTenantProfile needs embedTenantName")
    if messages:
        raise ApiError(400, messages)
    deployment, branch = body["deploymentId"], body.get("branchName")
    if deployment not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {deployment} not found")
    if branch is not None:
        answer = branches_of(call.server, deployment).ask(branch, call.server)
        if answer.kind == "bad":
            raise ApiError(404, f"{branch} is not a branch of deployment {deployment}")
        if answer.kind not in ("serving", "asleep"):
            raise ApiError(400, [f"nothing serves the branch {branch}: {answer.words}"])
    dashboard = body.get("publicDashboardId")
    if dashboard is not None and call.items.find("dashboards", publicId=dashboard) is None:
        raise ApiError(404, f"Dashboard {dashboard} not found")
