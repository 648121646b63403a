"""Where reports stand in the callers' own spreadsheets: recording, finding and forgetting spots."""

from __future__ import annotations

import itertools
from typing import Any

from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call

_SPOT = ("sheetId", "sheetName", "anchorCell", "endResultCell", "host", "workbookName")


class Placements:
    """Gives placements their ids and writes them into reports."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def put(self, call: Call, report: Item, address: dict[str, Any]) -> Item:
        """Record one placement of ``report``; the same spot again updates it."""
        now, caller = call.server.clock.stamp(), call.user
        known = find(report, address)
        if known is None:
            known = {
                "id": f"placement-{next(self._ids)}",
                "placedAt": now,
                "placedByUserId": caller,
                "endResultCell": None,
            }
            report["externalWorkbookPlacements"].append(known)
        known |= {
            "workbookId": address["externalWorkbookId"],
            "resultLocation": address["resultLocation"],
            **{name: address[name] for name in _SPOT if name in address},
        }
        if not address.get("addressOnly"):
            touch(known, address, now, caller)
        report |= {
            "externalWorkbookId": known["workbookId"],
            "resultLocation": known["resultLocation"],
            "endResultCell": known["endResultCell"],
        }
        return known


def find(report: Item, address: dict[str, Any]) -> Item | None:
    """The placement that ``address`` means: by its id, or by document and place in it."""
    placements: list[Item] = report["externalWorkbookPlacements"]
    return next((one for one in placements if _meant(one, address)), None)


def touch(placement: Item, address: dict[str, Any], now: str, caller: int) -> None:
    """Note that the rows of the placement have been written anew."""
    placement |= {"refreshedAt": now, "refreshedByUserId": caller, "syncStatus": "UP_TO_DATE"}
    if "resultChecksum" in address:
        placement["resultChecksum"] = address["resultChecksum"]


def _meant(placement: Item, address: dict[str, Any]) -> bool:
    if "placementId" in address:
        return bool(placement["id"] == address["placementId"])
    if placement["workbookId"] != address.get("externalWorkbookId"):
        return False
    if "resultLocation" in address:
        return bool(placement["resultLocation"] == address["resultLocation"])
    spot = ("sheetName", "anchorCell")
    return all(placement.get(name) == address.get(name) for name in spot)
