"""Finds existing schedules: before another is created, and after a response was lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_platform.client.errors import PlatformInputError, PlatformOutcomeUnknownError
from airflow_provider_platform.client.management.notifications.notifications import (
    CreateNotificationInput,
    Notification,
    list_notifications,
)
from airflow_provider_platform.client.operations.paging import collect

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api

SECOND_POLL_AFTER = 2.0
"""Seconds. A schedule whose response was lost may be in the list only a moment later."""


@dataclass(frozen=True)
class Matches:
    """Schedules of one dashboard, newest first: `same` are the requested one; `unclear` may be it,
    because the tenant does not report all of their settings. `unreadable` is how many rows of the
    list could not be read at all."""

    same: list[Notification] = field(default_factory=list)
    unclear: list[Notification] = field(default_factory=list)
    unreadable: int = 0


async def find_matching(
    api: Api,
    deployment_id: int,
    body: CreateNotificationInput,
    *,
    own_id: int | None = None,
    by_time: bool = False,
) -> Matches:
    """Return the schedules of the same dashboard that are the requested one: the one with `own_id`,
    else those with the same format, filters, time grains and member switchers. If some of them have
    the same times too, only these are returned; with `by_time`, no others are.

    Raises PlatformInputError if a tenant of an early release lists other dashboards too and only
    the public id is given, which no schedule contains.
    """
    listing = list_notifications(
        deployment_id=deployment_id,
        query={
            "dashboardId": body.dashboard_id,
            "dashboardPublicId": body.dashboard_public_id,
        },
    )
    listed = await collect(api.call, listing)
    dashboards = {row.dashboard_id for row in listed.items} - {None}
    if body.dashboard_id is None and len(dashboards) > 1:
        raise PlatformInputError(
            "Nothing was created: the task does not know which notifications this dashboard has. "
            "The service ignored dashboard_public_id and listed the notifications of several "
            f"dashboards of deployment {deployment_id}. Give dashboard_id instead of "
            "dashboard_public_id.",
            field="dashboard_public_id",
        )
    rows = [row for row in listed.items if _has_dashboard(row, body)]
    if own := [row for row in rows if own_id is not None and row.id == own_id]:
        return Matches(same=own)
    if by_time:
        rows = [row for row in rows if body.is_sent_when(row)]
    same = [row for row in rows if body.describes(row)]
    return Matches(
        same=[row for row in same if body.is_sent_when(row)] or same,
        unclear=[row for row in rows if body.may_describe(row)],
        unreadable=listed.left_out,
    )


async def find_created(
    api: Api, deployment_id: int, body: CreateNotificationInput, *, ids_before: Collection[int]
) -> list[Notification]:
    """Return the matching schedules that are not in `ids_before`: a call with a lost response may
    have created them.

    Raises PlatformOutcomeUnknownError if no new schedule matches and one may match.
    """
    for poll in range(2):
        if poll:
            await api.sleep(SECOND_POLL_AFTER)
        matches = await find_matching(api, deployment_id, body, by_time=True)
        created = [row for row in matches.same if row.id not in ids_before]
        if created:
            return created
    unclear = [str(row.id) for row in matches.unclear if row.id not in ids_before]
    if unclear or matches.unreadable:
        raise PlatformOutcomeUnknownError(
            "The connection broke before the service confirmed the new notification, and the "
            f"list does not show whether it was created ({describe_unclear(matches, unclear)}). "
            "Look at the dashboard's notifications. If the new notification is there, mark this "
            "task as successful. If it is not there, clear the task to create it."
        )
    return []


def describe_unclear(matches: Matches, unclear: Collection[str]) -> str:
    """Return which part of the list could not be compared."""
    parts = (
        [f"the tenant does not report all settings of notification {', '.join(unclear)}"]
        if unclear
        else []
    )
    if matches.unreadable:
        parts.append(f"{matches.unreadable} notifications of the list cannot be read")
    return ", ".join(parts)


def _has_dashboard(notification: Notification, body: CreateNotificationInput) -> bool:
    """Tenants of an early release list all dashboards, whatever the filter."""
    return (
        None in (body.dashboard_id, notification.dashboard_id)
        or body.dashboard_id == notification.dashboard_id
    )
