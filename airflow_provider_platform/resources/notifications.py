"""Scheduled notifications: a dashboard sent as an image or a PDF, and its schedule.

Creating is not idempotent: two equal requests make two schedules. So a caller searches first, and
again after a response was lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict

from airflow_provider_platform.client.choices import NotificationFormat
from airflow_provider_platform.client.errors import (
    PlatformInputError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.models import InputModel, ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, collect
from airflow_provider_platform.resources.dashboard_filters import same_settings
from airflow_provider_platform.resources.schedules import PARTS_OF, same_times

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


ScheduleType = Literal["HOURLY", "DAILY", "WEEKLY", "MONTHLY", "CUSTOM"]

DEFAULT_TIMEZONE = "UTC"
_CRON_FIELDS = ("minute", "hour", "day_of_month", "month", "day_of_week")


class Notification(ResponseModel):
    """A schedule on which a dashboard is sent, with the filters and time grains it runs with."""

    id: int
    dashboard_id: int | None = None
    cron_expression: str | None = None
    timezone: str | None = None
    is_enabled: bool | None = None
    human_readable_schedule: str | None = None
    notification_enabled: bool | None = None
    notification_format: str | None = None
    filters: Any = None
    member_switchers: Any = None
    time_grains: Any = None

    @property
    def silence(self) -> str | None:
        """Why this schedule sends nothing, as far as the service says so; None if it sends."""
        if self.is_enabled is False:
            return "isEnabled is false"
        if self.notification_enabled is False:
            return "notificationEnabled is false"
        return None


class CreateNotificationInput(InputModel):
    """A schedule to create, for one dashboard: when, as what, and with which settings of the
    dashboard. Only the fields that are compared with existing schedules are declared. The
    operator's checks have the rules, and the table of operations checks the request."""

    model_config = ConfigDict(extra="allow")

    schedule_type: ScheduleType
    minute: int | None = None
    hour: int | None = None
    day_of_week: int | None = None
    day_of_month: int | None = None
    custom_cron: str | None = None
    timezone: str | None = None
    notification_format: NotificationFormat | None = None
    filters: list[dict[str, Any]] | None = None
    time_grains: list[dict[str, Any]] | None = None
    member_switchers: list[dict[str, Any]] | None = None
    dashboard_id: int | None = None
    dashboard_public_id: str | None = None

    def describes(self, existing: Notification) -> bool | None:
        """Whether an existing schedule of the same dashboard is this one, at whatever times: it has
        this format, and filters, time grains and member switchers of the same meaning. None if it
        is this one as far as the service reports it, and some of its settings are not reported (see
        `unconfirmed_settings`). A format that is not given here (the service then chooses) is not
        compared."""
        if self.notification_format not in (None, existing.notification_format):
            return False
        same = self._same_settings(existing).values()
        return False if False in same else None if None in same else True

    def unconfirmed_settings(self, existing: Notification) -> list[str]:
        """Which of filters, time grains and member switchers have another meaning there, or are not
        reported in a form that can be read: older tenants drop what they do not know."""
        return [name for name, same in self._same_settings(existing).items() if same is not True]

    def is_sent_when(self, existing: Notification) -> bool:
        """Whether an existing schedule has these times in this time zone."""
        if (self.timezone or DEFAULT_TIMEZONE) != (existing.timezone or DEFAULT_TIMEZONE):
            return False
        return self._runs_at(existing.cron_expression)

    def _same_settings(self, existing: Notification) -> dict[str, bool | None]:
        return same_settings(self.to_json(), existing.to_json())

    def _runs_at(self, cron: str | None) -> bool:
        if cron is None:
            return False
        fields = cron.split()
        if self.custom_cron is not None:
            return same_times(self.custom_cron, cron)
        return len(fields) == len(_CRON_FIELDS) and same_times(self._cron(fields), cron)

    def _cron(self, unsaid: list[str]) -> str:
        """This schedule as cron; the parts that were not given are taken from `unsaid`."""
        used = PARTS_OF[self.schedule_type]
        parts = []
        for name, default in zip(_CRON_FIELDS, unsaid, strict=True):
            value = getattr(self, name, None)
            parts.append(("*" if name not in used else default) if value is None else str(value))
        return " ".join(parts)


list_notifications = typed("getNotifications", Page[Notification])
get_notification = typed("getNotification", Notification)
create_notification = typed("createNotification", Notification)
update_notification = typed("updateNotification", Notification)


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

    Raises PlatformInputError if an older tenant lists other dashboards too and only
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
    described = [(row, body.describes(row)) for row in rows]
    same = [row for row, is_same in described if is_same]
    return Matches(
        same=[row for row in same if body.is_sent_when(row)] or same,
        unclear=[row for row, is_same in described if is_same is None],
        unreadable=listed.left_out,
    )


async def find_created(
    api: Api, deployment_id: int, body: CreateNotificationInput, *, ids_before: Collection[int]
) -> list[Notification]:
    """Return the matching schedules with these times that are not in `ids_before`: a call with a
    lost response may have created them.

    Raises PlatformOutcomeUnknownError if there is none, and a new schedule may be it: its settings
    are not reported, or its times are spelled in another way.
    """
    for poll in range(2):
        if poll:
            await api.sleep(SECOND_POLL_AFTER)
        matches = await find_matching(api, deployment_id, body)
        new = [row for row in (*matches.same, *matches.unclear) if row.id not in ids_before]
        created = [row for row in new if row in matches.same and body.is_sent_when(row)]
        if created:
            return created
    if new or matches.unreadable:
        raise PlatformOutcomeUnknownError(
            "The service did not confirm the new notification, and the list does not show "
            f"whether it was created ({_describe_doubt(new, matches)}). Look at the dashboard's "
            "notifications. If the new notification is there, mark this task as successful. If it "
            "is not there, clear the task to create it."
        )
    return []


def _describe_doubt(new: Collection[Notification], matches: Matches) -> str:
    """Return which part of the list could not be compared."""
    parts = []
    if new:
        ids = ", ".join(str(row.id) for row in new)
        parts.append(
            f"notification {ids} is new, and the tenant does not report all settings of it, or "
            "reports other times than this task has"
        )
    if matches.unreadable:
        parts.append(f"{matches.unreadable} notifications of the list cannot be read")
    return ", ".join(parts)


def _has_dashboard(notification: Notification, body: CreateNotificationInput) -> bool:
    """Older tenants list all dashboards, whatever the filter."""
    return (
        None in (body.dashboard_id, notification.dashboard_id)
        or body.dashboard_id == notification.dashboard_id
    )
