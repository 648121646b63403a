"""Reports, and where they are placed in spreadsheets. Nothing here writes a spreadsheet."""

from __future__ import annotations

import re
import uuid
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, given, handles
from airflow_provider_platform.sandbox.management.folders import check_folder, path
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.samples import owner, public_id

_SPOT = ("sheetId", "sheetName", "anchorCell", "endResultCell", "host", "workbookName")
_PLACED = ("externalWorkbookId", "resultLocation", "endResultCell")


def _meant(call: Call) -> Item:
    return store.item(call, "reports", call.path["reportId"])


@store.view("reports")
def shown(call: Call, report: Item) -> Item:
    return {
        **{name: value for name, value in report.items() if name != "lastViewedAt"},
        "type": "REPORT",
        "canEdit": call.may("ReportEdit"),
        "canManage": call.may("ReportManage"),
        "user": owner(report["userId"]),
        "refreshedByUser": owner(report["refreshedBy"]),
        "folderPath": path(call, report["folderId"]),
    }


@handles("getReports")
def get_reports(call: Call) -> Any:
    """Pages by cursor; sorted by ``lastViewedAt`` by ``limit`` and ``page`` only."""
    viewed = call.query.get("sortBy") == "lastViewedAt"
    if viewed and {"first", "after"} & call.query.keys():
        raise ApiError(400, ["cursor pagination is not available with sortBy=lastViewedAt"])
    document = call.query.pop("externalWorkbookId", None)
    found = [
        report
        for report in store.listed(call)
        if document is None
        or any(one["workbookId"] == document for one in report["externalWorkbookPlacements"])
    ]
    if viewed:
        call.query.setdefault("limit", max(len(found), 1))
    return store.page(call, found)


@handles("createReport")
def create_report(call: Call) -> Any:
    """One more report, every time it is asked for; a public id can be used once."""
    public = call.body.get("publicId")
    if public is not None and call.items.find("reports", publicId=public) is not None:
        raise ApiError(400, [f"the publicId {public} is already used"])
    return shown(call, _create(call, call.body))


@handles("upsertReportByPublicId")
def upsert_report(call: Call) -> Any:
    """Create or update; ``source`` counts on creation only."""
    public = call.path["publicId"]
    if not re.fullmatch(r"[0-9A-Za-z]{12}", public):
        raise ApiError(400, ["publicId must match [0-9A-Za-z]{12}"])
    if call.body.get("publicId", public) != public:
        raise ApiError(400, ["publicId must be the one of the path"])
    report = call.items.find("reports", publicId=public)
    if report is None:
        return shown(call, _create(call, {**call.body, "publicId": public}))
    if report["deploymentId"] != call.deployment:
        raise ApiError(409, f"The publicId {public} is used in another deployment")
    fields = {name: value for name, value in call.document.items() if name != "source"}
    return shown(call, _change(call, report, fields))


@handles("updateReport")
def update_report(call: Call) -> Any:
    """Change what is given; with ``expectedVersion`` only a report that has this version."""
    report = _meant(call)
    if call.body.get("expectedVersion", report["version"]) != report["version"]:
        raise ApiError(409, f"Report {report['id']} has version {report['version']}")
    if call.body.get("publicId", report["publicId"]) != report["publicId"]:
        raise ApiError(400, ["publicId cannot be changed"])
    return shown(call, _change(call, report, call.document))


def _create(call: Call, fields: Item) -> Item:
    _check_references(call, fields)
    report = store.create(call, fields, name="reports", lastViewedAt=call.now)
    report["publicId"] = report["publicId"] or public_id("report", report["id"])
    _place(call, report, fields)
    return report


def _change(call: Call, report: Item, fields: Item) -> Item:
    """Apply ``fields``: null moves the report to the root or takes a value away."""
    _check_references(call, fields)
    fields = {name: value for name, value in fields.items() if name != "publicId"}
    store.update(call, report, fields, "reports")
    report["version"] += 1
    _place(call, report, given(fields))
    return report


