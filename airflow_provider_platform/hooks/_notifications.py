"""The hook's methods for scheduled notifications."""

# ruff: noqa: TC003 - typing.get_type_hints evaluates the annotations
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.hooks._calls import Calls, call
from airflow_provider_platform.hooks._lazy import lazy_module

if TYPE_CHECKING:
    from airflow_provider_platform.client.management.notifications import (
        notifications,
    )
    from airflow_provider_platform.client.management.notifications import (
        recipients as notification_recipients,
    )
    from airflow_provider_platform.client.operations import operation as operations
else:
    _ROOM = "airflow_provider_platform.client.management.notifications"
    notifications = lazy_module(f"{_ROOM}.notifications")
    notification_recipients = lazy_module(f"{_ROOM}.recipients")
    operations = lazy_module("airflow_provider_platform.client.operations.operation")

Id = int | str


class NotificationMethods(Calls):
    """Schedules and their recipients; all need an administrator's token."""

    def list_notifications(
        self, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> Iterator[notifications.Notification]:
        """Schedules, newest first: all, those of a dashboard, or those with a recipient, by the
        `fields` of `NotificationsQuery`. Raises PlatformPermissionError where the credential is
        not an administrator's."""
        return self.iterate(
            call(notifications.list_notifications, fields, deployment_id=deployment_id)
        )

    def get_notification(
        self, notification_id: Id, *, deployment_id: operations.DeploymentId = None
    ) -> notifications.Notification:
        """One schedule. Raises PlatformNotFoundError for an unknown id."""
        return self.run(
            notifications.get_notification(
                notification_id=notification_id, deployment_id=deployment_id
            )
        )

    def create_notification(
        self, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> notifications.Notification:
        """Create a schedule without recipients from the `fields` of `CreateNotificationInput`:
        `schedule_type` and exactly one of `dashboard_id` and `dashboard_public_id` at least.

        `hour` is 0-23, `day_of_week` 0-6 from Sunday, `day_of_month` 1-31, `custom_cron` goes
        with CUSTOM, `timezone` is an IANA name (UTC when not given). Two equal calls make two
        schedules: it is never repeated when its outcome is unknown. Raises PlatformNotFoundError
        for an unknown dashboard, PlatformPermissionError.
        """
        return self.run(
            call(notifications.create_notification, fields, deployment_id=deployment_id)
        )

    def update_notification(
        self, notification_id: Id, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> notifications.Notification:
        """Change the given `fields` of `UpdateNotificationInput`; filters, time grains and member
        switchers replace the stored ones, recipients stay. Raises as `create_notification`."""
        ids = {"notification_id": notification_id, "deployment_id": deployment_id}
        return self.run(call(notifications.update_notification, fields, **ids))

    def delete_notification(
        self, notification_id: Id, *, deployment_id: operations.DeploymentId = None
    ) -> None:
        """Delete a schedule and its recipients."""
        self.run(
            notifications.delete_notification(
                notification_id=notification_id, deployment_id=deployment_id
            )
        )

    def list_notification_recipients(
        self,
        notification_id: Id,
        *,
        first: int | None = None,
        deployment_id: operations.DeploymentId = None,
    ) -> Iterator[notification_recipients.NotificationRecipient]:
        """Who gets a notification."""
        ids = {"notification_id": notification_id, "deployment_id": deployment_id}
        listing = notification_recipients.list_notification_recipients
        return self.iterate(call(listing, {"first": first}, **ids))

    def add_notification_recipients(
        self,
        notification_id: Id,
        recipients: Sequence[Any],
        *,
        deployment_id: operations.DeploymentId = None,
    ) -> notification_recipients.NotificationRecipientsMutationResponse:
        """Add recipients, as objects or as `NotificationRecipientInput`: a USER by `user_id` or
        `email`, an EMBED_USER by `embed_tenant_name` and `external_id`.

        Sent in batches of 1000, after all were checked; adding somebody twice changes nothing.
        Returns who was created, updated, unchanged. Raises PlatformBadRequestError for a batch
        with somebody who has no e-mail address.
        """
        return self.run(
            notification_recipients.add_recipients(
                self.resolve_deployment_id(deployment_id), notification_id, recipients
            )
        )

    def remove_notification_recipients(
        self,
        notification_id: Id,
        recipients: Sequence[Any],
        *,
        deployment_id: operations.DeploymentId = None,
    ) -> None:
        """Remove recipients, as objects or as `RemoveNotificationRecipientInput` (`type`, `id`, for
        an EMBED_USER `embed_tenant_name`), in batches of 1000; who is none already is fine."""
        deployment = self.resolve_deployment_id(deployment_id)
        self.run(notification_recipients.remove_recipients(deployment, notification_id, recipients))
