"""Workbooks with their dashboards: slugs, duplicates, drafts, publishing and AI widgets."""

from __future__ import annotations

import copy
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import Item


def _meant(call: Call) -> Item:
    return generic_store.item(call, "workbooks", call.path["workbookId"])


@generic_store.view("workbooks")
def _with_dashboard(call: Call, workbook: Item) -> Item:
    dashboard = _dashboard_of(call, workbook)
    published = None if dashboard is None else dashboard["config"]
    return {"publishedDashboard": dashboard, "dashboardPublished": published}


@handles("updateWorkbook")
def update_workbook(call: Call) -> None:
    """Change what is given; a slug that another workbook has is refused unless it is taken over."""
    workbook, slug = _meant(call), call.body.get("slug")
    holder = None
    if slug is not None:
        holder = call.items.find("workbooks", deploymentId=call.deployment, slug=slug)
    if holder is not None and holder is not workbook:
        if not call.body.get("slugTakeover"):
            raise ApiError(409, f"The slug {slug} belongs to another workbook")
        holder["slug"] = None
    generic_store.update(call, workbook, call.document)


@handles("duplicateWorkbook")
def duplicate_workbook(call: Call) -> Any:
    """A copy of the workbook with its draft or, ``shared``, with what is published of it."""
    original = _meant(call)
    draft = original["dashboardDraft"]
    if call.body.get("shared"):
        dashboard = _dashboard_of(call, original)
        if dashboard is None:
            raise ApiError(400, ["only a workbook with a published dashboard can be cloned"])
        draft = dashboard["config"]
    copied = {name: original[name] for name in ("folderId", "meta")}
    copied |= {"name": f"Copy of {original['name']}", "dashboardDraft": draft}
    made = generic_store.create(call, copy.deepcopy(copied), "workbooks")
    return generic_store.shown(call, "workbooks", made)


# -- dashboards ------------------------------------------------------------------------------


def _dashboard_of(call: Call, workbook: Item) -> Item | None:
    """Return the published dashboard of a workbook."""
    return call.items.find("dashboards", workbookId=workbook["id"])


def named_dashboard(call: Call, named: Item) -> Item:
    """Return the dashboard of the deployment that ``named`` names by one of its two ids. Raises
    ``ApiError`` (404)."""
    public = named.get("dashboardPublicId")
    by = {"id": named.get("dashboardId")} if public is None else {"publicId": public}
    found = call.items.find("dashboards", deploymentId=call.deployment, **by)
    if found is None:
        which = public or named.get("dashboardId")
        raise ApiError(404, f"Dashboard {which} not found in deployment {call.deployment}")
    return found


@handles("updateWorkbookDashboard")
def save_draft(call: Call) -> Any:
    """Save the draft; widgets without an id are given one."""
    workbook, draft = _meant(call), call.body.get("dashboardDraft")
    for number, widget in enumerate((draft or {}).get("widgets") or [], start=1):
        widget["id"] = widget.get("id") or f"widget-{number}"
    if "dashboardDraft" in call.document:
        workbook |= {"dashboardDraft": draft, "updatedAt": call.now}
    call.record("updated", "dashboard-drafts", workbook["id"])
    return generic_store.shown(call, "workbooks", workbook)


@handles("publishDashboard")
def publish_dashboard(call: Call) -> Any:
    """Publish ``config`` or, without one, the saved draft: each time a new version."""
    workbook, body, settings = _meant(call), call.body, call.server.settings
    if body["workbookId"] != workbook["id"]:
        raise ApiError(400, ["workbookId must be the one of the path"])
    dashboard = _dashboard_of(call, workbook)
    if "dashboardId" in body and (dashboard is None or dashboard["id"] != body["dashboardId"]):
        raise ApiError(404, f"Dashboard {body['dashboardId']} not found in this workbook")
    if "config" not in body and not settings.has(newest=True):
        raise ApiError(400, ["config should not be null or undefined", "config must be an object"])
    config = body.get("config", workbook["dashboardDraft"])
    if config is None:
        raise ApiError(400, ["config is required: the workbook has no saved draft"])
    if dashboard is None:
        made = {"title": workbook["name"], "workbookId": workbook["id"]}
        dashboard = generic_store.create(call, made, "dashboards")
    dashboard["versionNumber"] += 1
    dashboard["versionId"] = dashboard["id"] * 1000 + dashboard["versionNumber"]
    dashboard["config"] = copy.deepcopy(config)
    dashboard |= {
        name: body[name] for name in ("allowEmbed", "title", "description") if name in body
    }
    call.record("published", "dashboards", dashboard["id"])
    return dashboard


@handles("updatePublishedDashboardAiWidgetThread")
def attach_thread(call: Call) -> Any:
    """Attach a chat thread to an AI widget of the published dashboard."""
    workbook = _meant(call)
    dashboard, widget_id = _dashboard_of(call, workbook), call.body["widgetId"]
    if dashboard is None:
        raise ApiError(404, f"Workbook {workbook['id']} has no published dashboard")
    widgets = dashboard["config"].get("widgets") or []
    widget = next((one for one in widgets if one["id"] == widget_id), None)
    if widget is None:
        raise ApiError(404, f"Widget {widget_id} not found on dashboard {dashboard['id']}")
    if widget["type"] != "AI":
        raise ApiError(400, [f"widget {widget_id} is no AI widget"])
    thread = {"threadId": call.body["threadId"], "checksum": call.body.get("checksum")}
    widget["config"] = {**(widget.get("config") or {}), **thread}
    call.record("updated", "ai-widget-threads", dashboard["id"])
    return dashboard
