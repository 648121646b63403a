"""Everything that is placed in one external spreadsheet, over all deployments."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.reports.reports import Reports
from airflow_provider_platform.sandbox.management.shared import paging, users
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource

resource = Resource(
    "/api/v1/external-documents/{externalWorkbookId:text}/placements",
    needs="ReportRead",
    since="0.13.0",
)

MOST_REPORTS, MOST_PLACEMENTS = 500, 2000


@resource.get(query=paging.PARAMETERS)
def list_external_document_placements(call: Call) -> Any:
    """All at once unless ``first`` asks for pages."""
    document = call.path["externalWorkbookId"]
    found = [
        (report, placement)
        for report in call.store(Reports).all()
        for placement in report["externalWorkbookPlacements"]
        if placement["workbookId"] == document
    ]
    if len(found) > MOST_PLACEMENTS or len({report["id"] for report, _ in found}) > MOST_REPORTS:
        raise ApiError(422, f"Document {document} holds too many placements to list")
    items = [_shown(report, placement) for report, placement in found]
    call.query.setdefault("first", max(len(items), 1))
    return paging.page(call, items)


def _shown(report: Item, placement: Item) -> Item:
    names = ("anchorCell", "endResultCell", "host", "placedAt", "refreshedAt")
    return {
        "access": "GRANTED",
        "reportId": report["id"],
        "deploymentId": report["deploymentId"],
        "reportName": report["name"],
        "owner": users.owner(report["userId"]),
        "placementId": placement["id"],
        "resultLocation": placement["resultLocation"],
        **{name: placement.get(name) for name in (*names, "sheetId", "sheetName")},
    }
