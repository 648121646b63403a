"""Schedules that are there: found before another is created, and after an answer was lost."""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_platform.client.management.notifications.notifications import (
    CreateNotificationInput,
    Notification,
    NotificationsQuery,
    list_notifications,
)
from airflow_provider_platform.client.operations.paging import collect
from airflow_provider_platform.client.operations.program import Program, Sleep

SECOND_LOOK_AFTER = 2.0
"""Seconds: what was created while its answer was lost may show a moment later."""


def find_matching(deployment_id: int, body: CreateNotificationInput) -> Program[list[Notification]]:
    """The schedules of the same dashboard with the same times, time zone and format, newest
    first."""
    listing = list_notifications(
        deployment_id=deployment_id,
        query=NotificationsQuery.build(
            dashboard_id=body.dashboard_id, dashboard_public_id=body.dashboard_public_id
        ),
    )
    listed = yield from collect(listing)
    return [
        found for found in listed.items if _has_dashboard(found, body) and body.describes(found)
    ]


def find_created(
    deployment_id: int, body: CreateNotificationInput, *, known: Collection[int]
) -> Program[list[Notification]]:
    """The matching schedules that are not among the known ids: what a lost call may have made."""
    created: list[Notification] = []
    for look in range(2):
        if look:
            yield Sleep(SECOND_LOOK_AFTER)
        matching = yield from find_matching(deployment_id, body)
        created = [found for found in matching if found.id not in known]
        if created:
            break
    return created


def _has_dashboard(found: Notification, body: CreateNotificationInput) -> bool:
    """Tenants of an early release list all dashboards, whatever the filter."""
    return (
        None in (body.dashboard_id, found.dashboard_id) or body.dashboard_id == found.dashboard_id
    )
