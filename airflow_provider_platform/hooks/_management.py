"""The hook's methods for what DAGs ask of the management API most; `run` takes every operation.

Each is one line over its declaration: `fields` are those of the model that its docstring names, in
snake_case. A field of a query that is None counts as absent; one of a body is sent as null where
the service takes null.
"""

# ruff: noqa: TC003 - typing.get_type_hints evaluates the annotations
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.hooks._calls import call
from airflow_provider_platform.hooks._lazy import lazy_module
from airflow_provider_platform.hooks._notifications import NotificationMethods

if TYPE_CHECKING:
    from airflow_provider_platform.client.management.account import app_config, oauth
    from airflow_provider_platform.client.management.dbt_sync import syncs as dbt_sync
    from airflow_provider_platform.client.management.embed import sessions as embed_sessions
    from airflow_provider_platform.client.management.embed import tenants as embed_tenants
    from airflow_provider_platform.client.management.reports import reports
    from airflow_provider_platform.client.management.workbooks import (
        dashboards,
        publish,
        workbooks,
    )
    from airflow_provider_platform.client.management.workspace import folders
    from airflow_provider_platform.client.operations import operation as operations
else:
    _ROOM = "airflow_provider_platform.client.management"
    app_config = lazy_module(f"{_ROOM}.account.app_config")
    dashboards = lazy_module(f"{_ROOM}.workbooks.dashboards")
    dbt_sync = lazy_module(f"{_ROOM}.dbt_sync.syncs")
    embed_sessions = lazy_module(f"{_ROOM}.embed.sessions")
    embed_tenants = lazy_module(f"{_ROOM}.embed.tenants")
    folders = lazy_module(f"{_ROOM}.workspace.folders")
    oauth = lazy_module(f"{_ROOM}.account.oauth")
    publish = lazy_module(f"{_ROOM}.workbooks.publish")
    reports = lazy_module(f"{_ROOM}.reports.reports")
    workbooks = lazy_module(f"{_ROOM}.workbooks.workbooks")
    operations = lazy_module("airflow_provider_platform.client.operations.operation")

Id = int | str