def _check_references(call: Call, fields: Item) -> None:
    check_folder(call, fields.get("folderId"))
    if fields.get("workbookId") is not None:
        store.item(call, "workbooks", fields["workbookId"])


# -- placements ------------------------------------------------------------------------------


@handles("connectReportToWorkbook")
def connect_workbook(call: Call) -> Any:
    """Record one placement; the same spot again updates it. The report itself is not changed."""
    report = _meant(call)
    _place(call, report, call.body)
    call.record("placed", "reports", report["id"])
    return shown(call, report)


@handles("disconnectReportFromWorkbook")
def disconnect_workbook(call: Call) -> Any:
    """Remove one placement; a spot without one is no error."""
    report = _meant(call)
    gone = _placement(report, call.body)
    if gone is not None:
        report["externalWorkbookPlacements"].remove(gone)
        call.record("unplaced", "reports", report["id"])
    return shown(call, report)


@handles("refreshReport")
def refresh_report(call: Call) -> Any:
    """Note that the report, or one placement of it, has been read again."""
    report = _meant(call)
    placement = _placement(report, call.body)
    if placement is not None:
        _touch(call, placement, call.body)
    report["refreshedBy"] = call.user
    call.record("refreshed", "reports", report["id"])
    return shown(call, report)


@handles("listExternalDocumentPlacements")
def list_placements(call: Call) -> Any:
    """Everything that is placed in one spreadsheet, over all deployments."""
    document = call.path["externalWorkbookId"]
    found = [
        (report, placement)
        for report in call.items.all("reports")
        for placement in report["externalWorkbookPlacements"]
        if placement["workbookId"] == document
    ]
    names = (
        "anchorCell",
        "endResultCell",
        "host",
        "placedAt",
        "refreshedAt",
        "sheetId",
        "sheetName",
    )
    shown = [
        {
            "access": "GRANTED",
            "reportId": report["id"],
            "deploymentId": report["deploymentId"],
            "reportName": report["name"],
            "owner": owner(report["userId"]),
            "placementId": placement["id"],
            "resultLocation": placement["resultLocation"],
            **{name: placement.get(name) for name in names},
        }
        for report, placement in found
    ]
    return store.page(call, shown, everything=True)


def _place(call: Call, report: Item, address: Item) -> None:
    """Record a placement if ``address`` names a spot, or update the placement at that spot."""
    if "externalWorkbookId" not in address or "resultLocation" not in address:
        return
    known = _placement(report, address)
    if known is None:
        placed = {"placedAt": call.now, "placedByUserId": call.user, "endResultCell": None}
        known = {"id": f"placement-{uuid.uuid4().hex}", **placed}
        report["externalWorkbookPlacements"].append(known)
    known |= {
        "workbookId": address["externalWorkbookId"],
        "resultLocation": address["resultLocation"],
        **{name: address[name] for name in _SPOT if name in address},
    }
    if not address.get("addressOnly"):
        _touch(call, known, address)
    values = (known["workbookId"], known["resultLocation"], known["endResultCell"])
    report |= dict(zip(_PLACED, values, strict=True))


def _touch(call: Call, placement: Item, address: Item) -> None:
    """Note that the rows of the placement have been written again."""
    refreshed = {"refreshedAt": call.now, "refreshedByUserId": call.user}
    placement |= {**refreshed, "syncStatus": "UP_TO_DATE"}
    if "resultChecksum" in address:
        placement["resultChecksum"] = address["resultChecksum"]


def _placement(report: Item, address: Item) -> Item | None:
    """Return the placement that ``address`` means: by its id, or by document and place in it."""
    placements: list[Item] = report["externalWorkbookPlacements"]
    return next((one for one in placements if _is_at(one, address)), None)


def _is_at(placement: Item, address: Item) -> bool:
    if "placementId" in address:
        return bool(placement["id"] == address["placementId"])
    if placement["workbookId"] != address.get("externalWorkbookId"):
        return False
    if "resultLocation" in address:
        return bool(placement["resultLocation"] == address["resultLocation"])
    spot = ("sheetName", "anchorCell")
    return all(placement.get(name) == address.get(name) for name in spot)
