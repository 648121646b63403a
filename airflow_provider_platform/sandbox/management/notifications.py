"""Scheduled notifications and their recipients.

Creating is not idempotent: every call makes one more schedule. Adding and removing recipients twice
is the same as once.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, given, handles
from airflow_provider_platform.sandbox.management.samples import Item, find_user
from airflow_provider_platform.sandbox.management.workbooks import named_dashboard

_DEFAULTS: Item = {
    "isEnabled": True,
    "notificationEnabled": True,
    "notificationFormat": "png",
    "notificationAiSummary": False,
    "filters": [],
    "timeGrains": [],
    "memberSwitchers": [],
    "timezone": "UTC",
}
_PARTS = ("scheduleType", "customCron", "dayOfMonth", "dayOfWeek", "hour", "minute")
_WHEN = {"minute": 0, "hour": 9, "dayOfWeek": 1, "dayOfMonth": 1}
"""For parts of a schedule that are left out, which the contract allows and does not explain."""
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_CONTEXT = ("groups", "securityContext", "userAttributes")
"""What a recipient's dashboard is rendered with; it is not shown."""


@handles("getNotifications")
def get_notifications(call: Call) -> Any:
    """Newest first."""
    found = [one for one in generic_store.of(call, "notifications") if _wanted(call, one)]
    return generic_store.page(
        call, [generic_store.shown(call, "notifications", one) for one in found[::-1]]
    )


def _wanted(call: Call, notification: Item) -> bool:
    query = call.query
    public = (call.items.get("dashboards", notification["dashboardId"]) or {}).get("publicId")
    return (
        query.get("dashboardId", notification["dashboardId"]) == notification["dashboardId"]
        and query.get("dashboardPublicId", public) == public
        and (
            not any(name.startswith("recipient") for name in query)
            or any(_is_named(one, query) for one in notification["recipients"])
        )
    )


def _is_named(recipient: Item, query: Item) -> bool:
    """Return whether the recipient filters of the query mean this recipient."""
    if "recipientExternalId" in query:
        named = (query["recipientEmbedTenantName"], query["recipientExternalId"])
        return (recipient.get("embedTenantName"), recipient.get("externalId")) == named
    if recipient["type"] != "USER":
        return False
    email = str(query.get("recipientEmail", recipient["email"]))
    same_user = query.get("recipientUserId", recipient["userId"]) == recipient["userId"]
    return bool(same_user and email.lower() == recipient["email"].lower())


@handles("createNotification")
def create_notification(call: Call) -> Any:
    """One more schedule, without recipients."""
    body = call.body
    if ("dashboardId" in body) == ("dashboardPublicId" in body):
        raise ApiError(400, ["exactly one of dashboardId and dashboardPublicId is required"])
    schedule = _schedule({name: body[name] for name in _PARTS if name in body})
    dashboard = named_dashboard(call, body)
    fields = {name: body.get(name, default) for name, default in _DEFAULTS.items()}
    more = {"dashboardId": dashboard["id"], "recipients": [], **schedule}
    return generic_store.shown(call, "notifications", generic_store.create(call, fields, **more))


@handles("updateNotification")
def update_notification(call: Call) -> Any:
    """Change what is given. Recipients stay; a set of filters replaces the one before."""
    notification, body = generic_store.item(call), call.body
    changed = {name: body[name] for name in _PARTS if name in body}
    schedule = _schedule({**notification["parts"], **changed}) if changed else {}
    notification |= schedule
    return generic_store.shown(
        call, "notifications", generic_store.update(call, notification, body)
    )


