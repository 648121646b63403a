"""The dashboard of a workbook: its draft, publishing it, and the thread of an AI widget."""

from __future__ import annotations

import copy
from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.files import canonical_file
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.workbooks import dashboard_bodies, workbooks
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards
from airflow_provider_platform.sandbox.management.workbooks.workbooks import Workbooks

resource = Resource(f"{workbooks.resource.path}/{{workbookId}}", needs="WorkbookRead")


@resource.put("/dashboard", needs="WorkbookEdit", body={"dashboardDraft": dashboard_bodies.DRAFT})
def update_workbook_dashboard(call: Call) -> Any:
    """Save the draft; widgets without an id are given one."""
    workbook = call.store(Workbooks).get(call, "workbookId")
    draft = call.body.get("dashboardDraft")
    for number, widget in enumerate((draft or {}).get("widgets") or [], start=1):
        widget["id"] = widget.get("id") or f"widget-{number}"
    if "dashboardDraft" in call.document:
        workbook["dashboardDraft"] = draft
        workbook["updatedAt"] = call.server.clock.stamp()
    call.record("updated", "dashboard-drafts", workbook["id"])
    published = workbooks.shown(call, workbook)["dashboardPublished"]
    return {"dashboardDraft": workbook["dashboardDraft"], "dashboardPublished": published}


@resource.get("/dashboard/file", since="0.17.0")
def get_workbook_dashboard_file(call: Call) -> Any:
    """The draft as canonical JSON text."""
    workbook = call.store(Workbooks).get(call, "workbookId")
    if workbook["dashboardDraft"] is None:
        raise ApiError(404, f"Workbook {workbook['id']} has no dashboard draft")
    return canonical_file(workbook["dashboardDraft"])


@resource.post(
    "/publish",
    needs="WorkbookManage",
    body={
        "workbookId": checks.needed(checks.integer()),
        "dashboardId": checks.integer(),
        "allowEmbed": checks.boolean,
        "config": dashboard_bodies.CONFIG,
        "title": checks.string(min_length=0),
        "description": checks.string(min_length=0),
    },
)
def publish_dashboard(call: Call) -> Any:
    """Publish ``config`` or, without one, the saved draft: each time a new version."""
    workbook = call.store(Workbooks).get(call, "workbookId")
    body, store = call.body, call.store(Dashboards)
    if body["workbookId"] != workbook["id"]:
        raise ApiError(400, ["workbookId must be the one of the path"])
    known = store.of_workbook(workbook["id"])
    if "dashboardId" in body and (known is None or known["id"] != body["dashboardId"]):
        raise ApiError(404, f"Dashboard {body['dashboardId']} not found in this workbook")
    settings = call.server.settings
    if "config" not in body and settings.publish_needs_config:
        raise ApiError(400, ["config should not be null or undefined", "config must be an object"])
    if known is not None and str(known["id"]) in settings.reviewed_dashboards:
        raise ApiError(400, "This dashboard requires review before publishing")
    config = body.get("config", workbook["dashboardDraft"])
    if config is None:
        raise ApiError(400, ["config is required: the workbook has no saved draft"])
    caller = call.user
    dashboard = store.publish(workbook, caller, copy.deepcopy(config))
    for name in ("allowEmbed", "title", "description"):
        dashboard[name] = body.get(name, dashboard[name])
    call.record("published", "dashboards", dashboard["id"])
    return dashboard


@resource.post(
    "/dashboard/ai-widget-thread",
    body={
        "threadId": checks.needed(checks.string()),
        "widgetId": checks.needed(checks.string()),
        "checksum": checks.string(),
    },
)
def update_published_dashboard_ai_widget_thread(call: Call) -> Any:
    """Attach a chat thread to an AI widget of the published dashboard."""
    workbook = call.store(Workbooks).get(call, "workbookId")
    dashboard = call.store(Dashboards).of_workbook(workbook["id"])
    if dashboard is None:
        raise ApiError(404, f"Workbook {workbook['id']} has no published dashboard")
    widget = _ai_widget(dashboard, call.body["widgetId"])
    widget["config"] = {
        **(widget.get("config") or {}),
        "threadId": call.body["threadId"],
        "checksum": call.body.get("checksum"),
    }
    call.record("updated", "ai-widget-threads", dashboard["id"])
    return dashboard


def _ai_widget(dashboard: Item, widget_id: str) -> dict[str, Any]:
    widgets = dashboard["config"].get("widgets") or []
    widget: dict[str, Any] | None = next((w for w in widgets if w["id"] == widget_id), None)
    if widget is None:
        raise ApiError(404, f"Widget {widget_id} not found on dashboard {dashboard['id']}")
    if widget["type"] != "AI":
        raise ApiError(400, [f"widget {widget_id} is no AI widget"])
    return widget
