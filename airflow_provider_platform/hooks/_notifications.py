"""The hook's methods for scheduled notifications and their recipients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from airflow_provider_platform.client.notification_recipients import (
        NotificationRecipient,
        NotificationRecipientsMutationResponse,
    )
    from airflow_provider_platform.client.notifications import (
        Notification,
        NotificationFormat,
        ScheduleType,
    )


class NotificationMethods(ManagementMethods):
    """Scheduled notifications of dashboards; for administrators."""

    def list_notifications(
        self,
        *,
        dashboard_id: int | None = None,
        dashboard_public_id: str | None = None,
        recipient_user_id: int | None = None,
        recipient_email: str | None = None,
        recipient_embed_tenant_name: str | None = None,
        recipient_external_id: str | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[Notification]:
        """Schedules, newest first: all, those of a dashboard, or those with a recipient.

        Raises PlatformInputError for filters that exclude each other, PlatformPermissionError
        where the credential is not an administrator's.
        """
        from airflow_provider_platform.client.notifications import (
            LIST_NOTIFICATIONS,
            NotificationsQuery,
        )
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_NOTIFICATIONS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=NotificationsQuery.build(
                    dashboard_id=dashboard_id,
                    dashboard_public_id=dashboard_public_id,
                    recipient_user_id=recipient_user_id,
                    recipient_email=recipient_email,
                    recipient_embed_tenant_name=recipient_embed_tenant_name,
                    recipient_external_id=recipient_external_id,
                    first=first,
                ),
            )
        )

    def get_notification(
        self, notification_id: int | str, *, deployment_id: int | str | None = None
    ) -> Notification:
        """One schedule. Raises PlatformNotFoundError for an unknown id."""
        from airflow_provider_platform.client.notifications import GET_NOTIFICATION

        return self.run(
            GET_NOTIFICATION(
                deployment_id=self.resolve_deployment_id(deployment_id), id=notification_id
            )
        )

    def create_notification(
        self,
        *,
        schedule_type: ScheduleType,
        dashboard_id: int | None = None,
        dashboard_public_id: str | None = None,
        minute: int | None = None,
        hour: int | None = None,
        day_of_week: int | None = None,
        day_of_month: int | None = None,
        custom_cron: str | None = None,
        timezone: str | None = None,
        notification_format: NotificationFormat | None = None,
        notification_enabled: bool | None = None,
        notification_ai_summary: bool | None = None,
        filters: Sequence[Any] | None = None,
        time_grains: Sequence[Any] | None = None,
        member_switchers: Sequence[Any] | None = None,
        deployment_id: int | str | None = None,
    ) -> Notification:
        """Create a schedule without recipients, for exactly one of `dashboard_id` and
        `dashboard_public_id`.

        `hour` is 0-23, `day_of_week` 0-6 from Sunday, `day_of_month` 1-31, `custom_cron` goes
        with CUSTOM, `timezone` is an IANA name (UTC when not given); `filters`, `time_grains` and
        `member_switchers` are what the dashboard runs with, as objects or their models. Two equal
        calls make two schedules: it is never repeated when its outcome is unknown. Raises
        PlatformInputError, PlatformNotFoundError for an unknown dashboard,
        PlatformPermissionError.
        """
        from airflow_provider_platform.client.notifications import (
            CREATE_NOTIFICATION,
            CreateNotificationInput,
        )

        return self.run(
            CREATE_NOTIFICATION(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CreateNotificationInput.build(
                    schedule_type=schedule_type,
                    dashboard_id=dashboard_id,
                    dashboard_public_id=dashboard_public_id,
                    minute=minute,
                    hour=hour,
                    day_of_week=day_of_week,
                    day_of_month=day_of_month,
                    custom_cron=custom_cron,
                    timezone=timezone,
                    notification_format=notification_format,
                    notification_enabled=notification_enabled,
                    notification_ai_summary=notification_ai_summary,
                    filters=filters,
                    time_grains=time_grains,
                    member_switchers=member_switchers,
                ),
            )
        )

    def update_notification(
        self,
        notification_id: int | str,
        *,
        schedule_type: ScheduleType | None = None,
        is_enabled: bool | None = None,
        minute: int | None = None,
        hour: int | None = None,
        day_of_week: int | None = None,
        day_of_month: int | None = None,
        custom_cron: str | None = None,
        timezone: str | None = None,
        notification_format: NotificationFormat | None = None,
        notification_enabled: bool | None = None,
        notification_ai_summary: bool | None = None,
        filters: Sequence[Any] | None = None,
        time_grains: Sequence[Any] | None = None,
        member_switchers: Sequence[Any] | None = None,
        deployment_id: int | str | None = None,
    ) -> Notification:
        """Change the given parts of a schedule; filters, time grains and member switchers replace
        the stored ones, recipients stay. Raises as `create_notification`."""
        from airflow_provider_platform.client.notifications import (
            UPDATE_NOTIFICATION,
            UpdateNotificationInput,
        )

        return self.run(
            UPDATE_NOTIFICATION(
                deployment_id=self.resolve_deployment_id(deployment_id),
                id=notification_id,
                body=UpdateNotificationInput.build(
                    schedule_type=schedule_type,
                    is_enabled=is_enabled,
                    minute=minute,
                    hour=hour,
                    day_of_week=day_of_week,
                    day_of_month=day_of_month,
                    custom_cron=custom_cron,
                    timezone=timezone,
                    notification_format=notification_format,
                    notification_enabled=notification_enabled,
                    notification_ai_summary=notification_ai_summary,
                    filters=filters,
                    time_grains=time_grains,
                    member_switchers=member_switchers,
                ),
            )
        )

    def delete_notification(
        self, notification_id: int | str, *, deployment_id: int | str | None = None
    ) -> None:
        """Delete a schedule and its recipients."""
        from airflow_provider_platform.client.notifications import DELETE_NOTIFICATION

        self.run(
            DELETE_NOTIFICATION(
                deployment_id=self.resolve_deployment_id(deployment_id), id=notification_id
            )
        )

    def list_notification_recipients(
        self,
        notification_id: int | str,
        *,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[NotificationRecipient]:
        """Who gets a notification."""
        from airflow_provider_platform.client.notification_recipients import LIST_RECIPIENTS
        from airflow_provider_platform.client.paging import Listing, PageQuery

        return self.iterate(
            Listing.of(
                LIST_RECIPIENTS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                id=notification_id,
                query=PageQuery.build(first=first),
            )
        )

    def add_notification_recipients(
        self,
        notification_id: int | str,
        recipients: Sequence[Any],
        *,
        deployment_id: int | str | None = None,
    ) -> NotificationRecipientsMutationResponse:
        """Add recipients, as objects or as `NotificationRecipientInput`: a USER by `user_id` or
        `email`, an EMBED_USER by `embed_tenant_name` and `external_id`.

        Sent in batches of 1000, after all were checked; adding somebody twice changes nothing.
        Returns who was created, updated, unchanged. Raises PlatformBadRequestError for a batch
        with somebody who has no e-mail address.
        """
        from airflow_provider_platform.client.notification_recipients import add_recipients

        deployment = self.resolve_deployment_id(deployment_id)
        return self.run(add_recipients(deployment, notification_id, recipients))

    def remove_notification_recipients(
        self,
        notification_id: int | str,
        recipients: Sequence[Any],
        *,
        deployment_id: int | str | None = None,
    ) -> None:
        """Remove recipients, as objects or as `RemoveNotificationRecipientInput` (`type`, `id`, for
        an EMBED_USER `embed_tenant_name`), in batches of 1000; who is none already is fine."""
        from airflow_provider_platform.client.notification_recipients import remove_recipients

        deployment = self.resolve_deployment_id(deployment_id)
        self.run(remove_recipients(deployment, notification_id, recipients))
