"""The hook's methods for dbt syncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from airflow_provider_platform.client.dbt_sync import (
        DbtGeneratedFileContent,
        DbtSyncCancelResponse,
        DbtSyncLogEntry,
        DbtSyncResponse,
        DbtSyncResultResponse,
        DbtSyncRun,
        DbtSyncStatusResponse,
        SyncStatus,
        SyncTrigger,
    )


class DbtSyncMethods(ManagementMethods):
    """dbt syncs: start, history, status, result, log, files, cancel."""

    def start_dbt_sync(
        self,
        *,
        branch_name: str | None = None,
        ref: str | None = None,
        source: Literal["git", "manifest"] | None = None,
        manifest: dict[str, Any] | None = None,
        output: Literal["branch", "files"] | None = None,
        deployment_id: int | str | None = None,
    ) -> DbtSyncResponse:
        """Start a dbt sync; returns its id and the platform's branch that it writes to.

        Every call starts a sync and, with `output` `branch` (the default), makes a branch: it is
        never repeated when its outcome is unknown. `ref` is a branch or tag of the dbt repository;
        `manifest` goes with `source` `manifest`. Raises PlatformInputError, PlatformApiError,
        PlatformTransportError.
        """
        from airflow_provider_platform.client.dbt_sync import START_DBT_SYNC, StartDbtSyncInput

        return self.run(
            START_DBT_SYNC(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=StartDbtSyncInput.build(
                    branch_name=branch_name,
                    ref=ref,
                    source=source,
                    manifest=manifest,
                    output=output,
                ),
            )
        )

    def list_dbt_syncs(
        self,
        *,
        status: SyncStatus | None = None,
        trigger: SyncTrigger | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[DbtSyncRun]:
        """The history of syncs; `first` is the page size. Tenants of the first release with dbt
        syncs answer PlatformNotFoundError or PlatformAddressError."""
        from airflow_provider_platform.client.dbt_sync import LIST_DBT_SYNCS, DbtSyncQuery
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_DBT_SYNCS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=DbtSyncQuery.build(status=status, trigger=trigger, first=first),
            )
        )

    def get_dbt_sync_status(
        self, sync_job_id: str, *, deployment_id: int | str | None = None
    ) -> DbtSyncStatusResponse:
        """Where a sync is: `status`, `progress`, and `error` of one that failed.

        Raises PlatformNotFoundError for an unknown sync, for a moment also right after its start.
        """
        from airflow_provider_platform.client.dbt_sync import GET_DBT_SYNC_STATUS

        return self.run(
            GET_DBT_SYNC_STATUS(
                deployment_id=self.resolve_deployment_id(deployment_id), sync_job_id=sync_job_id
            )
        )

    def get_dbt_sync_result(
        self, sync_job_id: str, *, deployment_id: int | str | None = None
    ) -> DbtSyncResultResponse:
        """What a completed sync wrote; not `is_ready` for a moment after its end.

        Raises PlatformNotFoundError where there is no result yet.
        """
        from airflow_provider_platform.client.dbt_sync import GET_DBT_SYNC_RESULT

        return self.run(
            GET_DBT_SYNC_RESULT(
                deployment_id=self.resolve_deployment_id(deployment_id), sync_job_id=sync_job_id
            )
        )

    def list_dbt_sync_logs(
        self, sync_job_id: str, *, deployment_id: int | str | None = None
    ) -> Iterator[DbtSyncLogEntry]:
        """The log of a sync. Raises PlatformProtocolError, after the lines that came, where the
        service holds more of them than it gives."""
        from airflow_provider_platform.client.dbt_sync import LIST_DBT_SYNC_LOGS
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_DBT_SYNC_LOGS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                sync_job_id=sync_job_id,
            )
        )

    def list_dbt_sync_files(
        self, sync_job_id: str, *, first: int | None = None, deployment_id: int | str | None = None
    ) -> Iterator[DbtGeneratedFileContent]:
        """The files of a sync started with `output` `files`, with their text; held for an hour.

        Raises PlatformNotFoundError afterwards, and for a sync that wrote to a branch.
        """
        from airflow_provider_platform.client.dbt_sync import LIST_DBT_SYNC_FILES
        from airflow_provider_platform.client.paging import Listing, PageQuery

        return self.iterate(
            Listing.of(
                LIST_DBT_SYNC_FILES,
                deployment_id=self.resolve_deployment_id(deployment_id),
                sync_job_id=sync_job_id,
                query=PageQuery.build(first=first),
            )
        )

    def cancel_dbt_sync(
        self, sync_job_id: str, *, deployment_id: int | str | None = None
    ) -> DbtSyncCancelResponse:
        """Cancel a running sync; returns what the service says to it."""
        from airflow_provider_platform.client.dbt_sync import CANCEL_DBT_SYNC

        return self.run(
            CANCEL_DBT_SYNC(
                deployment_id=self.resolve_deployment_id(deployment_id), sync_job_id=sync_job_id
            )
        )
