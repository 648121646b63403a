"""Operators for scheduled notifications: a dashboard sent as an image or a PDF.

All of them need an administrator's token.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client.errors import PlatformNotFoundError
from airflow_provider_platform.links import Links, NotificationLink
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.failures import ShortTraceback
from airflow_provider_platform.operators._base.operator import DeploymentOperator
from airflow_provider_platform.operators._lists import MAX_ITEMS, capped
from airflow_provider_platform.operators._notifications.creation import (
    PlatformCreateNotificationOperator,
)
from airflow_provider_platform.operators._notifications.filters import (
    NotificationFilterOperator,
)
from airflow_provider_platform.operators._notifications.schedule import (
    NotificationScheduleOperator,
    describe,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base.operator import Checks

__all__ = [
    "PlatformCreateNotificationOperator",
    "PlatformDeleteNotificationOperator",
    "PlatformListNotificationsOperator",
    "PlatformNotificationRecipientsOperator",
    "PlatformUpdateNotificationOperator",
]


def _recipients(name: str, value: Any) -> list[Any] | None:
    """Return the checked list of recipients. Each recipient is checked as soon as it is known."""
    found = arguments.sequence(name, value)
    if found and not arguments.is_template(found):
        from airflow_provider_platform.client.management.notifications.recipients import (
            to_add,
            to_remove,
        )

        with arguments.within(name):
            (to_add if name == "add" else to_remove)(found)
    return found


class NotificationOperator(DeploymentOperator):
    """Base of the operators on one scheduled notification.

    :param notification_id: the schedule's id
    """

    operator_extra_links = Links(NotificationLink)

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


class PlatformUpdateNotificationOperator(NotificationOperator, NotificationScheduleOperator):
    """Change the given parts of a schedule. The other parts and the recipients stay.

    Use it to change an existing schedule: to another hour, to another filter, or off during a
    migration.

    Returns the notification as the service describes it.

    :param is_enabled: switch the schedule on or off
    :param filters: replace the stored filters (as `time_grains` and `member_switchers` do); an
        empty list removes them
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
            updated = hook.update_notification(
                self.notification_id,
                deployment_id=self.deployment_id,
                **arguments.given(is_enabled=self.is_enabled),
                **self.schedule(),
            )
        self.log.info("Updated notification %s: %s", updated.id, describe(updated))
        return updated.to_json()


class PlatformDeleteNotificationOperator(NotificationOperator):
    """Delete a schedule and its recipients.

    If the schedule does not exist, the first try fails. A later try succeeds, because an earlier
    try may have deleted the schedule.

    Use it to remove a schedule that an earlier DAG run created. To pause a schedule, update it.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.validate_known_arguments()

    operator_extra_links = Links()  # to the platform, since the notification is gone

    def execute(self, context: Context) -> None:
        """Delete the schedule."""
        with ShortTraceback(), self.opened(context) as hook:
            try:
                hook.delete_notification(self.notification_id, deployment_id=self.deployment_id)
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

    :param dashboard_id: the dashboard that is sent; or
    :param dashboard_public_id: the public id of the dashboard
    :param recipient_user_id: a console user who is a recipient; or
    :param recipient_email: the e-mail address of that user; or
    :param recipient_embed_tenant_name: the tenant of an embed user who is a recipient, with
    :param recipient_external_id: that user's id
    :param max_items: the largest number of items to return; the log says if there are more
    """

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
            listed = hook.list_notifications(deployment_id=self.deployment_id, **self.filters())
            return capped(listed, int(self.max_items), self.log)


class PlatformNotificationRecipientsOperator(NotificationOperator):
    """Add recipients to a schedule and remove others. A recipient who is added twice is added once.

    Use it after the task that creates the schedule, to keep its recipients equal to a list of
    yours.

    Every recipient is checked before the first request. Recipients are sent in batches of 1000.
    SLACK channels cannot be added. Returns the recipients afterwards, as the service describes
    them.

    :param add: recipients to add: `{"type": "USER", "user_id" | "email"}` or `{"type":
        "EMBED_USER", "embed_tenant_name", "external_id"}`; an embed user can also have `groups`,
        `user_attributes`, `security_context`
    :param remove: recipients to remove: `{"type", "id"}`; an embed user also needs
        `embed_tenant_name`
    :param max_items: the largest number of recipients to return; the log says if there are more
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {"add": "json", "remove": "json"}
    checks: ClassVar[Checks] = {
        "add": _recipients,
        "remove": _recipients,
        "max_items": partial(arguments.whole_number, minimum=1),
    }

    def __init__(
        self,
        *,
        add: Sequence[Any] | str | None = None,
        remove: Sequence[Any] | str | None = None,
        max_items: int | str = MAX_ITEMS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.add = add
        self.remove = remove
        self.max_items = max_items
        self.validate_known_arguments()

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Add and remove recipients, and return the remaining recipients."""
        with ShortTraceback(), self.opened(context) as hook:
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
                "Recipients of notification %s: %s added, %s changed, %s unchanged",
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
