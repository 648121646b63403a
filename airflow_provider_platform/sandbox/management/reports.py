"""Reports: list, one, and their placements in the caller's own spreadsheets."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from airflow_provider_platform.sandbox import shapes
from airflow_provider_platform.sandbox.answers import ApiError
from airflow_provider_platform.sandbox.management import paging
from airflow_provider_platform.sandbox.management.resource import Call, Resource

resource = Resource()

_PATH = "/api/v1/deployments/{deploymentId}/reports"
_OWNER = {"id": 7, "email": "analyst@acme.example.com", "firstName": "Ada", "picture": None}
_NAMES = (
    "Revenue by country",
    "Orders per month",
    "Top products",
    "Returns by category",
    "Average order value",
    "Customers by segment",
    "Nightly summary",
)
_SORTS = ("createdAt", "updatedAt", "lastViewedAt", "name")

Report = dict[str, Any]


class Reports:
    """All reports by id: 101 to 107 in deployment 1, 201 and 202 in deployment 2."""

    def __init__(self) -> None:
        self.by_id: dict[int, Report] = {}
        self.placement_ids = itertools.count(1)
        for deployment, names in ((1, _NAMES), (2, _NAMES[:2])):
            for number, name in enumerate(names, start=1):
                report = _report(deployment, number, name)
                self.by_id[report["id"]] = report

    def of(self, deployment: int) -> list[Report]:
        return [r for r in self.by_id.values() if r["deploymentId"] == deployment]

    def get(self, call: Call) -> Report:
        report = self.by_id.get(call.path["reportId"])
        if report is None or report["deploymentId"] != call.deployment:
            raise ApiError(
                404, f"Report {call.path['reportId']} not found in deployment {call.deployment}"
            )
        return report


resource.collections["reports"] = lambda world: list(world.store(Reports).by_id.values())


def _report(deployment: int, number: int, name: str) -> Report:
    report_id = deployment * 100 + number
    return {
        "id": report_id,
        "publicId": f"report{report_id:06d}",
        "userId": 7,
        "user": _OWNER,
        "name": name,
        "refreshedByUser": _OWNER,
        "deploymentId": deployment,
        "createdAt": f"2026-03-{number:02d}",
        "updatedAt": f"2026-07-{20 - number:02d}T05:30:00.000Z",
        "type": "SEMANTIC_SQL",
        "canEdit": True,
        "canManage": False,
        "folderId": 11 if number <= 3 else None,
        "externalWorkbookId": None,
        "resultLocation": None,
        "endResultCell": None,
        "externalWorkbookPlacements": [],
    }


@resource.operation(
    "GET",
    _PATH,
    needs="ReportRead",
    query={
        **paging.PARAMETERS,
        "sortBy": shapes.string(one_of=_SORTS),
        "sortDirection": shapes.string(one_of=("ASC", "DESC", "asc", "desc")),
        "search": shapes.string(),
        "folderId": shapes.integer(),
        "workbookId": shapes.integer(),
        "externalWorkbookId": shapes.string(),
        "limit": shapes.integer(minimum=1),
        "page": shapes.integer(minimum=1),
    },
)
def list_reports(call: Call) -> Any:
    query = call.query
    cursor = {"first", "after"} & set(query)
    if cursor and query.get("sortBy") == "lastViewedAt":
        raise ApiError(400, ["cursor pagination is not available with sortBy=lastViewedAt"])
    if cursor and {"limit", "page"} & set(query):
        raise ApiError(400, ["limit and page cannot be mixed with first and after"])
    items = [report for report in call.store(Reports).of(call.deployment) if _wanted(report, query)]
    key = query.get("sortBy", "id")
    backwards = query.get("sortDirection", "ASC").upper() == "DESC"
    items.sort(key=lambda report: str(report.get(key, report["id"])), reverse=backwards)
    return paging.page(call, items, deprecated=True)


def _wanted(report: Report, query: dict[str, Any]) -> bool:
    wanted = query.get("externalWorkbookId")
    placed = {placement["workbookId"] for placement in report["externalWorkbookPlacements"]}
    return (
        str(query.get("search", "")).lower() in report["name"].lower()
        and query.get("folderId", report["folderId"]) == report["folderId"]
        and (wanted is None or wanted in placed)
    )


@resource.operation("GET", f"{_PATH}/{{reportId}}", needs="ReportRead")
def get_report(call: Call) -> Any:
    return call.store(Reports).get(call)


_ADDRESS: shapes.Shape = {
    "placementId": shapes.string(),
    "sheetId": shapes.string(),
    "sheetName": shapes.string(),
    "anchorCell": shapes.string(),
    "endResultCell": shapes.string(),
    "host": shapes.string(one_of=("GOOGLE_SHEETS", "EXCEL")),
    "workbookName": shapes.string(),
}
_CHECKSUM = shapes.structure(
    {
        "v": shapes.integer(minimum=1),
        "chunks": shapes.array(shapes.mapping, maximum=2000),
        "payload": shapes.string(max_length=128),
    },
    required=("v", "chunks"),
)


@resource.operation(
    "PUT",
    f"{_PATH}/{{reportId}}/connect-workbook",
    needs="ReportRead",
    body=shapes.nullable_fields(
        {
            "externalWorkbookId": shapes.string(),
            "resultLocation": shapes.string(),
            "addressOnly": shapes.boolean,
            "resultChecksum": _CHECKSUM,
            **_ADDRESS,
        },
        required=("externalWorkbookId", "resultLocation"),
    ),
)
def connect_workbook(call: Call) -> Any:
    """Record one placement; the same spot again updates it."""
    reports = call.store(Reports)
    report = reports.get(call)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {name: value for name, value in call.body.items() if name in _ADDRESS}
    fields.pop("placementId", None)
    address = {
        "workbookId": call.body["externalWorkbookId"],
        "resultLocation": call.body["resultLocation"],
        **fields,
    }
    known = next((p for p in report["externalWorkbookPlacements"] if _same(p, call.body)), None)
    if known is None:
        known = {"id": f"placement-{next(reports.placement_ids)}", "placedAt": now}
        known |= {"placedByUserId": 7, "endResultCell": None}
        report["externalWorkbookPlacements"].append(known)
    known |= {**address, "refreshedAt": now, "refreshedByUserId": 7, "syncStatus": "UP_TO_DATE"}
    report |= {
        "externalWorkbookId": known["workbookId"],
        "resultLocation": known["resultLocation"],
        "endResultCell": known["endResultCell"],
        "updatedAt": now,
    }
    return report


@resource.operation(
    "DELETE",
    f"{_PATH}/{{reportId}}/connect-workbook",
    needs="ReportRead",
    body=shapes.nullable_fields(
        {"externalWorkbookId": shapes.string(), "resultLocation": shapes.string(), **_ADDRESS}
    ),
)
def disconnect_workbook(call: Call) -> Any:
    """Forget one placement; a spot that is not there is no error."""
    report = call.store(Reports).get(call)
    report["externalWorkbookPlacements"] = [
        placement
        for placement in report["externalWorkbookPlacements"]
        if not _same(placement, call.body)
    ]
    return report


def _same(placement: dict[str, Any], address: dict[str, Any]) -> bool:
    if "placementId" in address:
        return bool(placement["id"] == address["placementId"])
    if placement["workbookId"] != address.get("externalWorkbookId"):
        return False
    if "resultLocation" in address:
        return bool(placement["resultLocation"] == address["resultLocation"])
    spot = ("sheetName", "anchorCell")
    return all(placement.get(name) == address.get(name) for name in spot)
