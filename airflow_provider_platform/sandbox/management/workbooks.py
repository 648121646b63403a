"""Workbooks with their dashboards: drafts, publishing, duplicates, and what is embedded."""

from __future__ import annotations

import copy
import re
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError, web_page
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.embed import shared_with
from airflow_provider_platform.sandbox.management.folders import check_folder, path
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.samples import DEFAULTS, owner, public_id

_SLUG = r"[a-z0-9][a-z0-9-]*"


def _meant(call: Call) -> Item:
    return store.item(call, "workbooks", call.path["workbookId"])


@store.view("workbooks")
def shown(call: Call, workbook: Item) -> Item:
    dashboard = dashboard_of(call, workbook)
    return {
        **workbook,
        "type": "WORKBOOK",
        "user": owner(workbook["userId"]),
        "folderPath": path(call, workbook["folderId"]),
        "publishedDashboard": dashboard,
        "dashboardPublished": None if dashboard is None else dashboard["config"],
    }


@handles("createWorkbook")
def create_workbook(call: Call) -> Any:
    return shown(call, _create(call, call.body))


@handles("upsertWorkbookBySlug")
def upsert_workbook_by_slug(call: Call) -> Any:
    """Create or update; ``meta`` is merged into the stored one."""
    slug = _slug(call.path["slug"])
    workbook = call.items.find("workbooks", deploymentId=call.deployment, slug=slug)
    if workbook is None:
        return shown(call, _create(call, {**call.body, "slug": slug}))
    merged = workbook["meta"] | call.body.get("meta", {})
    return shown(call, _change(call, workbook, {**call.document, "meta": merged}))


@handles("updateWorkbook")
def update_workbook(call: Call) -> None:
    """Change what is given; a slug that another workbook has is refused unless it is taken over."""
    workbook, fields = _meant(call), dict(call.document)
    if fields.get("slug") is not None:
        fields["slug"] = _slug(fields["slug"])
        holder = call.items.find("workbooks", deploymentId=call.deployment, slug=fields["slug"])
        if holder is not None and holder is not workbook:
            if not fields.get("slugTakeover"):
                raise ApiError(409, f"The slug {fields['slug']} belongs to another workbook")
            holder["slug"] = None
    fields.pop("slugTakeover", None)
    _change(call, workbook, fields)


@handles("duplicateWorkbook")
def duplicate_workbook(call: Call) -> Any:
    """A copy of the caller's own workbook or, ``shared``, of one that embed users see published."""
    original = _meant(call)
    draft = original["dashboardDraft"]
    if call.body.get("shared"):
        if not shared_with(call, original["id"]):
            raise ApiError(404, f"Workbook {original['id']} not found in the shared workspace")
        dashboard = dashboard_of(call, original)
        if dashboard is None:
            raise ApiError(400, ["only a workbook with a published dashboard can be cloned"])
        draft = dashboard["config"]
    copied = {name: original[name] for name in ("folderId", "meta")}
    copied |= {"name": f"Copy of {original['name']}", "dashboardDraft": draft}
    return shown(call, _create(call, copy.deepcopy(copied)))


def _create(call: Call, fields: Item) -> Item:
    check_folder(call, fields.get("folderId"))
    return store.create(call, fields, name="workbooks")


def _change(call: Call, workbook: Item, fields: Item) -> Item:
    """Apply ``fields``; a folder or slug of None takes it away, other nulls change nothing."""
    check_folder(call, fields.get("folderId"))
    return store.update(call, workbook, fields, "workbooks", removable=("folderId", "slug"))


def _slug(given: str) -> str:
    slug = given.strip().lower()
    if not re.fullmatch(_SLUG, slug):
        raise ApiError(400, [f"slug must match {_SLUG}"])
    return slug


# -- dashboards ------------------------------------------------------------------------------


def dashboard_of(call: Call, workbook: Item) -> Item | None:
    """Return the published dashboard of a workbook."""
    return call.items.find("dashboards", workbookId=workbook["id"])


def named_dashboard(call: Call, named: Item) -> Item:
    """Return the dashboard of the deployment that ``named`` names by one of its two ids. Raises
    ``ApiError`` (404)."""
    public = named.get("dashboardPublicId")
    by = {"id": named.get("dashboardId")} if public is None else {"publicId": public}
    found = call.items.find("dashboards", deploymentId=call.deployment, **by)
    if found is None:
        which = named.get("dashboardPublicId") or named.get("dashboardId")
        raise ApiError(404, f"Dashboard {which} not found in deployment {call.deployment}")
    return found


def forget_dashboard(call: Call, workbook: Item) -> None:
    """Delete the dashboard of a workbook."""
    dashboard = dashboard_of(call, workbook)
    if dashboard is not None:
        call.items.remove("dashboards", dashboard)


@handles("updateWorkbookDashboard")
def save_draft(call: Call) -> Any:
    """Save the draft; widgets without an id are given one."""
    workbook, draft = _meant(call), call.body.get("dashboardDraft")
    for number, widget in enumerate((draft or {}).get("widgets") or [], start=1):
        widget["id"] = widget.get("id") or f"widget-{number}"
    if "dashboardDraft" in call.document:
        workbook |= {"dashboardDraft": draft, "updatedAt": call.now}
    call.record("updated", "dashboard-drafts", workbook["id"])
    return shown(call, workbook)


@handles("publishDashboard")
def publish_dashboard(call: Call) -> Any:
    """Publish ``config`` or, without one, the saved draft: each time a new version."""
    workbook, body, settings = _meant(call), call.body, call.server.settings
    if body["workbookId"] != workbook["id"]:
        raise ApiError(400, ["workbookId must be the one of the path"])
    dashboard = dashboard_of(call, workbook)
    if "dashboardId" in body and (dashboard is None or dashboard["id"] != body["dashboardId"]):
        raise ApiError(404, f"Dashboard {body['dashboardId']} not found in this workbook")
    if "config" not in body and not settings.has("0.16.0"):
        raise ApiError(400, ["config should not be null or undefined", "config must be an object"])
    config = body.get("config", workbook["dashboardDraft"])
    if config is None:
        raise ApiError(400, ["config is required: the workbook has no saved draft"])
    if dashboard is None:
        place = {"deploymentId": call.deployment, "workbookId": workbook["id"]}
        blank = {**DEFAULTS["dashboards"], "createdBy": call.user, "title": workbook["name"]}
        dashboard = call.items.add("dashboards", {**copy.deepcopy(blank), **place})
        dashboard["publicId"] = public_id("dash", dashboard["id"])
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
    """Attach a chat thread to an AI widget of the published dashboard. Two releases lack it."""
    if call.server.settings.has("0.4.0") and not call.server.settings.has("0.6.0"):
        return web_page()
    workbook = _meant(call)
    dashboard, widget_id = dashboard_of(call, workbook), call.body["widgetId"]
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


@handles("getDashboard", "updateDashboardEmbedding")
def embeddable_dashboard(call: Call) -> Any:
    """One that may be embedded, and whether it may."""
    dashboard = call.items.find("dashboards", publicId=call.path["publicId"])
    if dashboard is None:
        raise ApiError(404, f"Dashboard {call.path['publicId']} not found")
    if call.operation.method == "PATCH":
        dashboard["allowEmbed"] = call.body["allowEmbed"]
        call.record("updated", "dashboards", dashboard["id"])
        return {"publicId": dashboard["publicId"], "allowEmbed": dashboard["allowEmbed"]}
    if not dashboard["allowEmbed"]:
        raise ApiError(403, f"Dashboard {dashboard['publicId']} does not allow embedding")
    return dashboard
