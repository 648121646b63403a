"""Operators for scheduled notifications: a dashboard sent as an image or a PDF.

All of them need an administrator's token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_platform.client.errors import (
    PlatformConflictError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.operators import _arguments as arguments
from airflow_provider_platform.operators._base import PlatformOperator
from airflow_provider_platform.operators._lists import MAX_ITEMS, capped
from airflow_provider_platform.operators._notification_filters import (
    NotificationFilterOperator,
)
from airflow_provider_platform.operators._notification_schedule import (
    NotificationScheduleOperator,
)
from airflow_provider_platform.operators._submit_once import SubmitOnceOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.notifications import (
        CreateNotificationInput,
        Notification,
    )
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Rule

IfExists = Literal["skip", "update", "fail"]


class PlatformCreateNotificationOperator(NotificationScheduleOperator, SubmitOnceOperator):
    """Create a schedule that sends a dashboard; it has no recipients at first.

    The service would make a second schedule of the same kind, so one with the same dashboard,
    times, time zone and format is looked for first. Returns the notification as the service
    describes it.

    :param schedule_type: HOURLY, DAILY, WEEKLY, MONTHLY or CUSTOM
    :param dashboard_id: the dashboard to send; or
    :param dashboard_public_id: the same by its public id
    :param minute: 0-59; not with CUSTOM
    :param hour: 0-23; with DAILY, WEEKLY, MONTHLY
    :param day_of_week: 0-6 from Sunday; with WEEKLY
    :param day_of_month: 1-31; with MONTHLY
    :param custom_cron: five fields; with CUSTOM, and only there
    :param timezone: an IANA name, as Europe/Berlin (the service's default: UTC)
    :param notification_format: png or pdf
    :param notification_enabled: whether to send at all
    :param notification_ai_summary: whether to add a summary by the agent
    :param filters: what the dashboard is filtered by: `{"member", "operator", "value"}` each
    :param time_grains: `{"member", "grain"}` each
    :param member_switchers: `{"member", "selected"}` each
    :param if_exists: what to do with a schedule that is there: `skip` (return it), `update` (its
        settings; refused where several match) or `fail`
    :param deployment_id: default: the connection's
    """

    template_fields: Sequence[str] = (
        "dashboard_id",
        "dashboard_public_id",
        "if_exists",
        "deployment_id",
        *NotificationScheduleOperator.template_fields,
    )
    checks: ClassVar[dict[str, Any]] = {
        **NotificationScheduleOperator.checks,
        **arguments.named(arguments.optional_id, "dashboard_id", "deployment_id"),
        **arguments.named(arguments.optional_text, "dashboard_public_id"),
        **arguments.named(arguments.choice, "if_exists", choices=("skip", "update", "fail")),
    }
    rules: ClassVar[Sequence[Rule]] = (
        *NotificationScheduleOperator.rules,
        (("schedule_type",), arguments.required),
        (("dashboard_id", "dashboard_public_id"), arguments.exactly_one),
    )

    def __init__(
        self,
        *,
        schedule_type: str,
        dashboard_id: int | str | None = None,
        dashboard_public_id: str | None = None,
        if_exists: IfExists = "skip",
        deployment_id: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(schedule_type=schedule_type, **kwargs)
        self.dashboard_id: Any = dashboard_id
        self.dashboard_public_id = dashboard_public_id
        self.if_exists = if_exists
        self.deployment_id = deployment_id
        self._there: list[Notification] = []
        self.check_known_arguments()

    def key_of(self, config: PlatformConfig) -> str:
        from airflow_provider_platform.client.config import fingerprint

        deployment_id = config.resolve_deployment_id(self.deployment_id)
        body = self._body().to_json()
        return fingerprint("notification", config.management_url, deployment_id, body)

    def prepare(self, hook: PlatformHook) -> dict[str, Any]:
        """The schedules that are there before."""
        from airflow_provider_platform.client.notification_lookup import find_matching

        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        self._there = hook.run(find_matching(deployment_id, self._body()))
        return {"deployment_id": deployment_id, "known": [found.id for found in self._there]}

    def call(self, hook: PlatformHook) -> Any:
        if self._there:
            return self._settle_existing(hook).to_json()
        created = hook.create_notification(
            dashboard_id=self.dashboard_id,
            dashboard_public_id=self.dashboard_public_id,
            deployment_id=self.deployment_id,
            **self.schedule(),
        )
        self.log.info("Created notification %s: %s", created.id, _describe(created))
        return created.to_json()

    def find(self, hook: PlatformHook, ids: dict[str, Any]) -> Any | None:
        """A schedule of this kind that was not there before the call whose answer was lost."""
        from airflow_provider_platform.client.notification_lookup import find_created

        created = hook.run(find_created(ids["deployment_id"], self._body(), known=ids["known"]))
        if len(created) > 1 and self.if_exists != "skip":
            numbers = ", ".join(str(found.id) for found in created)
            raise PlatformOutcomeUnknownError(
                "The answer to the creation was lost, and several new notifications could be this "
                f"one ({numbers}). Look at them, then clear the task."
            )
        if not created:
            return None
        self.log.info("Notification %s was created although the answer was lost.", created[0].id)
        return created[0].to_json()

    def remember(self, result: Any) -> dict[str, Any]:
        return {"id": result["id"]}

    def take(self, hook: PlatformHook, ids: dict[str, Any]) -> Any:
        return hook.get_notification(ids["id"], deployment_id=self.deployment_id).to_json()

    def _settle_existing(self, hook: PlatformHook) -> Notification:
        existing = self._there[0]
        numbers = ", ".join(str(found.id) for found in self._there)
        if self.if_exists == "skip":
            self.log.info("Nothing to create: notification %s is there already.", existing.id)
            return existing
        if self.if_exists == "fail":
            raise PlatformConflictError(
                f"Nothing was created: notification {numbers} of this dashboard has the same "
                "times, time zone and format (if_exists='fail')."
            )
        if len(self._there) > 1:
            raise PlatformConflictError(
                f"Nothing was changed: several notifications match ({numbers}). Delete all but "
                "one, or update one by its id."
            )
        self.log.info("Updating notification %s, which is there already.", existing.id)
        return hook.update_notification(
            existing.id, deployment_id=self.deployment_id, **self.schedule()
        )

    def _body(self) -> CreateNotificationInput:
        from airflow_provider_platform.client.notifications import CreateNotificationInput

        return CreateNotificationInput.build(
            dashboard_id=self.dashboard_id,
            dashboard_public_id=self.dashboard_public_id,
            **self.schedule(),
        )


class PlatformUpdateNotificationOperator(NotificationScheduleOperator):
    """Change the given parts of a schedule; the others stay, and so do the recipients.

    Takes the parts that `PlatformCreateNotificationOperator` takes. Returns the notification as
    the service describes it.

    :param notification_id: the schedule
    :param is_enabled: switch it on or off
    :param filters: replace the stored ones, as do `time_grains` and `member_switchers`; an empty
        list removes them
    :param deployment_id: default: the connection's
    """

    template_fields: Sequence[str] = (
        "notification_id",
        "is_enabled",
        "deployment_id",
        *NotificationScheduleOperator.template_fields,
    )
    checks: ClassVar[dict[str, Any]] = {
        **NotificationScheduleOperator.checks,
        **arguments.named(arguments.identifier, "notification_id"),
        **arguments.named(arguments.optional_boolean, "is_enabled"),
        **arguments.named(arguments.optional_id, "deployment_id"),
    }

    def __init__(
        self,
        *,
        notification_id: int | str,
        is_enabled: bool | str | None = None,
        deployment_id: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.notification_id = notification_id
        self.is_enabled: Any = is_enabled
        self.deployment_id = deployment_id
        self.check_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Change the schedule."""
        with self.opened(context) as hook:
            updated = hook.update_notification(
                self.notification_id,
                is_enabled=self.is_enabled,
                deployment_id=self.deployment_id,
                **self.schedule(),
            )
        self.log.info("Updated notification %s: %s", updated.id, _describe(updated))
        return updated.to_json()


class PlatformDeleteNotificationOperator(PlatformOperator):
    """Delete a schedule and its recipients.

    One that is not there fails the first try; a later try takes it for deleted by an earlier one.

    :param notification_id: the schedule
    :param deployment_id: default: the connection's
    """

    template_fields: Sequence[str] = ("notification_id", "deployment_id", "platform_conn_id")
    checks: ClassVar[dict[str, Any]] = {
        **arguments.named(arguments.identifier, "notification_id"),
        **arguments.named(arguments.optional_id, "deployment_id"),
    }

    def __init__(
        self,
        *,
        notification_id: int | str,
        deployment_id: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.notification_id = notification_id
        self.deployment_id = deployment_id
        self.check_known_arguments()

    def execute(self, context: Context) -> None:
        """Delete the schedule."""
        with self.opened(context) as hook:
            try:
                hook.delete_notification(self.notification_id, deployment_id=self.deployment_id)
            except PlatformNotFoundError:
                if int(getattr(context["ti"], "try_number", 1) or 1) < 2:
                    raise
                self.log.info("Notification %s is not there any more.", self.notification_id)
                return
        self.log.info("Deleted notification %s", self.notification_id)


class PlatformListNotificationsOperator(NotificationFilterOperator):
    """List schedules: all, those of a dashboard, or those with a recipient, newest first.

    Returns a list of notifications as the service describes them.

    :param dashboard_id: the dashboard that is sent; or
    :param dashboard_public_id: the same by its public id
    :param recipient_user_id: a console user who gets it; or
    :param recipient_email: the same by e-mail address; or
    :param recipient_embed_tenant_name: an embed user who gets it, with
    :param recipient_external_id: that user's id
    :param max_items: how many to return at most; the log says when there are more
    :param deployment_id: default: the connection's
    """

    template_fields: Sequence[str] = (
        "max_items",
        *NotificationFilterOperator.template_fields,
    )
    checks: ClassVar[dict[str, Any]] = {
        **NotificationFilterOperator.checks,
        **arguments.named(arguments.whole_number, "max_items", minimum=1),
    }

    def __init__(self, *, max_items: int | str = MAX_ITEMS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_items = max_items
        self.check_known_arguments()

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """List the schedules."""
        with self.opened(context) as hook:
            listed = hook.list_notifications(deployment_id=self.deployment_id, **self.filters())
            return capped(listed, int(self.max_items), self.log)


def _recipients(name: str, value: Any) -> list[Any] | None:
    """A list of recipients; checked one by one as soon as it is known."""
    found = arguments.sequence(name, value)
    if found and not arguments.is_template(found):
        from airflow_provider_platform.client.notification_recipients import to_add, to_remove

        (to_add if name == "add" else to_remove)(found)
    return found


class PlatformNotificationRecipientsOperator(PlatformOperator):
    """Add recipients to a schedule and remove others; adding somebody twice changes nothing.

    Every recipient is checked before the first request; they are sent 1000 at a time. SLACK
    channels cannot be added. Returns the recipients afterwards, as the service describes them.

    :param notification_id: the schedule
    :param add: who shall get it: `{"type": "USER", "user_id" | "email"}` or
        `{"type": "EMBED_USER", "embed_tenant_name", "external_id"}`, an embed user also with
        `groups`, `user_attributes`, `security_context`
    :param remove: who shall not: `{"type", "id"}`, an embed user also with `embed_tenant_name`
    :param max_items: how many recipients to return at most; the log says when there are more
    :param deployment_id: default: the connection's
    """

    template_fields: Sequence[str] = (
        "notification_id",
        "add",
        "remove",
        "max_items",
        "deployment_id",
        "platform_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"add": "json", "remove": "json"}
    checks: ClassVar[dict[str, Any]] = {
        **arguments.named(arguments.identifier, "notification_id"),
        **arguments.named(_recipients, "add", "remove"),
        **arguments.named(arguments.whole_number, "max_items", minimum=1),
        **arguments.named(arguments.optional_id, "deployment_id"),
    }

    def __init__(
        self,
        *,
        notification_id: int | str,
        add: Sequence[Any] | str | None = None,
        remove: Sequence[Any] | str | None = None,
        max_items: int | str = MAX_ITEMS,
        deployment_id: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.notification_id = notification_id
        self.add = add
        self.remove = remove
        self.max_items = max_items
        self.deployment_id = deployment_id
        self.check_known_arguments()

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Add and remove recipients, and return who is left."""
        with self.opened(context) as hook:
            self._change(hook)
            listed = hook.list_notification_recipients(
                self.notification_id, deployment_id=self.deployment_id
            )
            return capped(listed, int(self.max_items), self.log)

    def _change(self, hook: PlatformHook) -> None:
        if self.add:
            done = hook.add_notification_recipients(
                self.notification_id, self.add, deployment_id=self.deployment_id
            )
            self.log.info(
                "Recipients of notification %s: %s new, %s changed, %s there already",
                self.notification_id,
                len(done.created_recipients or []),
                len(done.updated_recipients or []),
                len(done.unchanged_recipients or []),
            )
        if self.remove:
            hook.remove_notification_recipients(
                self.notification_id, self.remove, deployment_id=self.deployment_id
            )
            self.log.info(
                "Recipients of notification %s: %s removed", self.notification_id, len(self.remove)
            )


def _describe(notification: Notification) -> str:
    from airflow_provider_platform.client.errors import quote_service

    when = notification.human_readable_schedule or notification.cron_expression
    return quote_service(f"dashboard {notification.dashboard_id}, {when}, {notification.timezone}")
