"""The hook's methods for reports and their places in spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from airflow_provider_platform.client.report_placements import ExternalDocumentPlacement
    from airflow_provider_platform.client.reports import (
        CanonicalFile,
        Report,
        ReportSortBy,
        SortDirection,
    )


class ReportMethods(ManagementMethods):
    """Reports: list, get, create, update, refresh, delete, connect to spreadsheets."""

    def list_reports(
        self,
        *,
        search: str | None = None,
        folder_id: int | None = None,
        workbook_id: int | None = None,
        external_workbook_id: str | None = None,
        sort_by: ReportSortBy | None = None,
        sort_direction: SortDirection | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[Report]:
        """Reports, page by page; `first` is the page size, which `sort_by` `lastViewedAt` has not.

        Raises PlatformInputError, PlatformApiError, PlatformProtocolError.
        """
        from airflow_provider_platform.client.paging import Listing
        from airflow_provider_platform.client.reports import LIST_REPORTS, ReportsQuery

        return self.iterate(
            Listing.of(
                LIST_REPORTS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=ReportsQuery.build(
                    search=search,
                    folder_id=folder_id,
                    workbook_id=workbook_id,
                    external_workbook_id=external_workbook_id,
                    sort_by=sort_by,
                    sort_direction=sort_direction,
                    first=first,
                ),
            )
        )

    def get_report(self, report_id: int | str, *, deployment_id: int | str | None = None) -> Report:
        """One report. Raises PlatformNotFoundError for an unknown id or deployment."""
        from airflow_provider_platform.client.reports import GET_REPORT

        return self.run(
            GET_REPORT(deployment_id=self.resolve_deployment_id(deployment_id), report_id=report_id)
        )

    def create_report(self, *, deployment_id: int | str | None = None, **fields: Any) -> Report:
        """Create a report from the fields of `CreateReportInput`, in snake_case.

        Not repeated when its outcome is unknown; `upsert_report` can be. Raises
        PlatformInputError for an unknown field or a bad value, before anything is sent.
        """
        from airflow_provider_platform.client.reports import CREATE_REPORT, CreateReportInput

        return self.run(
            CREATE_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CreateReportInput.build(**fields),
            )
        )

    def upsert_report(
        self, public_id: str, *, deployment_id: int | str | None = None, **fields: Any
    ) -> Report:
        """Create the report of this public id (12 letters and digits) or update it, from the fields
        of `CreateReportInput`. Raises PlatformConflictError, also while another writer is at
        work."""
        from airflow_provider_platform.client.reports import UPSERT_REPORT, CreateReportInput

        return self.run(
            UPSERT_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                public_id=public_id,
                body=CreateReportInput.build(**fields),
            )
        )

    def update_report(
        self, report_id: int | str, *, deployment_id: int | str | None = None, **fields: Any
    ) -> Report:
        """Change the given fields of a report (those of `UpdateReportInput`, in snake_case).

        Raises PlatformConflictError where `expected_version` is not the stored one.
        """
        from airflow_provider_platform.client.reports import UPDATE_REPORT, UpdateReportInput

        return self.run(
            UPDATE_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                report_id=report_id,
                body=UpdateReportInput.build(**fields),
            )
        )

    def delete_report(
        self, report_id: int | str, *, deployment_id: int | str | None = None
    ) -> None:
        """Delete a report."""
        from airflow_provider_platform.client.reports import DELETE_REPORT

        self.run(
            DELETE_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id), report_id=report_id
            )
        )

    def refresh_report(
        self, report_id: int | str, *, deployment_id: int | str | None = None, **fields: Any
    ) -> Report:
        """Record that a placement was refreshed; it is told by the fields of `RefreshReportInput`.

        It writes no cells. Returns the report.
        """
        from airflow_provider_platform.client.report_placements import RefreshReportInput
        from airflow_provider_platform.client.reports import REFRESH_REPORT

        return self.run(
            REFRESH_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                report_id=report_id,
                body=RefreshReportInput.build(**fields),
            )
        )

    def connect_report(
        self,
        report_id: int | str,
        *,
        external_workbook_id: str,
        result_location: str,
        end_result_cell: str | None = None,
        deployment_id: int | str | None = None,
        **fields: Any,
    ) -> Report:
        """Record that a report lies in a spreadsheet of one's own, from `result_location` (as
        `Sheet1!A1`) to `end_result_cell`; further fields are those of
        `ConnectReportToWorkbookInput`.

        It records an address and writes no cells; read access to the report is enough. Returns
        the report with its placements.
        """
        from airflow_provider_platform.client.report_placements import ConnectReportToWorkbookInput
        from airflow_provider_platform.client.reports import CONNECT_REPORT

        return self.run(
            CONNECT_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                report_id=report_id,
                body=ConnectReportToWorkbookInput.build(
                    external_workbook_id=external_workbook_id,
                    result_location=result_location,
                    end_result_cell=end_result_cell,
                    **fields,
                ),
            )
        )

    def disconnect_report(
        self, report_id: int | str, *, deployment_id: int | str | None = None, **fields: Any
    ) -> Report:
        """Forget a placement, told by the fields of `DisconnectReportFromWorkbookInput`; one that
        is not there is fine. Returns the report."""
        from airflow_provider_platform.client.report_placements import (
            DisconnectReportFromWorkbookInput,
        )
        from airflow_provider_platform.client.reports import DISCONNECT_REPORT

        return self.run(
            DISCONNECT_REPORT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                report_id=report_id,
                body=DisconnectReportFromWorkbookInput.build(**fields),
            )
        )

    def get_report_file(
        self, report_id: int | str, *, deployment_id: int | str | None = None
    ) -> CanonicalFile:
        """The report's definition as canonical JSON text."""
        from airflow_provider_platform.client.reports import GET_REPORT_FILE

        return self.run(
            GET_REPORT_FILE(
                deployment_id=self.resolve_deployment_id(deployment_id), report_id=report_id
            )
        )

    def list_external_document_placements(
        self, external_workbook_id: str, *, first: int | None = None
    ) -> Iterator[ExternalDocumentPlacement]:
        """Every report in a spreadsheet, of all deployments, readable or not (`access`).

        Raises PlatformUnprocessableError for a document that holds too many.
        """
        from airflow_provider_platform.client.paging import Listing, PageQuery
        from airflow_provider_platform.client.report_placements import (
            LIST_EXTERNAL_DOCUMENT_PLACEMENTS,
        )

        return self.iterate(
            Listing.of(
                LIST_EXTERNAL_DOCUMENT_PLACEMENTS,
                external_workbook_id=external_workbook_id,
                query=PageQuery.build(first=first),
            )
        )
