"""The hook's methods for workbooks and their dashboards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from airflow_provider_platform.client.dashboards import Dashboard, WorkbookDashboard
    from airflow_provider_platform.client.embed_access import EmbedAccessResponse
    from airflow_provider_platform.client.reports import CanonicalFile
    from airflow_provider_platform.client.workbooks import Workbook


class WorkbookMethods(ManagementMethods):
    """Workbooks: list, get, create, update, duplicate, publish, delete."""

    def list_workbooks(
        self,
        *,
        folder_id: int | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[Workbook]:
        """Workbooks, of one folder or all."""
        from airflow_provider_platform.client.paging import Listing
        from airflow_provider_platform.client.workbooks import LIST_WORKBOOKS, WorkbooksQuery

        return self.iterate(
            Listing.of(
                LIST_WORKBOOKS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=WorkbooksQuery.build(folder_id=folder_id, first=first),
            )
        )

    def get_workbook(
        self, workbook_id: int | str, *, deployment_id: int | str | None = None
    ) -> Workbook:
        """One workbook. Raises PlatformNotFoundError for an unknown id."""
        from airflow_provider_platform.client.workbooks import GET_WORKBOOK

        return self.run(
            GET_WORKBOOK(
                deployment_id=self.resolve_deployment_id(deployment_id), workbook_id=workbook_id
            )
        )

    def create_workbook(
        self,
        *,
        name: str | None = None,
        folder_id: int | None = None,
        meta: dict[str, Any] | None = None,
        deployment_id: int | str | None = None,
    ) -> Workbook:
        """Create a workbook; not repeated when its outcome is unknown."""
        from airflow_provider_platform.client.workbooks import CREATE_WORKBOOK, CreateWorkbookInput

        return self.run(
            CREATE_WORKBOOK(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CreateWorkbookInput.build(name=name, folder_id=folder_id, meta=meta),
            )
        )

    def upsert_workbook(
        self,
        slug: str,
        *,
        name: str | None = None,
        folder_id: int | None = None,
        meta: dict[str, Any] | None = None,
        deployment_id: int | str | None = None,
    ) -> Workbook:
        """Create the workbook of this slug or update it; `meta` is merged. Raises
        PlatformConflictError while another writer is at work."""
        from airflow_provider_platform.client.workbooks import UPSERT_WORKBOOK, CreateWorkbookInput

        return self.run(
            UPSERT_WORKBOOK(
                deployment_id=self.resolve_deployment_id(deployment_id),
                slug=slug,
                body=CreateWorkbookInput.build(name=name, folder_id=folder_id, meta=meta),
            )
        )

    def update_workbook(
        self,
        workbook_id: int | str,
        *,
        name: str | None = None,
        folder_id: int | None = None,
        meta: dict[str, Any] | None = None,
        slug: str | None = None,
        slug_takeover: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> None:
        """Change the given parts of a workbook; `slug_takeover` takes the slug from the workbook
        that has it. The service answers nothing: see `get_workbook`. To move it to the root see
        `move_workspace_object`. Raises PlatformConflictError for a slug that is taken."""
        from airflow_provider_platform.client.workbooks import UPDATE_WORKBOOK, UpdateWorkbookInput

        self.run(
            UPDATE_WORKBOOK(
                deployment_id=self.resolve_deployment_id(deployment_id),
                workbook_id=workbook_id,
                body=UpdateWorkbookInput.build(
                    name=name,
                    folder_id=folder_id,
                    meta=meta,
                    slug=slug,
                    slug_takeover=slug_takeover,
                ),
            )
        )

    def delete_workbook(
        self, workbook_id: int | str, *, deployment_id: int | str | None = None
    ) -> None:
        """Delete a workbook."""
        from airflow_provider_platform.client.workbooks import DELETE_WORKBOOK

        self.run(
            DELETE_WORKBOOK(
                deployment_id=self.resolve_deployment_id(deployment_id), workbook_id=workbook_id
            )
        )

    def duplicate_workbook(
        self,
        workbook_id: int | str,
        *,
        shared: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> Workbook:
        """Clone a workbook, from the shared workspace with `shared`; returns the clone.

        Not repeated when its outcome is unknown. Raises PlatformBadRequestError at the limit of
        workbooks, and for a shared clone without a published dashboard.
        """
        from airflow_provider_platform.client.workbooks import (
            DUPLICATE_WORKBOOK,
            DuplicateWorkbookInput,
        )

        return self.run(
            DUPLICATE_WORKBOOK(
                deployment_id=self.resolve_deployment_id(deployment_id),
                workbook_id=workbook_id,
                body=DuplicateWorkbookInput.build(shared=shared),
            )
        )

    def publish_workbook(
        self,
        workbook_id: int | str,
        *,
        title: str | None = None,
        description: str | None = None,
        allow_embed: bool | None = None,
        config: Any = None,
        dashboard_id: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Dashboard:
        """Publish a workbook's dashboard: `config` (a `DashboardConfigInput` or its object), or
        the saved draft. Returns the published dashboard."""
        from airflow_provider_platform.client.workbooks import (
            PUBLISH_DASHBOARD,
            PublishDashboardInput,
        )

        body = PublishDashboardInput.build(
            workbook_id=workbook_id,
            title=title,
            description=description,
            allow_embed=allow_embed,
            config=config,
            dashboard_id=dashboard_id,
        )
        deployment = self.resolve_deployment_id(deployment_id)
        return self.run(
            PUBLISH_DASHBOARD(deployment_id=deployment, workbook_id=workbook_id, body=body)
        )

    def update_workbook_dashboard(
        self,
        workbook_id: int | str,
        *,
        dashboard_draft: Any,
        deployment_id: int | str | None = None,
    ) -> WorkbookDashboard:
        """Save a draft of the dashboard, a `DashboardConfigDraftInput` or its object."""
        from airflow_provider_platform.client.workbooks import (
            UPDATE_WORKBOOK_DASHBOARD,
            WorkbookDashboardInput,
        )

        return self.run(
            UPDATE_WORKBOOK_DASHBOARD(
                deployment_id=self.resolve_deployment_id(deployment_id),
                workbook_id=workbook_id,
                body=WorkbookDashboardInput.build(dashboard_draft=dashboard_draft),
            )
        )

    def attach_ai_widget_thread(
        self,
        workbook_id: int | str,
        *,
        widget_id: str,
        thread_id: str,
        checksum: str | None = None,
        deployment_id: int | str | None = None,
    ) -> Dashboard:
        """Attach an AI thread to a widget of the published dashboard; returns the dashboard."""
        from airflow_provider_platform.client.workbooks import (
            ATTACH_AI_WIDGET_THREAD,
            UpdatePublishedAiWidgetThreadInput,
        )

        return self.run(
            ATTACH_AI_WIDGET_THREAD(
                deployment_id=self.resolve_deployment_id(deployment_id),
                workbook_id=workbook_id,
                body=UpdatePublishedAiWidgetThreadInput.build(
                    widget_id=widget_id, thread_id=thread_id, checksum=checksum
                ),
            )
        )

    def get_dashboard_file(
        self, workbook_id: int | str, *, deployment_id: int | str | None = None
    ) -> CanonicalFile:
        """The dashboard's draft as canonical JSON text."""
        from airflow_provider_platform.client.workbooks import GET_DASHBOARD_FILE

        return self.run(
            GET_DASHBOARD_FILE(
                deployment_id=self.resolve_deployment_id(deployment_id), workbook_id=workbook_id
            )
        )

    def get_embed_access(
        self, workbook_id: int | str, *, deployment_id: int | str | None = None
    ) -> EmbedAccessResponse:
        """Who may see the workbook's dashboard embedded."""
        from airflow_provider_platform.client.embed_access import GET_EMBED_ACCESS

        return self.run(
            GET_EMBED_ACCESS(
                deployment_id=self.resolve_deployment_id(deployment_id), workbook_id=workbook_id
            )
        )

    def update_embed_access(
        self,
        workbook_id: int | str,
        *,
        allow_embed: bool | None = None,
        action: Literal["read", "none"] | None = None,
        embed_tenant_name: str | None = None,
        all_embed_users: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> EmbedAccessResponse:
        """Allow embedding, or change what an embed tenant or all embed users may do."""
        from airflow_provider_platform.client.embed_access import (
            UPDATE_EMBED_ACCESS,
            UpdateEmbedAccessInput,
        )

        return self.run(
            UPDATE_EMBED_ACCESS(
                deployment_id=self.resolve_deployment_id(deployment_id),
                workbook_id=workbook_id,
                body=UpdateEmbedAccessInput.build(
                    allow_embed=allow_embed,
                    action=action,
                    embed_tenant_name=embed_tenant_name,
                    all_embed_users=all_embed_users,
                ),
            )
        )