def _schedule(parts: Item) -> Item:
    """Return a schedule: its parts, as a cron expression in its own time zone, and in words."""
    known = {**_WHEN, **parts}
    kind, cron = known["scheduleType"], known.get("customCron")
    if kind == "CUSTOM" and cron is None:
        raise ApiError(400, ["customCron is required when scheduleType is CUSTOM"])
    minute, hour, day = known["minute"], known["hour"], known["dayOfWeek"]
    at = f"at {hour:02d}:{minute:02d}"
    expression, words = {
        "HOURLY": (f"{minute} * * * *", f"Every hour at minute {minute}"),
        "DAILY": (f"{minute} {hour} * * *", f"Every day {at}"),
        "WEEKLY": (f"{minute} {hour} * * {day}", f"Every {_DAYS[day]} {at}"),
        "MONTHLY": (
            f"{minute} {hour} {known['dayOfMonth']} * *",
            f"On day {known['dayOfMonth']} of every month {at}",
        ),
        "CUSTOM": (" ".join((cron or "").split()), f"Custom: {cron}"),
    }[kind]
    return {"parts": parts, "cronExpression": expression, "humanReadableSchedule": words}


# -- recipients ------------------------------------------------------------------------------


def _recipients(call: Call) -> list[Item]:
    found: list[Item] = generic_store.item(call, "notifications", call.path["id"])["recipients"]
    return found


@handles("getRecipients")
def get_recipients(call: Call) -> Any:
    return generic_store.page(call, [_without_context(one) for one in _recipients(call)])


@handles("addRecipients")
def add_recipients(call: Call) -> Any:
    """All of them or, if one is not acceptable, none."""
    known, messages, resolved = _recipients(call), [], []
    for index, one in enumerate(call.body["recipients"]):
        try:
            resolved.append(_resolved(call, given(one)))
        except ValueError as error:
            messages.append(f"recipients[{index}] {error}")
    if messages:
        raise ApiError(400, messages)
    kinds = ("createdRecipients", "updatedRecipients", "unchangedRecipients")
    answer: dict[str, list[Item]] = {kind: [] for kind in kinds}
    for recipient in resolved:
        old = next((one for one in known if _key(one) == _key(recipient)), None)
        if old is None:
            known.append(recipient)
            kind = "createdRecipients"
        else:
            kind = "unchangedRecipients" if old == recipient else "updatedRecipients"
            known[known.index(old)] = recipient
        answer[kind].append(_without_context(recipient))
    call.record("added", "notification-recipients", call.path["id"])
    return answer


@handles("removeRecipients")
def remove_recipients(call: Call) -> None:
    """Somebody who is no recipient is passed over."""
    known, named = _recipients(call), [given(one) for one in call.body["recipients"]]
    gone = {(one["type"], str(one["id"]), one.get("embedTenantName")) for one in named}
    known[:] = [one for one in known if _key(one) not in gone]
    call.record("removed", "notification-recipients", call.path["id"])


def _resolved(call: Call, fields: Item) -> Item:
    """Return the person who is meant, with an e-mail address; raises ``ValueError``."""
    if fields["type"] == "SLACK":
        raise ValueError("is a Slack channel, which cannot be added through the API")
    if fields["type"] == "USER":
        if ("userId" in fields) == ("email" in fields):
            raise ValueError("of type USER needs exactly one of userId and email")
        user = find_user(fields.get("userId"), fields.get("email"))
        if user is None:
            raise ValueError("is no user of this account with an e-mail address")
        names = {"username": user["email"], "email": user["email"]}
        return {"type": "USER", "userId": user["id"], **names}
    tenant, external_id = fields.get("embedTenantName"), fields.get("externalId")
    if tenant is None or external_id is None:
        raise ValueError("of type EMBED_USER needs embedTenantName and externalId")
    known = call.items.find("users", embedTenantName=tenant, externalId=external_id)
    if known is None:
        raise ValueError(f"is no user of the embed tenant {tenant}")
    email = fields.get("email") or known["email"]
    if email is None:
        raise ValueError("has no e-mail address")
    return {
        "type": "EMBED_USER",
        "embedUserId": known["id"],
        "username": known["username"],
        "email": email,
        "embedTenantName": tenant,
        "externalId": external_id,
        **{name: fields[name] for name in _CONTEXT if name in fields},
    }


def _key(recipient: Item) -> tuple[str, str, str | None]:
    identifier = recipient.get("userId") or recipient.get("embedUserId")
    return (recipient["type"], str(identifier), recipient.get("embedTenantName"))


def _without_context(recipient: Item) -> Item:
    return {name: value for name, value in recipient.items() if name not in _CONTEXT}
