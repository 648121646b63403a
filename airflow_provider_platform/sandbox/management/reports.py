"""Where reports are placed in spreadsheets. Nothing here writes a spreadsheet."""

from __future__ import annotations

import uuid
from typing import Any

from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import Item, owner

_SPOT = ("sheetId", "sheetName", "anchorCell", "endResultCell", "host", "workbookName")

_ACTIONS = {
    "connectReportToWorkbook": "placed",
    "disconnectReportFromWorkbook": "unplaced",
    "refreshReport": "refreshed",
}


@handles(*_ACTIONS)
def place(call: Call) -> Any:
    """Record a placement, or its end, or that its rows were written again. The same spot again
    updates its placement, and a spot without one is no error. The report itself is not changed."""
    report, spot = generic_store.item(call, "reports", call.path["reportId"]), call.body
    placements: list[Item] = report["externalWorkbookPlacements"]
    known = next((one for one in placements if _is_at(one, spot)), None)
    if _ACTIONS[call.operation.id] == "unplaced":
        placements[:] = [one for one in placements if one is not known]
    elif _ACTIONS[call.operation.id] == "placed":
        if known is None:
            placed = {"placedAt": call.now, "placedByUserId": call.user, "endResultCell": None}
            known = {"id": f"placement-{uuid.uuid4().hex}", **placed}
            placements.append(known)
        known |= {
            "workbookId": spot["externalWorkbookId"],
            "resultLocation": spot["resultLocation"],
            **{name: spot[name] for name in _SPOT if name in spot},
        }
    if known is not None and not spot.get("addressOnly"):
        refreshed = {"refreshedAt": call.now, "refreshedByUserId": call.user}
        known |= {**refreshed, "syncStatus": "UP_TO_DATE"}
        known["resultChecksum"] = spot.get("resultChecksum", known.get("resultChecksum"))
    last = placements[-1] if placements else {}
    report |= {
        "externalWorkbookId": last.get("workbookId"),
        "resultLocation": last.get("resultLocation"),
        "endResultCell": last.get("endResultCell"),
    }
    call.record(_ACTIONS[call.operation.id], "reports", report["id"])
    return generic_store.shown(call, "reports", report)


def _is_at(placement: Item, spot: Item) -> bool:
    """Return whether ``spot`` means this placement: by its id, or by document and place in it."""
    if "placementId" in spot:
        return bool(placement["id"] == spot["placementId"])
    names = {"externalWorkbookId": "workbookId", "resultLocation": "resultLocation"}
    named = [(placement[known], spot[name]) for name, known in names.items() if name in spot]
    return bool(named) and all(known == wanted for known, wanted in named)


@handles("listExternalDocumentPlacements")
def list_placements(call: Call) -> Any:
    """Everything that is placed in one spreadsheet, over all deployments."""
    names = ("resultLocation", "placedAt", "refreshedAt", *_SPOT[:-1])
    return generic_store.page(
        call,
        [
            {
                "access": "GRANTED",
                "reportId": report["id"],
                "deploymentId": report["deploymentId"],
                "reportName": report["name"],
                "owner": owner(report["userId"]),
                "placementId": placement["id"],
                **{name: placement.get(name) for name in names},
            }
            for report in call.items.all("reports")
            for placement in report["externalWorkbookPlacements"]
            if placement["workbookId"] == call.path["externalWorkbookId"]
        ],
        everything=True,
    )
