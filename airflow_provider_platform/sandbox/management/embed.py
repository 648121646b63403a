"""Embedding: tenants with their users and groups, who sees which dashboard, and sessions."""

from __future__ import annotations

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

EVERYBODY = "*"
_DAY = 86400


# -- tenants ---------------------------------------------------------------------------------


def tenant_named(call: Call, name: str) -> Item:
    """Return the embed tenant; raises ``ApiError`` (404)."""
    tenant = call.items.find("embed-tenants", name=name)
    if tenant is None:
        raise ApiError(404, f"Embed tenant {name} not found")
    return tenant


def embed_user(call: Call, tenant: str, external_id: str) -> Item | None:
    return call.items.find("users", embedTenantName=tenant, externalId=external_id)


def _provide(call: Call, name: str, fields: Item, **more: Any) -> Item:
    """Return the item with these fields; create it with ``more`` if it does not exist."""
    return call.items.find(name, **fields) or call.items.add(name, {**fields, **more})


def _provide_tenant(call: Call, name: str, display_name: str | None = None) -> None:
    """Create the tenant if it does not exist; a display name replaces its own."""
    tenant = _provide(call, "embed-tenants", {"name": name}, createdAt=call.now, displayName=None)
    tenant["displayName"] = display_name or tenant["displayName"]


def _provide_user(call: Call, tenant: str, external_id: str, fields: Item) -> Item:
    blank = dict.fromkeys(("email", "firstName", "lastLogin"))
    named = {"embedTenantName": tenant, "externalId": external_id}
    more = {"username": external_id, "createdAt": call.now, **blank}
    user = _provide(call, "users", named, **more)
    user.update(fields)
    return user


def _put_in_groups(call: Call, user: Item, names: list[str]) -> None:
    """Make these groups the groups of their tenant that the user is in."""
    tenant = user["embedTenantName"]
    for name in names:
        named = {"embedTenantName": tenant, "name": name}
        _provide(call, "groups", named, description=None, members=[])
    for group in call.items.all("groups"):
        if group["embedTenantName"] == tenant:
            others = [user_id for user_id in group["members"] if user_id != user["id"]]
            group["members"] = others + [user["id"]] * (group["name"] in names)


@store.view("embed-tenants")
def _tenant(call: Call, tenant: Item) -> Item:
    users = call.items.all("users")
    return {**tenant, "userCount": sum(u["embedTenantName"] == tenant["name"] for u in users)}


@handles("deleteEmbedTenant")
def delete_tenant(call: Call) -> None:
    """Delete the tenant, its users and groups; one that does not exist is deleted already."""
    tenant = call.items.find("embed-tenants", name=call.path["embedTenantName"])
    if tenant is None:
        return
    for resource in ("users", "groups"):
        for one in store.of(call, resource):
            call.items.remove(resource, one)
    for granted in call.store(EmbedAccess).granted.values():
        granted.discard(tenant["name"])
    store.delete(call, "embed-tenants", tenant)


# -- users -----------------------------------------------------------------------------------


@store.view("users")
def _without_tenant(_call: Call, user: Item) -> Item:
    return {name: value for name, value in user.items() if name != "embedTenantName"}


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
    call.record("created" if known is None else "updated", "users", user["id"])
    return _without_tenant(call, user)


# -- groups ----------------------------------------------------------------------------------


@store.view("groups")
def _group(_call: Call, group: Item) -> Item:
    shown = {name: group[name] for name in ("id", "name", "description")}
    return {**shown, "userCount": len(group["members"])}


@handles("getGroupMembers", "addGroupMembers", "removeGroupMembers")
def members(call: Call) -> Any:
    """The users in a group, after some have been added or removed."""
    group = store.item(call, "groups", call.path["id"])
    known: list[int] = group["members"]
    users = {user["id"]: _without_tenant(call, user) for user in store.of(call, "users")}
    if call.operation.method == "GET":
        return store.page(call, [users[user_id] for user_id in known if user_id in users])
    named = [value for one in call.body["members"] for value in given(one).values()]
    meant = [one for one, user in users.items() if one in named or user["externalId"] in named]
    if len(meant) != len(set(named)):
        raise ApiError(404, f"The tenant {call.path['embedTenantName']} has not all of these users")
    if call.operation.method == "DELETE":
        group["members"] = [user_id for user_id in known if user_id not in meant]
        call.record("removed", "group-members", group["id"])
        return None
    added = [user_id for user_id in meant if user_id not in known]
    answer = {
        "addedMembers": [users[user_id] for user_id in added],
        "unchangedMembers": [users[user_id] for user_id in meant if user_id in known],
    }
    known += added
    call.record("added", "group-members", group["id"])
    return answer


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
        whom = EVERYBODY
        if "embedTenantName" in body:
            whom = tenant_named(call, body["embedTenantName"])["name"]
        if dashboard is not None and "allowEmbed" in body:
            dashboard["allowEmbed"] = body["allowEmbed"]
        if "action" in body:
            granted.discard(whom)
            granted.update([whom] if body["action"] == "read" else [])
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
    deployment, branch = body["deploymentId"], body.get("branchName")
    if deployment not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {deployment} not found")
    if branch is not None:
        answer = branches_of(call.server, deployment).ask(branch, call.server)
        if answer.kind == "bad":
            raise ApiError(404, f"{branch} is not a branch of deployment {deployment}")
        if answer.kind not in ("serving", "asleep"):
            raise ApiError(400, [f"nothing serves the branch {branch}: {answer.words}"])
