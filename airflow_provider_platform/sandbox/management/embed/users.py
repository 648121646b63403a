"""Users of an embed tenant: list, and provision one or many."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.embed import tenants as embed_tenants
from airflow_provider_platform.sandbox.management.shared import embed_bodies, paging
from airflow_provider_platform.sandbox.management.shared.embed_tenants import EmbedTenants, shown
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource, given

resource = Resource(f"{embed_tenants.resource.path}/{{embedTenantName:text}}", needs="Admin")

_TEXTS = checks.array(checks.string())
_MOST = 100
_FIELDS: checks.Fields = {
    "externalId": checks.needed(checks.string()),
    "groups": _TEXTS,
    "tenantGroups": _TEXTS,
    "userProfile": embed_bodies.USER_PROFILE,
}
_USER = checks.nullable_fields({**_FIELDS, "email": embed_bodies.EMAIL})
_ENTRY = checks.nullable_fields({**_FIELDS, "email": checks.string()})


@resource.get("/users", since="0.3.0", query={"search": checks.string(), **paging.PARAMETERS})
def list_embed_users(call: Call) -> Any:
    name = call.store(EmbedTenants).named(call.path["embedTenantName"])["name"]
    text = str(call.query.get("search", "")).lower()
    users = [
        shown(user)
        for user in call.store(EmbedTenants).users_of(name)
        if text in f"{user['externalId']} {user['email'] or ''}".lower()
    ]
    return paging.page(call, users)


@resource.post("/user", body=_USER)
def provision_embed_user(call: Call) -> Any:
    """Make or change the user; the same request again changes nothing."""
    return _provision(call, call.body)


@resource.post(
    "/users",
    body={"users": checks.needed(checks.array(_ENTRY, minimum=1, maximum=_MOST))},
)
def provision_embed_users(call: Call) -> Any:
    """Those that can be provisioned are; those that cannot are named with the reason."""
    succeeded, failed = [], []
    for user in call.body["users"]:
        fields = given(user)
        try:
            if messages := _USER(fields, ""):
                raise ApiError(400, "; ".join(messages))
            succeeded.append(_provision(call, fields))
        except ApiError as error:
            reason = {"status": error.status, "message": error.message}
            failed.append({"externalId": user["externalId"], "error": reason})
    return {"succeeded": succeeded, "failed": failed}


def _provision(call: Call, fields: dict[str, Any]) -> Item:
    store, name = call.store(EmbedTenants), call.path["embedTenantName"]
    known = None if store.find_name(name) is None else store.user(name, fields["externalId"])
    store.provide(name, None, call.server.clock.stamp())
    profile = fields.get("userProfile", {})
    changes = {
        **({"email": fields["email"]} if "email" in fields else {}),
        **({"firstName": profile["displayName"]} if profile.get("displayName") else {}),
    }
    user = store.provide_user(name, fields["externalId"], **changes)
    if "tenantGroups" in fields:
        groups = [store.provide_group(name, group) for group in fields["tenantGroups"]]
        store.put_in_groups(user, groups)
    call.record("created" if known is None else "updated", "embed-users", user["id"])
    return shown(user)
