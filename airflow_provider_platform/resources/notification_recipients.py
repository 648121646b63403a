"""The recipients of a scheduled notification: who is added, who is removed, and who stays.

Adding or removing a recipient twice changes nothing, so long lists are sent in batches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from airflow_provider_platform.client.argument_rules import shown
from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformError,
    PlatformProtocolError,
    from_payload,
)
from airflow_provider_platform.client.models import EmptiableResponse, InputModel, ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, collect

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


BATCH = 1000
"""Recipients in one request, at most."""
_PLACE = re.compile(r"recipients\[(\d+)\]")
"""How the service names a recipient that it refuses: by the place in the request."""

NewRecipientType = Literal["USER", "EMBED_USER"]
"""Who can be added here; the service lists SLACK channels too, and refuses to add them."""

RecipientType = Literal["USER", "EMBED_USER", "SLACK"]


class NotificationRecipient(ResponseModel):
    """A recipient: a console user, an embed user or a channel, by `type`."""

    type: str | None = None
    user_id: int | None = None
    username: str | None = None
    email: str | None = None
    embed_user_id: int | None = None
    embed_tenant_name: str | None = None
    external_id: str | None = None


class NotificationRecipientInput(InputModel):
    """A recipient to add: a USER by `user_id` or `email`, an EMBED_USER by tenant and external id.

    Groups, attributes and security context are those the dashboard is rendered with for an embed
    user.
    """

    type: NewRecipientType
    user_id: int | None = Field(default=None, ge=1)
    email: str | None = Field(default=None, min_length=1)
    embed_tenant_name: str | None = Field(default=None, min_length=1)
    external_id: str | None = Field(default=None, min_length=1)
    groups: list[str] | None = None
    security_context: dict[str, Any] | None = None
    user_attributes: list[dict[str, Any]] | None = None

    @model_validator(mode="after")
    def _is_told(self) -> Self:
        if self.type == "USER" and (self.user_id is None) == (self.email is None):
            raise ValueError("a USER needs exactly one of user_id and email")
        if self.type == "EMBED_USER" and None in (self.embed_tenant_name, self.external_id):
            raise ValueError("an EMBED_USER needs embed_tenant_name and external_id")
        return self

    @property
    def named(self) -> str:
        """How the caller names the recipient."""
        return self.email or self.external_id or str(self.user_id)


class RecipientToRemove(InputModel):
    """A recipient to remove, named as when added: a USER by `user_id` or `email`, an EMBED_USER by
    tenant and `external_id`. Or by the `id` of the user, the embed user (with the tenant) or the
    channel."""

    type: RecipientType
    id: int | str | None = None
    user_id: int | None = Field(default=None, ge=1)
    email: str | None = Field(default=None, min_length=1)
    external_id: str | None = Field(default=None, min_length=1)
    embed_tenant_name: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _is_told(self) -> Self:
        names = {"USER": ("id", "user_id", "email"), "EMBED_USER": ("id", "external_id")}
        allowed = names.get(self.type, ("id",))
        given = [
            name
            for name in ("id", "user_id", "email", "external_id")
            if getattr(self, name) is not None
        ]
        if len(given) != 1 or given[0] not in allowed:
            raise ValueError(f"a recipient of type {self.type} needs {' or '.join(allowed)}")
        if self.type == "EMBED_USER" and self.embed_tenant_name is None:
            raise ValueError("embed_tenant_name is needed with type EMBED_USER")
        return self

    @property
    def known_id(self) -> int | str | None:
        """The id, where it is given."""
        return self.user_id if self.id is None else self.id

    def is_listed_as(self, listed: NotificationRecipient) -> bool:
        """Whether the service's list means this recipient."""
        if self.type == "USER":
            names = {_folded(listed.email), _folded(listed.username)}
            return listed.type == "USER" and _folded(self.email) in names
        return (listed.embed_tenant_name, listed.external_id) == (
            self.embed_tenant_name,
            self.external_id,
        )


class NotificationRecipientsMutationResponse(EmptiableResponse):
    """What adding recipients did."""

    created_recipients: list[NotificationRecipient] | None = None
    updated_recipients: list[NotificationRecipient] | None = None
    unchanged_recipients: list[NotificationRecipient] | None = None


list_notification_recipients = typed("getRecipients", Page[NotificationRecipient])
add_notification_recipients = typed("addRecipients", NotificationRecipientsMutationResponse)
remove_notification_recipients = typed("removeRecipients", type(None))


class _Added(InputModel):
    recipients: list[NotificationRecipientInput] = Field(min_length=1)


class _Removed(InputModel):
    recipients: list[RecipientToRemove] = Field(min_length=1)


def to_add(recipients: Sequence[Any]) -> list[NotificationRecipientInput]:
    """Recipients to add, given as inputs or as their fields. Raises PlatformInputError naming the
    recipient and the rule."""
    return _Added.build(recipients=list(recipients)).recipients


def to_remove(recipients: Sequence[Any]) -> list[RecipientToRemove]:
    """Recipients to remove, given as `RecipientToRemove` or as its fields. Raises as `to_add`."""
    return _Removed.build(recipients=list(recipients)).recipients


