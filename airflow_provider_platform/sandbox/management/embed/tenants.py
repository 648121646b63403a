"""Embed tenants: list, delete, and the workbooks their users see."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import embed_tenants as tenants
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.embed_tenants import (
    EmbedAccess,
    EmbedTenants,
)
from airflow_provider_platform.sandbox.management.shared.resource import Call, Diverted, Resource
from airflow_provider_platform.sandbox.management.workbooks import workbooks
from airflow_provider_platform.sandbox.management.workbooks.workbooks import Workbooks
from airflow_provider_platform.sandbox.state.server_state import ServerState

resource = Resource("/api/v1/embed-tenants", needs="Admin")
shared_workbooks = Resource(
    "/api/v1/deployments/{deploymentId}/embed-tenants/{embedTenantName:text}/workbooks",
    needs="Admin",
    since="0.9.0",
)

_SOURCES = ("tenant", "allEmbedUsers", "folder")

resource.collections["embed-tenants"] = lambda server: server.store(EmbedTenants).all()


@resource.get(since="0.3.0", query={"search": checks.string(), **paging.PARAMETERS})
def list_embed_tenants(call: Call) -> Any:
    store = call.store(EmbedTenants)
    text = str(call.query.get("search", "")).lower()
    items = [
        {**tenant, "userCount": len(store.users_of(tenant["name"]))}
        for tenant in store.all()
        if text in f"{tenant['name']} {tenant['displayName'] or ''}".lower()
    ]
    return paging.page(call, items)


def _in_use(form: str) -> Callable[[ServerState], None]:
    """Older tenants know the path with a slash at its end only, newer ones the other only."""

    def check(server: ServerState) -> None:
        if server.settings.embed_tenant_path == form:
            return
        answer = server.settings.embed_tenant_other_path
        if answer == "redirect":
            raise Diverted(_redirect)
        text = "Cannot DELETE this path: embed tenants are deleted at another one"
        raise ApiError(int(answer), text)

    return check


def _redirect(path: str) -> Response:
    """To the other form of the path."""
    location = path[:-1] if path.endswith("/") else f"{path}/"
    return Response(status_code=308, headers={"location": location})


def delete_embed_tenant(call: Call) -> Response:
    """Delete the tenant, its users and groups; one that is not there is deleted already."""
    name = call.path["embedTenantName"]
    if not re.fullmatch(tenants.NAME, name):
        raise ApiError(400, [f"embedTenantName must match {tenants.NAME}"])
    store = call.store(EmbedTenants)
    tenant = store.find_name(name)
    if tenant is not None:
        store.forget(name)
        call.store(EmbedAccess).forget(name)
        call.record("deleted", "embed-tenants", tenant["id"])
    return call.deleted()


resource.delete("/{embedTenantName:text}/", available=_in_use("slash"))(delete_embed_tenant)
resource.delete("/{embedTenantName:text}", available=_in_use("plain"))(delete_embed_tenant)


@shared_workbooks.get(query={"accessSource": checks.string(one_of=_SOURCES), **paging.PARAMETERS})
def list_embed_tenant_workbooks(call: Call) -> Any:
    """What its users see, by being the tenant's or everybody's; folders are not shared here."""
    name = call.store(EmbedTenants).named(call.path["embedTenantName"])["name"]
    access = call.store(EmbedAccess)
    by_source = {"tenant": {name}, "allEmbedUsers": {EmbedAccess.ALL}, "folder": set[str]()}
    wanted = by_source.get(call.query.get("accessSource", ""), {name, EmbedAccess.ALL})
    items = [
        workbooks.shown(call, workbook)
        for workbook in call.store(Workbooks).of(call.deployment)
        if access.of(workbook["id"]) & wanted
    ]
    return paging.page(call, items)