class ManagementMethods(NotificationMethods):
    """Methods of `PlatformHook` over declared operations and programs of the client.

    They raise PlatformInputError for an unknown field or a bad value before anything is sent, and
    PlatformError for what the service says. The client's modules are imported when a method is
    called. `deployment_id` is the connection's where it is not given.
    """

    def get_app_config(self) -> app_config.AppConfigResponse:
        """The app configuration: theme, titles, embedding."""
        return self.run(app_config.get_app_config())

    def list_user_oauth_tokens(self) -> Iterator[oauth.UserOAuthToken]:
        """The tokens that users have given for OAuth integrations; `status` is free text."""
        return self.iterate(oauth.list_user_oauth_tokens())

    def start_dbt_sync(
        self,
        *,
        branch_name: str | None = None,
        deployment_id: operations.DeploymentId = None,
        **fields: Any,
    ) -> dbt_sync.DbtSyncResponse:
        """Start a dbt sync; returns its id and the platform's branch that it writes to. Further
        `fields` of `StartDbtSyncInput`: `ref`, `source`, `manifest`, `output`.

        Every call starts a sync and, with `output` `branch` (the default), makes a branch: it is
        never repeated when its outcome is unknown.
        """
        if branch_name is not None:
            fields["branch_name"] = branch_name
        return self.run(call(dbt_sync.start_dbt_sync, fields, deployment_id=deployment_id))

    def list_reports(
        self, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> Iterator[reports.Report]:
        """Reports: all, or those that the `fields` of `ReportsQuery` say; `first` is the page size,
        which `sort_by` `lastViewedAt` has not."""
        return self.iterate(call(reports.list_reports, fields, deployment_id=deployment_id))

    def connect_report(
        self,
        report_id: Id,
        *,
        external_workbook_id: str,
        result_location: str,
        deployment_id: operations.DeploymentId = None,
        **fields: Any,
    ) -> reports.Report:
        """Record that a report lies in a spreadsheet of one's own, from `result_location` (as
        `Sheet1!A1`) to `end_result_cell`; this and the other `fields` are those of
        `ConnectReportToWorkbookInput`.

        It records an address and writes no cells; read access to the report is enough. Returns
        the report with its placements.
        """
        fields |= {"external_workbook_id": external_workbook_id, "result_location": result_location}
        ids = {"report_id": report_id, "deployment_id": deployment_id}
        return self.run(call(reports.connect_report, fields, **ids))

    def list_folders(
        self, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> Iterator[folders.Folder]:
        """The folders right below a folder (`parent_id`), or below the root; `fields` of
        `FoldersQuery`."""
        return self.iterate(call(folders.list_folders, fields, deployment_id=deployment_id))

    def get_workbook(
        self, workbook_id: Id, *, deployment_id: operations.DeploymentId = None
    ) -> workbooks.Workbook:
        """One workbook. Raises PlatformNotFoundError for an unknown id."""
        return self.run(
            workbooks.get_workbook(workbook_id=workbook_id, deployment_id=deployment_id)
        )

    def update_workbook(
        self, workbook_id: Id, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> None:
        """Change the given `fields` of `UpdateWorkbookInput`; `slug_takeover` takes the slug from
        the workbook that has it. The service answers nothing: see `get_workbook`. Raises
        PlatformConflictError for a slug that is taken."""
        ids = {"workbook_id": workbook_id, "deployment_id": deployment_id}
        self.run(call(workbooks.update_workbook, fields, **ids))

    def duplicate_workbook(
        self,
        workbook_id: Id,
        *,
        shared: bool | None = None,
        deployment_id: operations.DeploymentId = None,
    ) -> workbooks.Workbook:
        """Clone a workbook, from the shared workspace with `shared`; returns the clone.

        Not repeated when its outcome is unknown. Raises PlatformBadRequestError at the limit of
        workbooks, and for a shared clone without a published dashboard.
        """
        ids = {"workbook_id": workbook_id, "deployment_id": deployment_id}
        fields = {} if shared is None else {"shared": shared}
        return self.run(call(workbooks.duplicate_workbook, fields, **ids))

    def publish_workbook(
        self, workbook_id: Id, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> dashboards.Dashboard:
        """Publish a workbook's dashboard with the `fields` of `PublishDashboardInput`: `config` (a
        `DashboardConfigInput` or its object), or the saved draft; a tenant before v0.16.0 is sent
        the saved draft as `config`. Returns the published dashboard.

        Raises PlatformInputError for a workbook without a saved draft, DashboardReviewRequiredError
        for a dashboard that only an approved review publishes.
        """
        body = workbooks.PublishDashboardInput.of(fields)
        return self.run(publish.publish(workbook_id, body, deployment_id=deployment_id))

    def attach_ai_widget_thread(
        self, workbook_id: Id, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> dashboards.Dashboard:
        """Attach an AI thread to a widget of the published dashboard: `fields` of
        `UpdatePublishedAiWidgetThreadInput`, `widget_id` and `thread_id`. Returns the dashboard."""
        ids = {"workbook_id": workbook_id, "deployment_id": deployment_id}
        return self.run(call(workbooks.attach_ai_widget_thread, fields, **ids))

    def delete_embed_tenant(self, embed_tenant_name: str) -> None:
        """Delete an embed tenant with its users, groups and content; gone already is fine where
        the service says so. Raises PlatformInputError for a name not in lower case."""
        self.run(embed_tenants.delete_embed_tenant(embed_tenant_name))

    def generate_embed_session(
        self, *, deployment_id: operations.DeploymentId = None, **fields: Any
    ) -> embed_sessions.GenerateSessionResponse:
        """Generate a session for a user from the `fields` of `GenerateSession`; `session_id` is a
        SecretStr that can be redeemed once.

        `tenant_groups` and `tenant_group_definitions` are groups of the embed tenant and need
        `creator_mode` and `embed_tenant_name`. Not repeated when its outcome is unknown. Raises
        PlatformPermissionError where the credential is not an administrator's or embedding is off.
        """
        fields["deployment_id"] = deployment_id
        return self.run(call(embed_sessions.generate_embed_session, fields))
