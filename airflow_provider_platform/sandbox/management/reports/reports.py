"""Reports: list, get, create, update, delete, and create or update by public id."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.folders import Folders
from airflow_provider_platform.sandbox.management.reports import bodies
from airflow_provider_platform.sandbox.management.reports.placement_store import Placements
from airflow_provider_platform.sandbox.management.shared import paging, users
from airflow_provider_platform.sandbox.management.shared.files import canonical_file
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource, given
from airflow_provider_platform.sandbox.management.workbooks.workbooks import Workbooks

resource = Resource("/api/v1/deployments/{deploymentId}/reports", needs="ReportRead")

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
_UNSHOWN = ("lastViewedAt",)
_WRITE_ONLY = ("expectedVersion", "resultChecksum", "sheetId", "host", "workbookName")


class Reports(Items):
    """Reports by id: 101 to 107 in deployment 1, 201 and 202 in deployment 2."""

    what = "Report"

    def __init__(self) -> None:
        super().__init__(
            _sample(deployment, number, name)
            for deployment, names in ((1, _NAMES), (2, _NAMES[:2]))
            for number, name in enumerate(names, start=1)
        )

    def get(self, call: Call, parameter: str = "reportId") -> Item:
        return super().get(call, parameter)

    def with_public_id(self, public_id: str) -> Item | None:
        return next((one for one in self.all() if one["publicId"] == public_id), None)


resource.collections["reports"] = lambda server: server.store(Reports).all()


def _sample(deployment: int, number: int, name: str) -> Item:
    report_id = deployment * 100 + number
    return {
        **_blank(deployment, 7, f"2026-03-{number:02d}"),
        "id": report_id,
        "publicId": _public_id(report_id),
        "name": name,
        "updatedAt": f"2026-07-{20 - number:02d}T05:30:00.000Z",
        "lastViewedAt": f"2026-07-{1 + number * 7 % 10:02d}T08:00:00.000Z",
        "folderId": 11 if deployment == 1 and number <= 3 else None,
        "workbookId": deployment * 100 + 201 if number <= 2 else None,
        "sqlQuery": "SELECT country, SUM(amount) FROM orders GROUP BY 1",
    }


def _blank(deployment: int, user_id: int, now: str) -> Item:
    return {
        "deploymentId": deployment,
        "userId": user_id,
        "createdBy": user_id,
        "refreshedBy": user_id,
        "createdAt": now,
        "updatedAt": now,
        "lastViewedAt": now,
        "name": "Untitled report",
        "title": None,
        "description": None,
        "version": 1,
        "folderId": None,
        "workbookId": None,
        "meta": None,
        "jsonQuery": None,
        "sqlQuery": None,
        "pivotItems": None,
        "source": None,
        "externalWorkbookId": None,
        "resultLocation": None,
        "endResultCell": None,
        "externalWorkbookPlacements": [],
    }


def _public_id(report_id: int) -> str:
    return f"report{report_id:06d}"


def shown(call: Call, report: Item) -> Item:
    """A report as answers carry it."""
    return {
        **{name: value for name, value in report.items() if name not in _UNSHOWN},
        "type": "REPORT",
        "canEdit": "ReportEdit" not in call.server.settings.token_lacks,
        "canManage": "ReportManage" not in call.server.settings.token_lacks,
        "user": users.owner(report["userId"]),
        "refreshedByUser": users.owner(report["refreshedBy"]),
        "folderPath": call.store(Folders).path(report["folderId"]),
    }


@resource.get(
    query={
        **paging.PARAMETERS,
        "sortBy": checks.string(one_of=_SORTS),
        "sortDirection": checks.string(one_of=("ASC", "DESC")),
        "search": checks.string(),
        "folderId": checks.integer(),
        "workbookId": checks.integer(),
        "externalWorkbookId": checks.string(),
        "limit": checks.integer(minimum=1),
        "page": checks.integer(minimum=1),
    }
)
def list_reports(call: Call) -> Any:
    """Pages by cursor; sorted by ``lastViewedAt`` by ``limit`` and ``page`` only."""
    query = call.query
    cursor = {"first", "after"} & set(query)
    numbered = {"limit", "page"} & set(query)
    if cursor and query.get("sortBy") == "lastViewedAt":
        raise ApiError(400, ["cursor pagination is not available with sortBy=lastViewedAt"])
    if cursor and numbered:
        raise ApiError(400, ["limit and page cannot be mixed with first and after"])
    reports = [one for one in call.store(Reports).of(call.deployment) if _wanted(one, query)]
    if "sortBy" in query:
        reports.sort(key=lambda report: str(report[query["sortBy"]]))
    if query.get("sortDirection") == "DESC":
        reports.reverse()
    items = [shown(call, report) for report in reports]
    if numbered or query.get("sortBy") == "lastViewedAt":
        return paging.numbered_page(call, items)
    return paging.page(call, items, deprecated=True)


def _wanted(report: Item, query: dict[str, Any]) -> bool:
    wanted = query.get("externalWorkbookId")
    placed = {placement["workbookId"] for placement in report["externalWorkbookPlacements"]}
    return (
        str(query.get("search", "")).lower() in report["name"].lower()
        and query.get("folderId", report["folderId"]) == report["folderId"]
        and query.get("workbookId", report["workbookId"]) == report["workbookId"]
        and (wanted is None or wanted in placed)
    )


@resource.get("/{reportId}")
def get_report(call: Call) -> Any:
    return shown(call, call.store(Reports).get(call))


@resource.get("/{reportId}/file", since="0.17.0")
def get_report_file(call: Call) -> Any:
    """The definition as canonical JSON text."""
    report = call.store(Reports).get(call)
    names = ("name", "title", "sqlQuery", "jsonQuery", "pivotItems", "meta")
    return canonical_file({name: report[name] for name in names})


@resource.post(needs="ReportEdit", body=bodies.CREATE)
def create_report(call: Call) -> Any:
    """One more report, every time it is asked for; a public id can be used once."""
    public_id = call.body.get("publicId")
    if public_id is not None and call.store(Reports).with_public_id(public_id) is not None:
        raise ApiError(400, [f"the publicId {public_id} is already used"])
    return shown(call, _create(call, call.body))


@resource.put(
    "/by-public-id/{publicId:text}", since="0.3.0", needs="ReportEdit", body=bodies.CREATE
)
def upsert_report_by_public_id(call: Call) -> Any:
    """Create or update; ``source`` counts on creation only."""
    public_id = call.path["publicId"]
    messages = bodies.PUBLIC_ID(public_id, "publicId")
    if call.body.get("publicId", public_id) != public_id:
        messages.append("publicId must be the one of the path")
    if messages:
        raise ApiError(400, messages)
    report = call.store(Reports).with_public_id(public_id)
    if report is None:
        report = _create(call, {**call.body, "publicId": public_id})
    elif report["deploymentId"] != call.deployment:
        raise ApiError(409, f"The publicId {public_id} is used in another deployment")
    else:
        _change(call, report, {k: v for k, v in call.document.items() if k != "source"})
    return shown(call, report)


@resource.put("/{reportId}", needs="ReportEdit", body=bodies.UPDATE)
def update_report(call: Call) -> Any:
    """Change what is given; with ``expectedVersion`` only a report that has this version."""
    report = call.store(Reports).get(call)
    expected = call.body.get("expectedVersion", report["version"])
    if expected != report["version"]:
        raise ApiError(409, f"Report {report['id']} has version {report['version']}")
    if call.body.get("publicId", report["publicId"]) != report["publicId"]:
        raise ApiError(400, ["publicId cannot be changed"])
    _change(call, report, call.document)
    return shown(call, report)


@resource.delete("/{reportId}", needs="ReportManage")
def delete_report(call: Call) -> Response:
    delete(call, call.store(Reports).get(call))
    return call.undeclared()


def delete(call: Call, report: Item) -> None:
    call.store(Reports).delete(report)
    call.record("deleted", "reports", report["id"])


def _create(call: Call, fields: dict[str, Any]) -> Item:
    _check_references(call, fields)
    now = call.server.clock.stamp()
    blank = _blank(call.deployment, call.user, now)
    stored = {name: value for name, value in fields.items() if name not in _WRITE_ONLY}
    report = call.store(Reports).add(**blank | stored)
    report.setdefault("publicId", _public_id(report["id"]))
    _place(call, report, fields)
    call.record("created", "reports", report["id"])
    return report


def _change(call: Call, report: Item, fields: dict[str, Any]) -> None:
    """Apply ``fields``: null moves the report to the root or takes a value away."""
    _check_references(call, fields)
    unchanged = {*_WRITE_ONLY, "publicId", "placementId"}
    for name, value in fields.items():
        if name not in unchanged and (value is not None or name != "name"):
            report[name] = value
    report["version"] += 1
    report["updatedAt"] = call.server.clock.stamp()
    _place(call, report, given(fields))
    call.record("updated", "reports", report["id"])


def _check_references(call: Call, fields: dict[str, Any]) -> None:
    call.store(Folders).check_target(call, fields.get("folderId"))
    if fields.get("workbookId") is not None:
        call.store(Workbooks).known(call, fields["workbookId"])


def _place(call: Call, report: Item, fields: dict[str, Any]) -> None:
    """A report that is written with the address of a spot is placed there too."""
    if "externalWorkbookId" in fields and "resultLocation" in fields:
        call.store(Placements).put(call, report, fields)
