"""Dashboards seen from outside: one that may be embedded, and allowing it."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards

resource = Resource("/api/v1/embed/dashboard/{publicId:text}", needs="WorkbookRead")


@resource.get()
def get_embeddable_dashboard(call: Call) -> Any:
    dashboard = _dashboard(call)
    if not dashboard["allowEmbed"]:
        raise ApiError(403, f"Dashboard {dashboard['publicId']} does not allow embedding")
    return dashboard


@resource.patch(since="0.3.0", needs="Admin", body={"allowEmbed": checks.needed(checks.boolean)})
def update_dashboard_embedding(call: Call) -> Any:
    dashboard = _dashboard(call)
    dashboard["allowEmbed"] = call.body["allowEmbed"]
    call.record("updated", "dashboards", dashboard["id"])
    return {"publicId": dashboard["publicId"], "allowEmbed": dashboard["allowEmbed"]}


def _dashboard(call: Call) -> Item:
    dashboard = call.store(Dashboards).with_public_id(call.path["publicId"])
    if dashboard is None:
        raise ApiError(404, f"Dashboard {call.path['publicId']} not found")
    return dashboard
