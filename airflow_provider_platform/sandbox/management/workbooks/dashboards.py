"""Published dashboards: the store that notifications, exports and embedding look them up in."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call

_SAMPLES = (
    (501, 1, 301, "Sales overview"),
    (502, 1, 302, "Customer health"),
    (601, 2, 401, "Staging board"),
)


class Dashboards(Items):
    """At most one dashboard for each workbook: 501 and 502 in deployment 1, 601 in 2."""

    what = "Dashboard"

    def __init__(self) -> None:
        super().__init__(_dashboard(*sample) for sample in _SAMPLES)

    def of_workbook(self, workbook_id: int) -> Item | None:
        return next((d for d in self.all() if d["workbookId"] == workbook_id), None)

    def with_public_id(self, public_id: str) -> Item | None:
        return next((d for d in self.all() if d["publicId"] == public_id), None)

    def named(self, call: Call, given: dict[str, Any]) -> Item:
        """The dashboard of the deployment that ``given`` names by one of its two ids; 404."""
        by_number = self.find(call.deployment, given.get("dashboardId"))
        if by_number is not None:
            return by_number
        public_id = given.get("dashboardPublicId")
        found = None if public_id is None else self.with_public_id(public_id)
        if found is None or found["deploymentId"] != call.deployment:
            asked = public_id or given.get("dashboardId")
            raise ApiError(404, f"Dashboard {asked} not found in deployment {call.deployment}")
        return found

    def publish(self, workbook: Item, user_id: int, config: dict[str, Any]) -> Item:
        """A new version of the workbook's dashboard, or its first one."""
        dashboard = self.of_workbook(workbook["id"])
        if dashboard is None:
            place = (workbook["deploymentId"], workbook["id"], workbook["name"])
            dashboard = self.add(**_unpublished(*place, user_id))
            dashboard["publicId"] = public_id(dashboard["id"])
        return _next_version(dashboard, config)


def public_id(dashboard_id: int) -> str:
    return f"dash{dashboard_id:08d}"


def sample_config(title: str) -> dict[str, Any]:
    """A dashboard with a chart, a filter and an AI widget."""
    kinds = (("chart-1", "CHART"), ("filter-1", "FILTER"), ("ai-1", "AI"))
    return {
        "kind": "CLASSIC",
        "title": title,
        "description": None,
        "widgets": [
            {
                "id": widget_id,
                "type": kind,
                "position": {"x": 4 * column, "y": 0, "w": 4, "h": 6},
                "config": {},
            }
            for column, (widget_id, kind) in enumerate(kinds)
        ],
    }


def _dashboard(dashboard_id: int, deployment: int, workbook_id: int, title: str) -> Item:
    sample = {
        "id": dashboard_id,
        **_unpublished(deployment, workbook_id, title, 7),
        "publicId": public_id(dashboard_id),
        "allowEmbed": dashboard_id == 501,
        "reportSnapshots": [_snapshot(deployment * 100 + 1, "Revenue by country")],
    }
    return _next_version(sample, sample_config(title))


def _unpublished(deployment: int, workbook_id: int, title: str, user_id: int) -> Item:
    return {
        "deploymentId": deployment,
        "workbookId": workbook_id,
        "status": "published",
        "allowEmbed": False,
        "versionNumber": 0,
        "reportSnapshots": [],
        "createdBy": user_id,
        "description": None,
        "fromSharedWorkspace": False,
        "restrictDataDownload": False,
        "title": title,
        "useBoardDashboards": True,
    }


def _next_version(dashboard: Item, config: dict[str, Any]) -> Item:
    dashboard["versionNumber"] += 1
    dashboard["versionId"] = dashboard["id"] * 1000 + dashboard["versionNumber"]
    dashboard["config"] = config
    return dashboard


def _snapshot(report_id: int, name: str) -> dict[str, Any]:
    return {
        "id": report_id * 10 + 1,
        "reportId": report_id,
        "publicId": f"report{report_id:06d}",
        "versionNumber": 1,
        "name": name,
        "title": name,
        "kind": "table",
        "isSourceReport": False,
        "fillMissingRows": {"member": "orders.month", "excludedDimensions": ["orders.status"]},
        "sqlQuery": "SELECT country, SUM(amount) FROM orders GROUP BY 1",
    }
