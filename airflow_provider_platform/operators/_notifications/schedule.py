"""The arguments that the operators for creating and updating a schedule share."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import Check, Checks, PlatformOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.management.notifications.notifications import Notification
    from airflow_provider_platform.client.operations.rules import Rule

log = logging.getLogger(__name__)

PARTS = ("minute", "hour", "day_of_week", "day_of_month")


def _part(name: str, value: Any) -> int | None:
    from airflow_provider_platform.client.management.notifications.schedule_parts import RANGES

    found = arguments.optional(value)
    if found is None:
        return None
    low, high = RANGES[name]
    return arguments.whole_number(name, found, minimum=low, maximum=high)


def _custom_cron(name: str, value: Any) -> str | None:
    from airflow_provider_platform.client.management.notifications.cron import check_cron

    return arguments.by_rule(check_cron, name, value)


def _timezone(name: str, value: Any) -> str | None:
    from airflow_provider_platform.client.formats.input_values import check_timezone

    return arguments.by_rule(check_timezone, name, value)


def _schedule_type(name: str, value: Any) -> str | None:
    from airflow_provider_platform.client.management.notifications.schedule_parts import (
        SCHEDULE_TYPES,
    )

    found = value.strip().upper() if isinstance(value, str) else value
    return arguments.optional_choice(name, found or None, SCHEDULE_TYPES)


def dashboard_settings(name: str, value: Any) -> list[Any] | None:
    """Return the checked settings of the dashboard. Each item is checked by its model as soon as it
    is known."""
    found = arguments.sequence(name, value)
    if found and not arguments.is_template(found):
        from airflow_provider_platform.client.management.notifications.notifications import (
            NotificationInput,
        )

        NotificationInput.build(**{name: found})
    return found


def _fit_together(schedule_type: str | None, **parts: Any) -> None:
    """A rule: the parts of the schedule fit its type."""
    from airflow_provider_platform.client.management.notifications.schedule_parts import check_parts

    check_parts(schedule_type, parts)


SCHEDULE: dict[str, Check] = {
    "schedule_type": _schedule_type,
    **dict.fromkeys(PARTS, _part),
    "custom_cron": _custom_cron,
    "timezone": _timezone,
    "notification_format": partial(arguments.optional_choice, choices=("png", "pdf")),
    "notification_enabled": arguments.optional_boolean,
    "notification_ai_summary": arguments.optional_boolean,
    "filters": dashboard_settings,
    "time_grains": dashboard_settings,
    "member_switchers": dashboard_settings,
}
"""When a dashboard is sent, as what, and with which settings."""


class NotificationScheduleOperator(PlatformOperator):
    """Base of the operators that write a schedule.

    Parts of the schedule are checked as soon as they are known.

    :param schedule_type: HOURLY, DAILY, WEEKLY, MONTHLY or CUSTOM
    :param minute: 0-59; not with CUSTOM
    :param hour: 0-23; with DAILY, WEEKLY, MONTHLY
    :param day_of_week: 0-6 from Sunday; with WEEKLY
    :param day_of_month: 1-31; with MONTHLY
    :param custom_cron: a cron expression with five fields; only with CUSTOM. Forms beyond plain
        cron (`L`, `FRI#2`, `@daily`, a first field of seconds) are sent with a warning in the log
    :param timezone: an IANA name, as Europe/Berlin (the service's default: UTC)
    :param notification_format: png or pdf
    :param notification_enabled: whether the schedule sends anything
    :param notification_ai_summary: whether to add a summary by the agent
    :param filters: the filters of the dashboard: a list of `{"member", "operator", "value"}`
    :param time_grains: a list of `{"member", "grain"}`
    :param member_switchers: a list of `{"member", "selected"}`
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {
        "filters": "json",
        "time_grains": "json",
        "member_switchers": "json",
    }
    checks: ClassVar[Checks] = SCHEDULE
    rules: ClassVar[Sequence[Rule]] = ((("schedule_type", *PARTS, "custom_cron"), _fit_together),)

    def __init__(
        self,
        *,
        schedule_type: str | None = None,
        minute: int | str | None = None,
        hour: int | str | None = None,
        day_of_week: int | str | None = None,
        day_of_month: int | str | None = None,
        custom_cron: str | None = None,
        timezone: str | None = None,
        notification_format: str | None = None,
        notification_enabled: bool | str | None = None,
        notification_ai_summary: bool | str | None = None,
        filters: Sequence[Any] | str | None = None,
        time_grains: Sequence[Any] | str | None = None,
        member_switchers: Sequence[Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.schedule_type = schedule_type
        self.minute = minute
        self.hour = hour
        self.day_of_week = day_of_week
        self.day_of_month = day_of_month
        self.custom_cron = custom_cron
        self.timezone = timezone
        self.notification_format = notification_format
        self.notification_enabled = notification_enabled
        self.notification_ai_summary = notification_ai_summary
        self.filters = filters
        self.time_grains = time_grains
        self.member_switchers = member_switchers

    def coerce_arguments(self) -> None:
        """Check the arguments, and warn of a cron expression that the service may refuse."""
        from airflow_provider_platform.client.management.notifications.cron import cron_doubt

        super().coerce_arguments()
        doubt = None if self.custom_cron is None else cron_doubt(self.custom_cron)
        if doubt is not None:
            log.warning(
                "The service may not support custom_cron %s: %s. If the service refuses it, "
                "write it with five standard fields.",
                quote_service(self.custom_cron),
                quote_service(doubt),
            )

    def schedule(self) -> dict[str, Any]:
        """Return the given arguments of the schedule, by name."""
        return arguments.given(**{name: getattr(self, name) for name in SCHEDULE})


def describe(notification: Notification) -> str:
    """Return a schedule as a line for the log."""
    when = notification.human_readable_schedule or notification.cron_expression
    return quote_service(f"dashboard {notification.dashboard_id}, {when}, {notification.timezone}")
