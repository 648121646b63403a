"""Access of embed users to a workbook's dashboard: look and change, one target at a time."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.embed_tenants import (
    EmbedAccess,
    EmbedTenants,
)
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.workbooks import workbooks
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards
from airflow_provider_platform.sandbox.management.workbooks.workbooks import Workbooks

resource = Resource(
    f"{workbooks.resource.path}/{{workbookId}}/embed-access", needs="WorkbookManage", since="0.3.0"
)


@resource.get()
def get_embed_access(call: Call) -> Any:
    return _shown(call, call.store(Workbooks).get(call, "workbookId"))


@resource.put(
    body={
        "action": checks.string(one_of=("read", "none")),
        "allEmbedUsers": checks.boolean,
        "allowEmbed": checks.boolean,
        "embedTenantName": checks.string(),
    }
)
def update_embed_access(call: Call) -> Any:
    workbook = call.store(Workbooks).get(call, "workbookId")
    body = call.body
    targets = [name for name in ("allEmbedUsers", "embedTenantName") if body.get(name)]
    if len(targets) > 1:
        raise ApiError(400, ["allEmbedUsers and embedTenantName exclude each other"])
    if bool(targets) != ("action" in body):
        raise ApiError(400, ["action goes with allEmbedUsers=true or embedTenantName"])
    if not targets and "allowEmbed" not in body:
        raise ApiError(400, ["no change is specified"])
    dashboard = call.store(Dashboards).of_workbook(workbook["id"])
    if "allowEmbed" in body:
        if dashboard is None:
            raise ApiError(400, ["allowEmbed needs a published dashboard"])
        dashboard["allowEmbed"] = body["allowEmbed"]
    if targets:
        whom = EmbedAccess.ALL
        if "embedTenantName" in body:
            whom = call.store(EmbedTenants).named(body["embedTenantName"])["name"]
        allowed = body["action"] == "read"
        call.store(EmbedAccess).change(workbook["id"], whom, allowed=allowed)
    call.record("updated", "embed-access", workbook["id"])
    return _shown(call, workbook)


def _shown(call: Call, workbook: Item) -> Item:
    granted = call.store(EmbedAccess).of(workbook["id"])
    dashboard = call.store(Dashboards).of_workbook(workbook["id"])
    everybody = EmbedAccess.ALL in granted
    tenants = call.store(EmbedTenants)
    return {
        "allowEmbed": dashboard is not None and dashboard["allowEmbed"],
        "allEmbedUsers": {
            "enabled": everybody,
            "action": "read" if everybody else "none",
            "groupId": 900 if everybody else None,
        },
        "tenants": [
            {"embedTenantName": name, "groupId": 900 + tenants.named(name)["id"], "action": "read"}
            for name in sorted(granted - {EmbedAccess.ALL})
        ],
    }
