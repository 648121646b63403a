"""Connecting reports with spreadsheets, refreshing and disconnecting: read access is enough."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.management.reports import bodies, reports
from airflow_provider_platform.sandbox.management.reports import placement_store as placements
from airflow_provider_platform.sandbox.management.reports.placement_store import Placements
from airflow_provider_platform.sandbox.management.reports.reports import Reports
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource

resource = Resource(f"{reports.resource.path}/{{reportId}}", needs="ReportRead")


@resource.put("/connect-workbook", body=bodies.CONNECT)
def connect_workbook(call: Call) -> Any:
    """Record one placement; the same spot again updates it. The report itself is not changed."""
    report = call.store(Reports).get(call)
    call.store(Placements).put(call, report, call.body)
    call.record("placed", "reports", report["id"])
    return reports.shown(call, report)


@resource.delete("/connect-workbook", since="0.4.0", body=bodies.DISCONNECT)
def disconnect_workbook(call: Call) -> Any:
    """Forget one placement; a spot that is not there is no error."""
    report = call.store(Reports).get(call)
    gone = placements.find(report, call.body)
    if gone is not None:
        report["externalWorkbookPlacements"].remove(gone)
        call.record("unplaced", "reports", report["id"])
    return reports.shown(call, report)


@resource.put("/refresh", body=bodies.REFRESH)
def refresh_report(call: Call) -> Any:
    """Note that the report, or one placement of it, has been read anew."""
    report = call.store(Reports).get(call)
    now, caller = call.server.clock.stamp(), call.user
    placement = placements.find(report, call.body)
    if placement is not None:
        placements.touch(placement, call.body, now, caller)
    report["refreshedBy"] = caller
    call.record("refreshed", "reports", report["id"])
    return reports.shown(call, report)