async def add_recipients(
    api: Api, deployment_id: int, notification_id: int | str, recipients: Sequence[Any]
) -> NotificationRecipientsMutationResponse:
    """Add recipients, given as inputs or as their fields, in batches; the answers are joined.

    Every recipient is checked before the first request. Raises PlatformInputError naming the
    recipient and the rule.
    """
    checked = to_add(recipients)
    joined = NotificationRecipientsMutationResponse(
        created_recipients=[], updated_recipients=[], unchanged_recipients=[]
    )
    for start in range(0, len(checked), BATCH):
        batch = [recipient.to_json() for recipient in checked[start : start + BATCH]]
        operation = add_notification_recipients(
            deployment_id=deployment_id, id=notification_id, body={"recipients": batch}
        )
        try:
            answer = await api.call(operation)
        except PlatformApiError as error:
            raise _naming(error, checked[start : start + BATCH]) from error
        for name in NotificationRecipientsMutationResponse.model_fields:
            getattr(joined, name).extend(getattr(answer, name) or [])
    return joined


async def remove_recipients(
    api: Api, deployment_id: int, notification_id: int | str, recipients: Sequence[Any]
) -> None:
    """Remove recipients, given as `RecipientToRemove` or as its fields, in batches. The service
    takes ids, so the list is read for those that are named otherwise; who is not in it is none
    already.

    Every recipient is checked before the first request. Raises PlatformInputError naming the
    recipient and the rule.
    """
    checked = to_remove(recipients)
    listed: list[NotificationRecipient] = []
    if any(recipient.known_id is None for recipient in checked):
        listed = await _listed(api, deployment_id, notification_id)
    found: list[tuple[str, int | str | None, str | None]] = []
    for recipient in checked:
        ids = [recipient.known_id]
        if recipient.known_id is None:
            ids = [_id_of(row) for row in listed if recipient.is_listed_as(row)]
        found += [(recipient.type, known, recipient.embed_tenant_name) for known in ids]
    await _remove(api, deployment_id, notification_id, found)


async def set_recipients(
    api: Api, deployment_id: int, notification_id: int | str, recipients: Sequence[Any]
) -> tuple[NotificationRecipientsMutationResponse, int]:
    """Add the recipients as `add_recipients` does, and remove all other users. Channels stay, since
    they cannot be added. Returns the answer to adding, and how many were removed.

    Raises PlatformInputError as `add_recipients`, PlatformProtocolError before anybody is removed
    if the service does not report whom it added.
    """
    added = NotificationRecipientsMutationResponse()
    given = to_add(recipients) if recipients else []
    if given:
        added = await add_recipients(api, deployment_id, notification_id, given)
    wanted = {
        (row.type, _id_of(row))
        for name in NotificationRecipientsMutationResponse.model_fields
        for row in getattr(added, name) or []
    }
    distinct = {
        (one.type, one.user_id, _folded(one.email), one.embed_tenant_name, one.external_id)
        for one in given
    }
    if None in {known for _, known in wanted} or len(wanted) < len(distinct):
        raise PlatformProtocolError(
            "The recipients were added, but the service did not report the id of each, so the "
            "task does not know whom to remove. Nobody was removed. Use add and remove instead."
        )
    listed = await _listed(api, deployment_id, notification_id)
    others = [
        (row.type, _id_of(row), row.embed_tenant_name)
        for row in listed
        if row.type in get_args(NewRecipientType) and (row.type, _id_of(row)) not in wanted
    ]
    await _remove(api, deployment_id, notification_id, others)
    return added, len(others)


async def _listed(
    api: Api, deployment_id: int, notification_id: int | str
) -> list[NotificationRecipient]:
    listing = list_notification_recipients(deployment_id=deployment_id, id=notification_id)
    return (await collect(api.call, listing)).items


def _naming(error: PlatformApiError, batch: Sequence[NotificationRecipientInput]) -> PlatformError:
    """Return the error, which also says who the recipients are that it names by their places."""
    places = dict.fromkeys(map(int, _PLACE.findall(error.reason)))
    named = [
        f"recipients[{place}] is {batch[place].type} {shown(batch[place].named)}."
        for place in list(places)[:5]
        if place < len(batch)
    ]
    return from_payload({**error.to_payload(), "message": " ".join([error.reason, *named])})


def _id_of(recipient: NotificationRecipient) -> int | None:
    return recipient.user_id if recipient.type == "USER" else recipient.embed_user_id


def _folded(email: str | None) -> str:
    return (email or "").casefold()


async def _remove(
    api: Api,
    deployment_id: int,
    notification_id: int | str,
    recipients: Sequence[tuple[str | None, int | str | None, str | None]],
) -> None:
    """Remove recipients by type, id and tenant, in batches."""
    fields = ("type", "id", "embedTenantName")
    for start in range(0, len(recipients), BATCH):
        batch = [
            {name: value for name, value in zip(fields, one, strict=True) if value is not None}
            for one in recipients[start : start + BATCH]
        ]
        await api.call(
            remove_notification_recipients(
                deployment_id=deployment_id, id=notification_id, body={"recipients": batch}
            )
        )
