"""The hook's methods for what DAGs ask of the management API most; `run` takes every operation.

Each is one line over its declaration: `fields` are those of the model that its docstring names, in
snake_case, and None counts as absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from airflow_provider_platform.client.management.account.app_config import AppConfigResponse
    from airflow_provider_platform.client.management.account.oauth import UserOAuthToken
    from airflow_provider_platform.client.management.dbt_sync.operations import DbtSyncResponse
    from airflow_provider_platform.client.management.embed.sessions import GenerateSessionResponse
    from airflow_provider_platform.client.management.notifications.operations import Notification
    from airflow_provider_platform.client.management.notifications.recipients import (
        NotificationRecipient,
        NotificationRecipientsMutationResponse,
    )
    from airflow_provider_platform.client.management.reports.operations import Report
    from airflow_provider_platform.client.management.workbooks.dashboards import Dashboard
    from airflow_provider_platform.client.management.workbooks.operations import Workbook
    from airflow_provider_platform.client.management.workspace.folders import Folder
    from airflow_provider_platform.client.operations.operation import DeploymentId, Operation
    from airflow_provider_platform.client.operations.paging import Page
    from airflow_provider_platform.client.operations.program import Program

    Id = int | str

T = TypeVar("T")


class ManagementMethods:
    """Methods of `PlatformHook` over declared operations and programs of the client.

    They raise PlatformInputError for an unknown field or a bad value before anything is sent, and
    PlatformError for what the service says. The client's modules are imported when a method is
    called. `deployment_id` is the connection's where it is not given.
    """

    if TYPE_CHECKING:

        def run(self, work: Operation[T] | Program[T]) -> T:
            """Run an operation or a program of the client, and return its typed answer."""

        def resolve_deployment_id(self, deployment_id: DeploymentId = None) -> int:
            """The given deployment, else the connection's. Raises PlatformInputError."""

    def iterate(self, operation: Operation[Page[T]]) -> Iterator[T]:
        """The items of a list, page by page: a page is asked for when its first item is wanted.

        Raises PlatformError; PlatformProtocolError where the list cannot be read to its end.
        """
        from airflow_provider_platform.client.operations.paging import PageWalk

        walk = PageWalk(operation)
        while (page := walk.operation) is not None:
            yield from walk.take(self.run(page))

    def get_app_config(self) -> AppConfigResponse:
        """The app configuration: theme, titles, embedding."""
        from airflow_provider_platform.client.management.account.app_config import get_app_config

        return self.run(get_app_config())

    def list_user_oauth_tokens(self) -> Iterator[UserOAuthToken]:
        """The tokens that users have given for OAuth integrations; `status` is free text."""
        from airflow_provider_platform.client.management.account.oauth import list_user_oauth_tokens

        return self.iterate(list_user_oauth_tokens())

    def start_dbt_sync(
        self,
        *,
        branch_name: str | None = None,
        deployment_id: DeploymentId = None,
        **fields: Any,
    ) -> DbtSyncResponse:
        """Start a dbt sync; returns its id and the platform's branch that it writes to. Further
        `fields` of `StartDbtSyncInput`: `ref`, `source`, `manifest`, `output`.

        Every call starts a sync and, with `output` `branch` (the default), makes a branch: it is
        never repeated when its outcome is unknown.
        """
        from airflow_provider_platform.client.management.dbt_sync.operations import (
            StartDbtSyncInput,
            start_dbt_sync,
        )

        body = StartDbtSyncInput.build(branch_name=branch_name, **fields)
        return self.run(start_dbt_sync(deployment_id=deployment_id, body=body))

    def list_reports(
        self, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Iterator[Report]:
        """Reports: all, or those that the `fields` of `ReportsQuery` say; `first` is the page size,
        which `sort_by` `lastViewedAt` has not."""
        from airflow_provider_platform.client.management.reports.operations import (
            ReportsQuery,
            list_reports,
        )

        query = ReportsQuery.build(**fields)
        return self.iterate(list_reports(deployment_id=deployment_id, query=query))

    def connect_report(
        self,
        report_id: Id,
        *,
        external_workbook_id: str,
        result_location: str,
        deployment_id: DeploymentId = None,
        **fields: Any,
    ) -> Report:
        """Record that a report lies in a spreadsheet of one's own, from `result_location` (as
        `Sheet1!A1`) to `end_result_cell`; this and the other `fields` are those of
        `ConnectReportToWorkbookInput`.

        It records an address and writes no cells; read access to the report is enough. Returns
        the report with its placements.
        """
        from airflow_provider_platform.client.management.reports.operations import connect_report
        from airflow_provider_platform.client.management.reports.placements import (
            ConnectReportToWorkbookInput,
        )

        body = ConnectReportToWorkbookInput.build(
            external_workbook_id=external_workbook_id, result_location=result_location, **fields
        )
        return self.run(connect_report(report_id=report_id, deployment_id=deployment_id, body=body))

    def list_folders(
        self, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Iterator[Folder]:
        """The folders right below a folder (`parent_id`), or below the root; `fields` of
        `FoldersQuery`."""
        from airflow_provider_platform.client.management.workspace.folders import (
            FoldersQuery,
            list_folders,
        )

        query = FoldersQuery.build(**fields)
        return self.iterate(list_folders(deployment_id=deployment_id, query=query))

    def get_workbook(self, workbook_id: Id, *, deployment_id: DeploymentId = None) -> Workbook:
        """One workbook. Raises PlatformNotFoundError for an unknown id."""
        from airflow_provider_platform.client.management.workbooks.operations import get_workbook

        return self.run(get_workbook(workbook_id=workbook_id, deployment_id=deployment_id))

    def update_workbook(
        self, workbook_id: Id, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> None:
        """Change the given `fields` of `UpdateWorkbookInput`; `slug_takeover` takes the slug from
        the workbook that has it. The service answers nothing: see `get_workbook`. Raises
        PlatformConflictError for a slug that is taken."""
        from airflow_provider_platform.client.management.workbooks.operations import (
            UpdateWorkbookInput,
            update_workbook,
        )

        body = UpdateWorkbookInput.build(**fields)
        self.run(update_workbook(workbook_id=workbook_id, deployment_id=deployment_id, body=body))

    def duplicate_workbook(
        self,
        workbook_id: Id,
        *,
        shared: bool | None = None,
        deployment_id: DeploymentId = None,
    ) -> Workbook:
        """Clone a workbook, from the shared workspace with `shared`; returns the clone.

        Not repeated when its outcome is unknown. Raises PlatformBadRequestError at the limit of
        workbooks, and for a shared clone without a published dashboard.
        """
        from airflow_provider_platform.client.management.workbooks.operations import (
            DuplicateWorkbookInput,
            duplicate_workbook,
        )

        body = DuplicateWorkbookInput.build(shared=shared)
        return self.run(
            duplicate_workbook(workbook_id=workbook_id, deployment_id=deployment_id, body=body)
        )

    def publish_workbook(
        self, workbook_id: Id, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Dashboard:
        """Publish a workbook's dashboard with the `fields` of `PublishDashboardInput`: `config` (a
        `DashboardConfigInput` or its object), or the saved draft. Returns the published
        dashboard."""
        from airflow_provider_platform.client.management.workbooks.operations import (
            PublishDashboardInput,
            publish_workbook,
        )

        body = PublishDashboardInput.build(workbook_id=workbook_id, **fields)
        return self.run(
            publish_workbook(workbook_id=workbook_id, deployment_id=deployment_id, body=body)
        )

    def attach_ai_widget_thread(
        self, workbook_id: Id, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Dashboard:
        """Attach an AI thread to a widget of the published dashboard: `fields` of
        `UpdatePublishedAiWidgetThreadInput`, `widget_id` and `thread_id`. Returns the dashboard."""
        from airflow_provider_platform.client.management.workbooks.operations import (
            UpdatePublishedAiWidgetThreadInput,
            attach_ai_widget_thread,
        )

        body = UpdatePublishedAiWidgetThreadInput.build(**fields)
        return self.run(
            attach_ai_widget_thread(workbook_id=workbook_id, deployment_id=deployment_id, body=body)
        )

    def list_notifications(
        self, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Iterator[Notification]:
        """Schedules, newest first: all, those of a dashboard, or those with a recipient, by the
        `fields` of `NotificationsQuery`. Raises PlatformPermissionError where the credential is
        not an administrator's."""
        from airflow_provider_platform.client.management.notifications.operations import (
            NotificationsQuery,
            list_notifications,
        )

        query = NotificationsQuery.build(**fields)
        return self.iterate(list_notifications(deployment_id=deployment_id, query=query))

    def get_notification(
        self, notification_id: Id, *, deployment_id: DeploymentId = None
    ) -> Notification:
        """One schedule. Raises PlatformNotFoundError for an unknown id."""
        from airflow_provider_platform.client.management.notifications.operations import (
            get_notification,
        )

        return self.run(
            get_notification(notification_id=notification_id, deployment_id=deployment_id)
        )

    def create_notification(
        self, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Notification:
        """Create a schedule without recipients from the `fields` of `CreateNotificationInput`:
        `schedule_type` and exactly one of `dashboard_id` and `dashboard_public_id` at least.

        `hour` is 0-23, `day_of_week` 0-6 from Sunday, `day_of_month` 1-31, `custom_cron` goes
        with CUSTOM, `timezone` is an IANA name (UTC when not given). Two equal calls make two
        schedules: it is never repeated when its outcome is unknown. Raises PlatformNotFoundError
        for an unknown dashboard, PlatformPermissionError.
        """
        from airflow_provider_platform.client.management.notifications.operations import (
            CreateNotificationInput,
            create_notification,
        )

        body = CreateNotificationInput.build(**fields)
        return self.run(create_notification(deployment_id=deployment_id, body=body))

    def update_notification(
        self, notification_id: Id, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> Notification:
        """Change the given `fields` of `UpdateNotificationInput`; filters, time grains and member
        switchers replace the stored ones, recipients stay. Raises as `create_notification`."""
        from airflow_provider_platform.client.management.notifications.operations import (
            UpdateNotificationInput,
            update_notification,
        )

        body = UpdateNotificationInput.build(**fields)
        return self.run(
            update_notification(
                notification_id=notification_id, deployment_id=deployment_id, body=body
            )
        )

    def delete_notification(
        self, notification_id: Id, *, deployment_id: DeploymentId = None
    ) -> None:
        """Delete a schedule and its recipients."""
        from airflow_provider_platform.client.management.notifications.operations import (
            delete_notification,
        )

        self.run(delete_notification(notification_id=notification_id, deployment_id=deployment_id))

    def list_notification_recipients(
        self,
        notification_id: Id,
        *,
        first: int | None = None,
        deployment_id: DeploymentId = None,
    ) -> Iterator[NotificationRecipient]:
        """Who gets a notification."""
        from airflow_provider_platform.client.management.notifications.recipients import (
            list_notification_recipients,
        )
        from airflow_provider_platform.client.operations.paging import PageQuery

        return self.iterate(
            list_notification_recipients(
                notification_id=notification_id,
                deployment_id=deployment_id,
                query=PageQuery.build(first=first),
            )
        )

    def add_notification_recipients(
        self,
        notification_id: Id,
        recipients: Sequence[Any],
        *,
        deployment_id: DeploymentId = None,
    ) -> NotificationRecipientsMutationResponse:
        """Add recipients, as objects or as `NotificationRecipientInput`: a USER by `user_id` or
        `email`, an EMBED_USER by `embed_tenant_name` and `external_id`.

        Sent in batches of 1000, after all were checked; adding somebody twice changes nothing.
        Returns who was created, updated, unchanged. Raises PlatformBadRequestError for a batch
        with somebody who has no e-mail address.
        """
        from airflow_provider_platform.client.management.notifications.recipients import (
            add_recipients,
        )

        return self.run(
            add_recipients(self.resolve_deployment_id(deployment_id), notification_id, recipients)
        )

    def remove_notification_recipients(
        self,
        notification_id: Id,
        recipients: Sequence[Any],
        *,
        deployment_id: DeploymentId = None,
    ) -> None:
        """Remove recipients, as objects or as `RemoveNotificationRecipientInput` (`type`, `id`, for
        an EMBED_USER `embed_tenant_name`), in batches of 1000; who is none already is fine."""
        from airflow_provider_platform.client.management.notifications.recipients import (
            remove_recipients,
        )

        deployment = self.resolve_deployment_id(deployment_id)
        self.run(remove_recipients(deployment, notification_id, recipients))

    def delete_embed_tenant(self, embed_tenant_name: str) -> None:
        """Delete an embed tenant with its users, groups and content; gone already is fine where
        the service says so. Raises PlatformInputError for a name not in lower case."""
        from airflow_provider_platform.client.management.embed.tenants import delete_embed_tenant

        self.run(delete_embed_tenant(embed_tenant_name))

    def generate_embed_session(
        self, *, deployment_id: DeploymentId = None, **fields: Any
    ) -> GenerateSessionResponse:
        """Generate a session for a user from the `fields` of `GenerateSession`; `session_id` is a
        SecretStr that can be redeemed once.

        `tenant_groups` and `tenant_group_definitions` are groups of the embed tenant and need
        `creator_mode` and `embed_tenant_name`. Not repeated when its outcome is unknown. Raises
        PlatformPermissionError where the credential is not an administrator's or embedding is off.
        """
        from airflow_provider_platform.client.management.embed.sessions import (
            GenerateSession,
            generate_embed_session,
        )

        body = GenerateSession.build(
            deployment_id=self.resolve_deployment_id(deployment_id), **fields
        )
        return self.run(generate_embed_session(body=body))
