"""Where a report's rows lie in external spreadsheets: placements, their addresses and checksums.

A "workbook" here is an external spreadsheet (the file id of a Google sheet, or the id that the
Excel add-in gave), not a workbook of the platform.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_platform.client.management.shared.ownership import ResourceOwner
from airflow_provider_platform.client.operations.models import (
    NEVER_NULL,
    InputModel,
    JsonObject,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery

SpreadsheetHost = Literal["GOOGLE_SHEETS", "EXCEL"]


class ReportPlacementResultChunkInput(InputModel):
    """The checksum of the rows from `from` on."""

    from_: int = Field(alias="from", ge=0)
    hash: str = Field(min_length=1, max_length=64)
    to: int | None = Field(default=None, ge=0)


class ReportPlacementResultChecksumInput(InputModel):
    """What was written to a spreadsheet: checksums of its parts, `payload` of the whole."""

    v: int = Field(ge=1)
    chunks: list[ReportPlacementResultChunkInput] = Field(max_length=2000)
    payload: Annotated[str | None, NEVER_NULL] = Field(default=None, min_length=1, max_length=128)


class ReportPlacement(ResponseModel):
    """One place of a report in an external spreadsheet."""

    id: str | None = None
    workbook_id: str | None = None
    result_location: str | None = None
    anchor_cell: str | None = None
    end_result_cell: str | None = None
    host: str | None = None
    placed_at: str | None = None
    placed_by_user_id: int | None = None
    query_checksum: str | None = None
    refreshed_at: str | None = None
    refreshed_by_user_id: int | None = None
    result_checksum: JsonObject | None = None
    sheet_id: str | None = None
    sheet_name: str | None = None
    sync_status: str | None = None
    workbook_name: str | None = None


class PlacementAddress(InputModel):
    """The parts of a spreadsheet that tell one placement from another."""

    placement_id: str | None = None
    external_workbook_id: str | None = None
    result_location: str | None = None
    anchor_cell: str | None = None
    sheet_id: str | None = None
    sheet_name: str | None = None


class ConnectReportToWorkbookInput(PlacementAddress):
    """A placement to record; with `address_only` the stored fingerprint stays as it is."""

    external_workbook_id: str = Field(min_length=1)
    result_location: str = Field(min_length=1)
    end_result_cell: str | None = None
    address_only: bool | None = None
    host: SpreadsheetHost | None = None
    result_checksum: ReportPlacementResultChecksumInput | None = None
    workbook_name: str | None = None


class DisconnectReportFromWorkbookInput(PlacementAddress):
    """Which placement to forget: by its id, or by the spreadsheet and the place in it."""


class RefreshReportInput(PlacementAddress):
    """Which placement was refreshed, and with what."""

    result_checksum: ReportPlacementResultChecksumInput | None = None


class ExternalDocumentPlacement(ResponseModel):
    """A placement in a spreadsheet, seen from the spreadsheet; `access` says whether the caller
    may read the report."""

    access: str | None = None
    report_id: int | None = None
    report_name: str | None = None
    deployment_id: int | None = None
    placement_id: str | None = None
    result_location: str | None = None
    anchor_cell: str | None = None
    end_result_cell: str | None = None
    host: str | None = None
    owner: ResourceOwner | None = None
    placed_at: str | None = None
    refreshed_at: str | None = None
    sheet_id: str | None = None
    sheet_name: str | None = None


@endpoint(
    "GET",
    "/v1/external-documents/{externalWorkbookId}/placements",
    operation_id="listExternalDocumentPlacements",
)
def list_external_document_placements(
    *, external_workbook_id: str, query: PageQuery | None = None
) -> Page[ExternalDocumentPlacement]:
    """Every report in a spreadsheet, of all deployments, readable or not (`access`).

    Raises PlatformUnprocessableError for a document that holds too many."""
