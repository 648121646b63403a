"""Scheduled notifications: a dashboard sent as an image or a PDF, and who gets it.

For administrators. Creating is not idempotent: two equal requests make two schedules, so look
first (`lookup`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.choices import NotificationFormat
from airflow_provider_platform.client.formats.input_values import check_timezone
from airflow_provider_platform.client.management.notifications.cron import check_cron, cron_times
from airflow_provider_platform.client.management.notifications.schedule_parts import (
    PARTS_OF,
    RANGES,
    check_parts,
)
from airflow_provider_platform.client.management.shared.dashboard_filters import (
    SETTINGS,
    DashboardFilterInput,
    DashboardMemberSwitcherInput,
    DashboardTimeGrainInput,
    meaning,
)
from airflow_provider_platform.client.operations.models import InputModel, ResponseModel
from airflow_provider_platform.client.operations.operation import typed
from airflow_provider_platform.client.operations.paging import Page
from airflow_provider_platform.client.operations.rules import Rule, exactly_one

ScheduleType = Literal["HOURLY", "DAILY", "WEEKLY", "MONTHLY", "CUSTOM"]

DEFAULT_TIMEZONE = "UTC"

_PARTS = (*RANGES, "custom_cron")


def _part(name: str) -> Any:
    low, high = RANGES[name]
    return Field(default=None, ge=low, le=high)


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


class NotificationInput(InputModel):
    """What creating and updating have in common: when (`hour` 0-23, `day_of_week` 0-6 from
    Sunday, `day_of_month` 1-31), as what, and with which settings of the dashboard."""

    schedule_type: ScheduleType | None = None
    minute: int | None = _part("minute")
    hour: int | None = _part("hour")
    day_of_week: int | None = _part("day_of_week")
    day_of_month: int | None = _part("day_of_month")
    custom_cron: Annotated[str, AfterValidator(check_cron)] | None = None
    timezone: Annotated[str, AfterValidator(check_timezone)] | None = None
    notification_format: NotificationFormat | None = None
    notification_enabled: bool | None = None
    notification_ai_summary: bool | None = None
    filters: list[DashboardFilterInput] | None = None
    time_grains: list[DashboardTimeGrainInput] | None = None
    member_switchers: list[DashboardMemberSwitcherInput] | None = None

    @model_validator(mode="after")
    def _schedule_is_whole(self) -> Self:
        check_parts(self.schedule_type, {part: getattr(self, part) for part in _PARTS})
        return self


class CreateNotificationInput(NotificationInput):
    """A schedule to create, for exactly one dashboard."""

    schedule_type: ScheduleType
    dashboard_id: int | None = Field(default=None, ge=1)
    dashboard_public_id: str | None = Field(default=None, min_length=1)

    rules: ClassVar[tuple[Rule, ...]] = ((("dashboard_id", "dashboard_public_id"), exactly_one),)

    def describes(self, existing: Notification) -> bool:
        """Whether an existing schedule of the same dashboard is this one, at whatever times: it has
        this format, and filters, time grains and member switchers of the same meaning. A format
        that is not given here (the service then chooses) is not compared."""
        return self._has_format_of(existing) and not (
            self.differing_settings(existing) or self.unclear_settings(existing)
        )

    def may_describe(self, existing: Notification) -> bool:
        """Whether an existing schedule of the same dashboard is this one as far as the service
        reports it, and some of its settings are not reported (see `unclear_settings`)."""
        return (
            self._has_format_of(existing)
            and not self.differing_settings(existing)
            and bool(self.unclear_settings(existing))
        )

    def differing_settings(self, existing: Notification) -> list[str]:
        """Which of filters, time grains and member switchers have another meaning there."""
        return [name for name in SETTINGS if self._same_settings(name, existing) is False]

    def unclear_settings(self, existing: Notification) -> list[str]:
        """Which of them the answer has not, though they are given here, or has in a shape that
        cannot be read: older tenants drop what they do not know."""
        return [name for name in SETTINGS if self._same_settings(name, existing) is None]

    def _has_format_of(self, existing: Notification) -> bool:
        return self.notification_format in (None, existing.notification_format)

    def is_sent_when(self, existing: Notification) -> bool:
        """Whether an existing schedule has these times in this time zone."""
        if (self.timezone or DEFAULT_TIMEZONE) != (existing.timezone or DEFAULT_TIMEZONE):
            return False
        return self._runs_at(existing.cron_expression)

    def _same_settings(self, name: str, existing: Notification) -> bool | None:
        """Whether the settings mean the same; None where nobody can tell."""
        alias = to_camel(name)
        ours, reported = self.to_json().get(alias) or None, existing.to_json()
        if alias not in reported:
            return None if ours else True
        try:
            return meaning(name, ours) == meaning(name, reported[alias])
        except ValueError:
            return True if ours == reported[alias] else None

    def _runs_at(self, cron: str | None) -> bool:
        if cron is None:
            return False
        if self.custom_cron is not None and cron.split() == self.custom_cron.split():
            return True
        try:
            theirs = cron_times(cron)
            ours = cron_times(self.custom_cron or self._cron(cron.split()))
        except ValueError:
            return False
        return ours == theirs

    def _cron(self, unsaid: list[str]) -> str:
        """This schedule as cron; the parts that were not given are taken from `unsaid`."""
        used = PARTS_OF[self.schedule_type]
        fields = ("minute", "hour", "day_of_month", "month", "day_of_week")
        parts = []
        for name, default in zip(fields, unsaid, strict=True):
            value = getattr(self, name, None)
            parts.append(("*" if name not in used else default) if value is None else str(value))
        return " ".join(parts)


list_notifications = typed("getNotifications", Page[Notification])
get_notification = typed("getNotification", Notification)
create_notification = typed("createNotification", Notification)
update_notification = typed("updateNotification", Notification)
