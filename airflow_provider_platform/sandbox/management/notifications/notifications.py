"""Scheduled notifications: a dashboard sent as a picture or document, again and again.

Only an administrator gets at them. Creating is not idempotent: every call makes one more schedule.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging, schedules
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.workbooks import dashboard_bodies
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards

resource = Resource("/api/v1/deployments/{deploymentId}/notifications", needs="Admin")

_DEFAULTS: dict[str, Any] = {
    "notificationEnabled": True,
    "notificationFormat": "png",
    "notificationAiSummary": False,
    "filters": [],
    "timeGrains": [],
    "memberSwitchers": [],
    "timezone": "UTC",
}
_FIELDS: checks.Fields = {
    **schedules.PARTS,
    **dashboard_bodies.VARIABLES,
    "notificationFormat": checks.string(one_of=("png", "pdf")),
    "notificationAiSummary": checks.boolean,
    "notificationEnabled": checks.boolean,
}

_MOST = 200
"""The greatest ``first`` of notifications and their recipients."""


class Notifications(Items):
    """Notifications, with the parts of their schedules and their recipients by id."""

    what = "Notification"

    def __init__(self) -> None:
        super().__init__()
        self.schedules: dict[int, dict[str, Any]] = {}
        self.recipients: dict[int, list[dict[str, Any]]] = {}


resource.collections["notifications"] = lambda server: server.store(Notifications).all()


@resource.get(
    query={
        "dashboardId": checks.integer(minimum=1),
        "dashboardPublicId": checks.string(),
        "recipientUserId": checks.integer(minimum=1),
        "recipientEmail": checks.string(),
        "recipientEmbedTenantName": checks.string(),
        "recipientExternalId": checks.string(),
        "after": checks.string(),
        "first": checks.integer(minimum=1),
    }
)
def list_notifications(call: Call) -> Any:
    """Newest first."""
    query = call.query
    messages = too_many(call)
    if "dashboardId" in query and "dashboardPublicId" in query:
        messages.append("dashboardId and dashboardPublicId exclude each other")
    console = {"recipientUserId", "recipientEmail"} & query.keys()
    embed = {"recipientEmbedTenantName", "recipientExternalId"} & query.keys()
    if len(console) > 1:
        messages.append("recipientUserId and recipientEmail exclude each other")
    if len(embed) == 1:
        messages.append("recipientEmbedTenantName and recipientExternalId belong together")
    if console and embed:
        messages.append("filters by console user and by embed user exclude each other")
    if messages:
        raise ApiError(400, messages)
    store = call.store(Notifications)
    return paging.page(call, [n for n in reversed(store.of(call.deployment)) if _wanted(call, n)])


def too_many(call: Call) -> list[str]:
    """The message for a ``first`` beyond the maximum of June 2026; later documents have none."""
    if call.query.get("first", 0) <= _MOST:
        return []
    return [f"first must not be greater than {_MOST}"]


def _wanted(call: Call, notification: Item) -> bool:
    query = call.query
    dashboard = call.store(Dashboards).by_id.get(notification["dashboardId"], {})
    return (
        query.get("dashboardId", notification["dashboardId"]) == notification["dashboardId"]
        and query.get("dashboardPublicId", dashboard.get("publicId")) == dashboard.get("publicId")
        and (
            not any(name.startswith("recipient") for name in query)
            or any(
                _named(recipient, query)
                for recipient in call.store(Notifications).recipients[notification["id"]]
            )
        )
    )


def _named(recipient: dict[str, Any], query: dict[str, Any]) -> bool:
    """Whether the recipient filters of the query mean this recipient."""
    if "recipientExternalId" in query:
        named = (query["recipientEmbedTenantName"], query["recipientExternalId"])
        return (recipient.get("embedTenantName"), recipient.get("externalId")) == named
    if recipient["type"] != "USER":
        return False
    email = str(query.get("recipientEmail", recipient["email"]))
    return bool(
        query.get("recipientUserId", recipient["userId"]) == recipient["userId"]
        and email.lower() == recipient["email"].lower()
    )


@resource.post(
    body={
        "dashboardId": checks.integer(),
        "dashboardPublicId": checks.string(),
        **checks.needing(_FIELDS, "scheduleType"),
    }
)
def create_notification(call: Call) -> Any:
    """One more schedule, without recipients."""
    body = call.body
    if ("dashboardId" in body) == ("dashboardPublicId" in body):
        raise ApiError(400, ["exactly one of dashboardId and dashboardPublicId is required"])
    parts = {**_DEFAULTS, **_parts(body)}
    if messages := schedules.broken_rules(parts):
        raise ApiError(400, messages)
    dashboard = call.store(Dashboards).named(call, body)
    store = call.store(Notifications)
    given = {
        name: body.get(name, default)
        for name, default in _DEFAULTS.items()
        if name not in call.server.settings.notification_drops
    }
    notification = store.add(
        dashboardId=dashboard["id"], deploymentId=call.deployment, isEnabled=True, **given
    )
    store.recipients[notification["id"]] = []
    _schedule(store, notification, parts)
    call.record("created", "notifications", notification["id"])
    return notification


@resource.get("/{id}")
def get_notification(call: Call) -> Any:
    return call.store(Notifications).get(call, "id")


@resource.put("/{id}", body={"isEnabled": checks.boolean, **_FIELDS})
def update_notification(call: Call) -> Any:
    """Change what is given. Recipients stay; a set of filters replaces the one before."""
    store = call.store(Notifications)
    notification = store.get(call, "id")
    body = call.body
    parts = {**store.schedules[notification["id"]], **_parts(body)}
    if messages := schedules.broken_rules(parts):
        raise ApiError(400, messages)
    notification.update({name: value for name, value in body.items() if name in notification})
    if _parts(body):
        _schedule(store, notification, parts)
    call.record("updated", "notifications", notification["id"])
    return notification


@resource.delete("/{id}")
def delete_notification(call: Call) -> Response:
    store = call.store(Notifications)
    notification = store.get(call, "id")
    store.delete(notification)
    del store.recipients[notification["id"]], store.schedules[notification["id"]]
    call.record("deleted", "notifications", notification["id"])
    return call.deleted()


def _parts(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name in schedules.PARTS}


def _schedule(store: Notifications, notification: Item, parts: dict[str, Any]) -> None:
    store.schedules[notification["id"]] = parts
    notification["cronExpression"] = schedules.expression(parts)
    notification["humanReadableSchedule"] = schedules.words(parts)
