"""Recipients of a notification: adding and removing them twice is the same as once."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.notifications import notifications as parent
from airflow_provider_platform.sandbox.management.notifications.notifications import Notifications
from airflow_provider_platform.sandbox.management.shared import embed_bodies, paging, users
from airflow_provider_platform.sandbox.management.shared.embed_tenants import EmbedTenants
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource, given

resource = Resource(f"{parent.resource.path}/{{id}}/recipients", needs="Admin")

_TYPES = ("USER", "EMBED_USER", "SLACK")
_MOST = 1000
_CONTEXT = ("groups", "securityContext", "userAttributes")

Recipient = dict[str, Any]


def _several(fields: checks.Fields) -> checks.Fields:
    """A body of recipients with these fields."""
    each = checks.nullable_fields({"type": checks.needed(checks.string(one_of=_TYPES)), **fields})
    return {"recipients": checks.needed(checks.array(each, minimum=1, maximum=_MOST))}


@resource.get(
    query={
        "after": checks.string(),
        "first": checks.integer(minimum=1),
    }
)
def list_recipients(call: Call) -> Any:
    if messages := parent.too_many(call):
        raise ApiError(400, messages)
    return paging.page(call, [_shown(recipient) for recipient in _recipients(call)])


@resource.post(
    body=_several(
        {**embed_bodies.PERSON, "channelId": checks.string(), "channelName": checks.string()}
    )
)
def add_recipients(call: Call) -> Any:
    """All of them or, if one is not acceptable, none."""
    known = _recipients(call)
    messages: list[str] = []
    resolved = []
    for index, one in enumerate(call.body["recipients"]):
        try:
            resolved.append(_resolved(call, given(one)))
        except ValueError as error:
            messages.append(f"recipients[{index}] {error}")
    if messages:
        raise ApiError(400, messages)
    answer: dict[str, list[Recipient]] = {
        "createdRecipients": [],
        "updatedRecipients": [],
        "unchangedRecipients": [],
    }
    for recipient in resolved:
        old = next((one for one in known if _key(one) == _key(recipient)), None)
        if old is None:
            known.append(recipient)
            outcome = "createdRecipients"
        else:
            outcome = "unchangedRecipients" if old == recipient else "updatedRecipients"
            known[known.index(old)] = recipient
        answer[outcome].append(_shown(recipient))
    call.record("added", "notification-recipients", call.path["id"])
    return answer


@resource.delete(
    body=_several(
        {
            "id": checks.needed(checks.either(checks.integer(), checks.string())),
            "embedTenantName": checks.string(),
        }
    )
)
def remove_recipients(call: Call) -> Response:
    """Who is no recipient is passed over."""
    known = _recipients(call)
    named = [given(one) for one in call.body["recipients"]]
    messages = [
        f"recipients[{index}].embedTenantName is required for EMBED_USER"
        for index, one in enumerate(named)
        if one["type"] == "EMBED_USER" and "embedTenantName" not in one
    ]
    if messages:
        raise ApiError(400, messages)
    gone = {(one["type"], str(one["id"]), one.get("embedTenantName")) for one in named}
    known[:] = [one for one in known if _key(one) not in gone]
    call.record("removed", "notification-recipients", call.path["id"])
    return call.deleted()


def _recipients(call: Call) -> list[Recipient]:
    store = call.store(Notifications)
    return store.recipients[store.get(call, "id")["id"]]


def _resolved(call: Call, fields: dict[str, Any]) -> Recipient:
    """The person who is meant, with an e-mail address; raises ``ValueError`` if there is none."""
    if fields["type"] == "SLACK":
        raise ValueError("is a Slack channel, which cannot be added through the API")
    if fields["type"] == "USER":
        if ("userId" in fields) == ("email" in fields):
            raise ValueError("of type USER needs exactly one of userId and email")
        user = users.find(fields.get("userId"), fields.get("email"))
        if user is None:
            raise ValueError("is no user of this account with an e-mail address")
        return {
            "type": "USER",
            "userId": user["id"],
            "username": user["email"],
            "email": user["email"],
        }
    tenant, external_id = fields.get("embedTenantName"), fields.get("externalId")
    if tenant is None or external_id is None:
        raise ValueError("of type EMBED_USER needs embedTenantName and externalId")
    known = call.store(EmbedTenants).user(tenant, external_id)
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


def _key(recipient: Recipient) -> tuple[str, str, str | None]:
    identifier = recipient.get("userId") or recipient.get("embedUserId")
    return (recipient["type"], str(identifier), recipient.get("embedTenantName"))


def _shown(recipient: Recipient) -> Recipient:
    """A recipient as answers carry it: without the context its dashboard is drawn in."""
    return {name: value for name, value in recipient.items() if name not in _CONTEXT}
