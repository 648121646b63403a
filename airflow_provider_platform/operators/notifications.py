"""Operators for scheduled notifications: a dashboard sent as an image or a PDF.

All of them need an administrator's token.
"""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args
from urllib.parse import urlsplit

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.argument_rules import (
    at_most_one,
    exactly_one,
    required,
    together,
)
from airflow_provider_platform.client.choices import NotificationFormat
from airflow_provider_platform.client.errors import (
    PlatformConflictError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.links import DashboardLink, NotificationLink, all_links
from airflow_provider_platform.operators._arguments import stored
from airflow_provider_platform.operators._base import (
    MAX_ITEMS,
    Check,
    Checks,
    DeploymentOperator,
    PlatformOperator,
    ShortTraceback,
    capped,
)
from airflow_provider_platform.operators._single_call import SingleCallOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.resources.notifications import (
        CreateNotificationInput,
        Matches,
        Notification,
    )

__all__ = [
    "PlatformCreateNotificationOperator",
    "PlatformDeleteNotificationOperator",
    "PlatformListNotificationsOperator",
    "PlatformNotificationRecipientsOperator",
    "PlatformUpdateNotificationOperator",
]

log = logging.getLogger(__name__)

IfExists = Literal["skip", "update", "fail"]

PARTS = ("minute", "hour", "day_of_week", "day_of_month")
SETTINGS = ("filters", "time_grains", "member_switchers")


@arguments.or_none
def _part(name: str, value: Any) -> int:
    from airflow_provider_platform.resources.schedules import RANGES

    low, high = RANGES[name]
    return arguments.whole_number(name, value, minimum=low, maximum=high)


@arguments.or_none
def _custom_cron(name: str, value: Any) -> str | None:
    from airflow_provider_platform.resources.schedules import check_cron

    return arguments.by_rule(check_cron, name, value)


@arguments.or_none
def _timezone(name: str, value: Any) -> str | None:
    from airflow_provider_platform.client.argument_rules import check_timezone

    return arguments.by_rule(check_timezone, name, value)


@arguments.or_none
def _schedule_type(name: str, value: Any) -> str:
    from airflow_provider_platform.resources.schedules import SCHEDULE_TYPES

    wanted = value.strip().upper() if isinstance(value, str) else value
    return arguments.choice(name, wanted, SCHEDULE_TYPES)


@arguments.or_none
def dashboard_settings(name: str, value: Any) -> list[Any] | None:
    """Return the checked settings of the dashboard."""
    settings = arguments.sequence(name, value)
    if not settings:
        return settings
    from airflow_provider_platform.resources.dashboard_filters import check_settings

    return check_settings(name, settings)


def _fit_together(schedule_type: str | None, **parts: Any) -> None:
    """A rule: the parts of the schedule fit its type."""
    from airflow_provider_platform.resources.schedules import check_parts

    check_parts(schedule_type, parts)


@arguments.or_none
def _key(name: str, value: Any) -> str:
    key = arguments.text(name, value)
    if not re.fullmatch(r"[\w.-]{1,100}", key, re.ASCII):
        raise arguments.refuse(name, "must be 1 to 100 letters, digits, _, - or .")
    return key


SCHEDULE: dict[str, Check] = {
    "schedule_type": _schedule_type,
    **dict.fromkeys(PARTS, _part),
    "custom_cron": _custom_cron,
    "timezone": _timezone,
    "notification_format": partial(arguments.optional_choice, choices=get_args(NotificationFormat)),
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

    :param schedule_type: `HOURLY`, `DAILY`, `WEEKLY`, `MONTHLY` or `CUSTOM`
    :param minute: 0-59; not with CUSTOM
    :param hour: 0-23; with DAILY, WEEKLY, MONTHLY
    :param day_of_week: 0-6 from Sunday; with WEEKLY
    :param day_of_month: 1-31; with MONTHLY
    :param custom_cron: a cron expression with five fields; only with CUSTOM. It is sent as it is,
        and the task fails if the service does not know it
    :param timezone: an IANA name, as Europe/Berlin
    :param notification_format: `png` or `pdf`
    :param notification_enabled: whether a schedule that is switched on sends anything
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
        """Convert the rendered arguments. Raises PlatformInputError, also if a part that the type
        of the schedule takes has vanished: the dashboard would be sent at another time."""
        from airflow_provider_platform.resources.schedules import PARTS_OF

        super().coerce_arguments()
        of_any_type = {part for parts in PARTS_OF.values() for part in parts}
        taken = PARTS_OF[self.schedule_type] if self.schedule_type else of_any_type
        with self.named_errors():
            for name in self._given:
                if name in taken and getattr(self, name) is None:
                    time = (
                        "has no value after rendering, and is needed for the time of the schedule"
                    )
                    raise arguments.refuse(name, time)

    def schedule(self) -> dict[str, Any]:
        """Return the given arguments of the schedule, by name."""
        values = {name: getattr(self, name) for name in SCHEDULE}
        return {name: value for name, value in values.items() if value is not None}


FILTERS: dict[str, Check] = {
    "dashboard_id": arguments.optional_id,
    "dashboard_public_id": arguments.optional_text,
    "dashboard": arguments.optional_text,
    "recipient_user_id": arguments.optional_id,
    "recipient_email": arguments.optional_text,
    "recipient_embed_tenant_name": arguments.optional_text,
    "recipient_external_id": arguments.optional_text,
}


class NotificationFilterOperator(DeploymentOperator):
    """Base of the operators on schedules that filters select."""

    checks: ClassVar[Checks] = FILTERS
    rules: ClassVar[Sequence[Rule]] = (
        (("dashboard_id", "dashboard_public_id", "dashboard"), at_most_one),
        (
            ("recipient_user_id", "recipient_email", "recipient_embed_tenant_name"),
            at_most_one,
        ),
        (("recipient_embed_tenant_name", "recipient_external_id"), together),
    )

    def __init__(
        self,
        *,
        dashboard_id: int | str | None = None,
        dashboard_public_id: str | None = None,
        dashboard: str | None = None,
        recipient_user_id: int | str | None = None,
        recipient_email: str | None = None,
        recipient_embed_tenant_name: str | None = None,
        recipient_external_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.dashboard_public_id = dashboard_public_id
        self.dashboard = dashboard
        self.recipient_user_id = recipient_user_id
        self.recipient_email = recipient_email
        self.recipient_embed_tenant_name = recipient_embed_tenant_name
        self.recipient_external_id = recipient_external_id


def _recipients(name: str, value: Any) -> list[Any] | None:
    """Return the checked list of recipients. Each recipient is checked as soon as it is known."""
    recipients = arguments.sequence(name, value)
    if recipients:
        from airflow_provider_platform.resources.notification_recipients import to_add, to_remove

        with arguments.within(name):
            (to_remove if name == "remove" else to_add)(recipients)
    return recipients


def _whole_or_changes(*, recipients: Any, add: Any, remove: Any) -> None:
    """A rule: the whole list, or changes."""
    if recipients is not None and (add or remove):
        raise ValueError("recipients is the whole list and cannot be combined with add or remove")


class NotificationOperator(DeploymentOperator):
    """Base of the operators on one scheduled notification.

    :param notification_id: the schedule's id
    """

    operator_extra_links = all_links(NotificationLink)

    checks: ClassVar[Checks] = {
        "notification_id": arguments.identifier,
    }

    def __init__(
        self,
        *,
        notification_id: int | str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.notification_id = notification_id


class PlatformCreateNotificationOperator(
    DeploymentOperator, NotificationScheduleOperator, SingleCallOperator
):
    """Create a schedule that sends a dashboard. The new schedule has no recipients.

    Use it to keep schedules in code: however often the DAG runs, there is one schedule. If you
    change its times in the DAG, the next run changes the schedule.

    The operator first searches for an existing schedule with the same dashboard, format (if it is
    given), filters, time grains and member switchers. If it finds several, it takes the one with
    the same times. Returns the notification as the service describes it.

    Give each schedule a `key` if a dashboard has several with the same settings (at 07:00 and at
    18:00), or if people have other schedules for it. The Airflow variable
    `platform_notification.<connection>.<host>.<deployment>.<dashboard>.<key>` then has the
    schedule's id, and the task changes this schedule and no other. It can change its format
    and filters too. If the variable is missing, the task takes a schedule with the same settings
    and times, or creates one.

    :param dashboard_id: the id of the dashboard to send, unless `dashboard_public_id` or
        `dashboard` is given
    :param dashboard_public_id: the public id of the dashboard
    :param dashboard: instead of an id: the title of the published dashboard, looked up when the
        task runs
    :param timezone: an IANA name, as Europe/Berlin. Without it, a new schedule is in UTC, and an
        existing one keeps its time zone
    :param key: your name for the schedule, in letters, digits, `_`, `-` and `.`
    :param if_exists: what to do if the schedule exists: `update` gives it the values of this task
        (the task fails if several match), `skip` returns it without a change (if several match, the
        newest one that is switched on), and `fail` fails the task. The log or the error says if the
        schedule is switched off
    """

    operator_extra_links = all_links(NotificationLink, DashboardLink)
    named = ("dashboard",)
    linked_result: ClassVar[dict[str, str]] = {
        "notification_id": "id",
        "dashboard_id": "dashboardId",
    }

    checks: ClassVar[Checks] = {
        "dashboard_id": arguments.optional_id,
        "dashboard_public_id": arguments.optional_text,
        "dashboard": arguments.optional_text,
        "key": _key,
        "if_exists": partial(arguments.choice, choices=get_args(IfExists)),
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("schedule_type",), required),
        (("dashboard_id", "dashboard_public_id", "dashboard"), exactly_one),
    )

    def __init__(
        self,
        *,
        schedule_type: str,
        dashboard_id: int | str | None = None,
        dashboard_public_id: str | None = None,
        dashboard: str | None = None,
        key: str | None = None,
        if_exists: IfExists = "update",
        **kwargs: Any,
    ) -> None:
        super().__init__(schedule_type=schedule_type, **kwargs)
        self.dashboard_id: Any = dashboard_id
        self.dashboard_public_id = dashboard_public_id
        self.dashboard = dashboard
        self.key = key
        self.if_exists = if_exists
        self._body: CreateNotificationInput
        self._there: Matches | None = None
        self.validate_known_arguments()

    def idempotency_key(self, config: PlatformConfig) -> str:
        return self.fingerprint(config, "notification", self._body.to_json(), self.key)

    def execute_once(self, context: Context, hook: PlatformHook) -> Any:
        """Create or change the schedule, and keep its id under the key."""
        from airflow_provider_platform.resources.notifications import CreateNotificationInput

        self._body = CreateNotificationInput.build(
            dashboard_id=self.dashboard_id,
            dashboard_public_id=self.dashboard_public_id,
            **self.schedule(),
        )
        result = super().execute_once(context, hook)
        if self.key is not None:
            from airflow_provider_platform._airflow import Variable

            Variable.set(self._variable(hook), str(result["id"]))
        return result

    def _variable(self, hook: PlatformHook) -> str:
        """Return the name of the Airflow variable that has the id of the schedule with this key.
        The same id on another host is somebody else's schedule."""
        host = urlsplit(hook.config.require_management_url()).netloc
        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        dashboard = self.dashboard_id or self.dashboard_public_id
        parts = (self.platform_conn_id, host, deployment_id, dashboard, self.key)
        return ".".join(["platform_notification", *map(str, parts)])

    def _own_id(self, hook: PlatformHook) -> int | None:
        """Return the id of the schedule that this key has, or None."""
        if self.key is None:
            return None
        from airflow_provider_platform._airflow import Variable

        stored = str(Variable.get(self._variable(hook), default=""))
        return int(stored) if stored.isdecimal() else None

    def prepare(self, hook: PlatformHook) -> dict[str, Any]:
        """Return the deployment and the ids of the schedules that exist before the call."""
        from airflow_provider_platform.resources.notifications import find_matching

        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        own_id = self._own_id(hook)
        self._there = there = hook.run(
            lambda api: find_matching(
                api, deployment_id, self._body, own_id=own_id, by_time=self.key is not None
            )
        )
        ids_before = [schedule.id for schedule in (*there.same, *there.unclear)]
        return {"deployment_id": deployment_id, "ids_before": ids_before}

    def call(self, hook: PlatformHook) -> Any:
        if self._there is not None and self._there.same:
            return self._settle_existing(hook, self._there.same).to_json()
        self._refuse_unclear()
        from airflow_provider_platform.resources.notifications import create_notification

        created = hook.run(create_notification(deployment_id=self.deployment_id, body=self._body))
        self.log.info("Created notification %s: %s", created.id, _describe(created))
        self._warn_of_differences(created)
        return created.to_json()

    def find(self, hook: PlatformHook, ids: dict[str, Any]) -> Any | None:
        """Return a matching schedule that did not exist before the call whose response was lost, or
        None. Raises PlatformOutcomeUnknownError."""
        from airflow_provider_platform.resources.notifications import find_created

        created = hook.run(
            lambda api: find_created(
                api, ids["deployment_id"], self._body, ids_before=ids["ids_before"]
            )
        )
        if len(created) > 1 and self.if_exists != "skip":
            numbers = ", ".join(str(schedule.id) for schedule in created)
            raise PlatformOutcomeUnknownError(
                "The service did not confirm the new notification, and several new notifications "
                f"could belong to this task ({numbers}). Keep one of them and delete the others, "
                "then mark this task as successful."
            )
        if not created:
            return None
        self.log.info(
            "Notification %s was created, although the service did not confirm it.",
            created[0].id,
        )
        return created[0].to_json()

    def remember(self, result: Any) -> dict[str, Any]:
        return {"id": result["id"]}

    def reload_result(self, hook: PlatformHook, ids: dict[str, Any]) -> Any:
        there = {"id": ids["id"], "deployment_id": self.deployment_id}
        return stored(hook.call("getNotification", **there))

    @property
    def _a_key(self) -> str:
        return "another key" if self.key else "a key"

    def _settle_existing(self, hook: PlatformHook, there: list[Notification]) -> Notification:
        """Return or change the existing schedules, as `if_exists` says. Raises
        PlatformConflictError."""
        names = ", ".join(_with_silence(schedule) for schedule in there)
        sending = next((schedule for schedule in there if schedule.silence is None), there[0])
        if self.if_exists == "fail":
            raise PlatformConflictError(
                f"Nothing was created (if_exists='fail'): this dashboard already has notification "
                f"{names} with the same format, filters, time grains and member switchers. Delete "
                "that notification, use if_exists='skip' or 'update', or give this one "
                f"{self._a_key}."
            )
        if self.if_exists == "update" and len(there) > 1:
            raise PlatformConflictError(
                f"Nothing was changed: several notifications match ({names}). Delete all but one "
                f"of them, or give this one {self._a_key}."
            )
        if len(there) > 1:
            self.log.warning(
                "Several notifications match (%s); returning notification %s.", names, sending.id
            )
        if self.if_exists == "update":
            self.log.info("Notification %s already exists; updating it.", sending.id)
            removed: dict[str, Any] = {
                name: [] for name in SETTINGS if getattr(sending, name) and not getattr(self, name)
            }
            sending = _update(hook, sending.id, self.deployment_id, {**self.schedule(), **removed})
        elif self._body.is_sent_when(sending):
            self.log.info("Nothing to create: notification %s already exists.", sending.id)
        else:
            self.log.warning(
                "Notification %s already exists, with other times than this task has: %s. It stays "
                "as it is (if_exists='skip').",
                sending.id,
                _describe(sending),
            )
        is_wanted = self.notification_enabled is False and sending.is_enabled is not False
        if sending.silence is not None and not is_wanted:
            self.log.warning(
                "Notification %s is not sent to anybody: %s. Switch the notification on with "
                "PlatformUpdateNotificationOperator, or delete it.",
                sending.id,
                sending.silence,
            )
        return sending

    def _refuse_unclear(self) -> None:
        """Raise PlatformConflictError if an existing schedule may be the wanted one. A new one
        could be a second copy, and the existing one could send people the wrong data."""
        unclear = self._there.unclear if self._there is not None else []
        if unclear:
            first = unclear[0]
            settings = " and ".join(self._body.unconfirmed_settings(first))
            raise PlatformConflictError(
                f"Nothing was created: notification {_with_silence(first)} of this dashboard may "
                f"already be the one that this task would create. The tenant does not report its "
                f"{settings}, so the task cannot compare these settings. Look at the notification "
                "in the platform. If you want to use it, update it by its id "
                "(PlatformUpdateNotificationOperator). If nobody needs it, delete it and run this "
                f"task again. If it is another schedule, give this one {self._a_key}."
            )

    def _warn_of_differences(self, created: Notification) -> None:
        """Log a warning if the service stored other settings than the task sent, or does not report
        them: the next run does not recognize the notification then."""
        if unconfirmed := self._body.unconfirmed_settings(created):
            self.log.warning(
                "The service does not report the %s of notification %s as the task sent them. The "
                "tenant may not support these settings. Check the notification in the platform, "
                "and correct it or this task. Otherwise the next run does not recognize the "
                "notification: it fails, or it creates another one.",
                " and ".join(unconfirmed),
                created.id,
            )


class PlatformUpdateNotificationOperator(NotificationOperator, NotificationScheduleOperator):
    """Change the given parts of a schedule. The other parts and the recipients stay.

    Use it to change an existing schedule: to another hour, to another filter, or off during a
    migration.

    Returns the notification as the service describes it.

    :param is_enabled: switch the schedule on or off
    :param filters: replace the stored filters; the
        constant `[]` removes them, and an empty list from a task is an error
    :param time_grains: a list of `{"member", "grain"}`; see `filters`
    :param member_switchers: a list of `{"member", "selected"}`; see `filters`
    """

    checks: ClassVar[Checks] = {
        "is_enabled": arguments.optional_boolean,
    }

    def __init__(self, *, is_enabled: bool | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.is_enabled: Any = is_enabled
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Change the schedule."""
        with ShortTraceback(), self.opened(context) as hook:
            body = {**arguments.given(is_enabled=self.is_enabled), **self.schedule()}
            updated = _update(hook, self.notification_id, self.deployment_id, body)
        self.log.info("Updated notification %s: %s", updated.id, _describe(updated))
        return updated.to_json()


class PlatformDeleteNotificationOperator(NotificationOperator):
    """Delete a schedule and its recipients.

    If the schedule does not exist, the first try fails without a retry. In a retry after another
    failure this is a success, because the earlier try may have deleted the schedule.

    Use it to remove a schedule that an earlier DAG run created. To pause a schedule, update it.
    """

    returns_object: ClassVar[bool] = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.validate_known_arguments()

    operator_extra_links = all_links()  # to the platform, since the notification is gone

    def execute(self, context: Context) -> None:
        """Delete the schedule."""
        with ShortTraceback(), self.opened(context) as hook:
            try:
                ids = {"id": self.notification_id, "deployment_id": self.deployment_id}
                hook.call("deleteNotification", **ids)
            except PlatformNotFoundError:
                if int(getattr(context["ti"], "try_number", 1) or 1) < 2:
                    raise
                self.log.info("Notification %s no longer exists.", self.notification_id)
                return
        self.log.info("Deleted notification %s", self.notification_id)


class PlatformListNotificationsOperator(NotificationFilterOperator):
    """List schedules, newest first: all, those of a dashboard, or those with a recipient.

    Use it to find schedules by dashboard or by recipient, and to map other tasks over them.

    Returns a list of notifications as the service describes them.

    :param dashboard_id: the id of the dashboard that is sent; or `dashboard_public_id` or
        `dashboard`
    :param dashboard_public_id: the public id of the dashboard
    :param dashboard: the title of the published dashboard, looked up when the task runs
    :param recipient_user_id: a console user who is a recipient, by id
    :param recipient_email: a console user who is a recipient, by e-mail address
    :param recipient_embed_tenant_name: the tenant of an embed user who is a recipient
    :param recipient_external_id: the id of that user in the tenant
    :param max_items: the largest number of items to return; the log says if there are more
    """

    named = ("dashboard",)
    returns_object: ClassVar[bool] = False
    checks: ClassVar[Checks] = {
        "max_items": partial(arguments.whole_number, minimum=1),
    }

    def __init__(self, *, max_items: int | str = MAX_ITEMS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_items = max_items
        self.validate_known_arguments()

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """List the schedules."""
        with ShortTraceback(), self.opened(context) as hook:
            filters = {name: getattr(self, name) for name in FILTERS if name not in self.named}
            listed = hook.list_notifications(deployment_id=self.deployment_id, **filters)
            return capped(listed, int(self.max_items), self.log)


class PlatformNotificationRecipientsOperator(NotificationOperator):
    """Set who gets a schedule: the whole list, or whom to add and to remove.

    Use it after the task that creates the schedule, so that the schedule has the recipients of your
    list.

    The form of every recipient is checked before the first request. Recipients are sent in batches
    of 1000. SLACK channels cannot be added. Returns the recipients afterwards, as the service
    describes them.

    :param recipients: the whole list, of recipients as in `add`: others are removed, except Slack
        channels; the constant `[]` removes all users, and an empty list from a task is an error
    :param add: recipients to add: `{"type": "USER", "user_id" | "email"}` or `{"type":
        "EMBED_USER", "embed_tenant_name", "external_id"}`; an embed user can also have `groups`,
        `user_attributes`, `security_context`
    :param remove: recipients to remove, named as in `add`, or by `{"type", "id"}`; an embed user
        also needs `embed_tenant_name`
    :param max_items: the largest number of recipients to return; the log says if there are more
    """

    returns_object: ClassVar[bool] = False
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "recipients": "json",
        "add": "json",
        "remove": "json",
    }
    checks: ClassVar[Checks] = {
        "recipients": _recipients,
        "add": _recipients,
        "remove": _recipients,
        "max_items": partial(arguments.whole_number, minimum=1),
    }
    rules: ClassVar[Sequence[Rule]] = ((("recipients", "add", "remove"), _whole_or_changes),)

    def __init__(
        self,
        *,
        recipients: Sequence[Any] | str | None = None,
        add: Sequence[Any] | str | None = None,
        remove: Sequence[Any] | str | None = None,
        max_items: int | str = MAX_ITEMS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.recipients = recipients
        self.add = add
        self.remove = remove
        self.max_items = max_items
        self.validate_known_arguments()

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Add and remove recipients, and return the remaining recipients."""
        with ShortTraceback(), self.opened(context) as hook:
            self._change(hook)
            ids = {"id": self.notification_id, "deployment_id": self.deployment_id}
            listed = hook.iterate("getRecipients", **ids)
            return capped(listed, int(self.max_items), self.log)

    def _change(self, hook: PlatformHook) -> None:
        from airflow_provider_platform.resources.notification_recipients import (
            add_recipients,
            remove_recipients,
            set_recipients,
        )

        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        if (recipients := self.recipients) is not None:
            added, removed = hook.run(
                lambda api: set_recipients(api, deployment_id, self.notification_id, recipients)
            )
            self.log.info(
                "Recipients of notification %s: %s added, %s removed",
                self.notification_id,
                len(added.created_recipients or []),
                removed,
            )
        if add := self.add:
            done = hook.run(
                lambda api: add_recipients(api, deployment_id, self.notification_id, add)
            )
            self.log.info(
                "Recipients of notification %s: %s added, %s changed, %s unchanged",
                self.notification_id,
                len(done.created_recipients or []),
                len(done.updated_recipients or []),
                len(done.unchanged_recipients or []),
            )
        if remove := self.remove:
            hook.run(
                lambda api: remove_recipients(api, deployment_id, self.notification_id, remove)
            )
            self.log.info(
                "Recipients of notification %s: %s removed", self.notification_id, len(remove)
            )


def _update(
    hook: PlatformHook, notification_id: int | str, deployment_id: Any, body: dict[str, Any]
) -> Notification:
    """Change the given parts of a schedule, and return it."""
    from airflow_provider_platform.resources.notifications import update_notification

    ids = {"id": notification_id, "deployment_id": deployment_id}
    return hook.run(update_notification(body=body, rendered=True, **ids))


def _describe(notification: Notification) -> str:
    """Return a schedule as a line for the log."""
    when = notification.human_readable_schedule or notification.cron_expression
    return quote_service(f"dashboard {notification.dashboard_id}, {when}, {notification.timezone}")


def _with_silence(notification: Notification) -> str:
    """Return a schedule's id, with the reason if it sends nothing."""
    silence = notification.silence
    return f"{notification.id} ({silence})" if silence else str(notification.id)
