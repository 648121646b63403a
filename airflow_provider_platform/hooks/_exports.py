"""The hook's methods for dashboard exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from airflow_provider_platform.client.exports import (
        DashboardExportJobResponse,
        DashboardExportStatusResponse,
    )


class ExportMethods(ManagementMethods):
    """Dashboard exports: start, status, download."""

    def start_dashboard_export(
        self,
        *,
        format: Literal["png", "pdf"],
        dashboard_id: int | None = None,
        dashboard_public_id: str | None = None,
        filters: Sequence[Any] | None = None,
        time_grains: Sequence[Any] | None = None,
        member_switchers: Sequence[Any] | None = None,
        render_as: Any = None,
        layout: Literal["screenshot", "print"] | None = None,
        deployment_id: int | str | None = None,
    ) -> DashboardExportJobResponse:
        """Start rendering a published dashboard, exactly one of `dashboard_id` and
        `dashboard_public_id`. Job and file are gone at `expires_at`, five minutes later.

        Not repeated when its outcome is unknown. Raises PlatformPermissionError where downloads
        are restricted, PlatformNotFoundError, PlatformRateLimitError.
        """
        from airflow_provider_platform.client.exports import (
            START_DASHBOARD_EXPORT,
            StartDashboardExportInput,
        )

        return self.run(
            START_DASHBOARD_EXPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=StartDashboardExportInput.build(
                    format=format,
                    dashboard_id=dashboard_id,
                    dashboard_public_id=dashboard_public_id,
                    filters=filters,
                    time_grains=time_grains,
                    member_switchers=member_switchers,
                    render_as=render_as,
                    layout=layout,
                ),
            )
        )

    def get_dashboard_export(
        self, job_id: str, *, deployment_id: int | str | None = None
    ) -> DashboardExportStatusResponse:
        """Where an export is: `pending`, `processing`, `completed` or `failed`.

        Raises PlatformNotFoundError for a job that is gone or of another credential.
        """
        from airflow_provider_platform.client.exports import GET_DASHBOARD_EXPORT

        return self.run(
            GET_DASHBOARD_EXPORT(
                deployment_id=self.resolve_deployment_id(deployment_id), job_id=job_id
            )
        )

    def download_dashboard_export(
        self, job_id: str, *, filename: str | None = None, deployment_id: int | str | None = None
    ) -> bytes:
        """The file of a completed export. Raises PlatformConflictError while it is rendered,
        PlatformUnprocessableError where that failed, PlatformNotFoundError where it is gone."""
        from airflow_provider_platform.client.exports import (
            DOWNLOAD_DASHBOARD_EXPORT,
            DownloadQuery,
        )

        return self.run(
            DOWNLOAD_DASHBOARD_EXPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                job_id=job_id,
                query=DownloadQuery.build(filename=filename),
            )
        )
