"""Workbooks: list, get, create, update, delete, duplicate, and create or update by slug."""

from __future__ import annotations

import copy
import re
from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.folders import Folders
from airflow_provider_platform.sandbox.management.shared import paging, users
from airflow_provider_platform.sandbox.management.shared.embed_tenants import EmbedAccess
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.management.workbooks import dashboards
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards

resource = Resource("/api/v1/deployments/{deploymentId}/workbooks", needs="WorkbookRead")

_SLUG = r"[a-z0-9][a-z0-9-]*"
_SAMPLES = (
    (301, 1, "Sales overview", "sales-overview", 11),
    (302, 1, "Customer health", None, None),
    (303, 1, "Returns, first draft", None, None),
    (401, 2, "Staging board", None, None),
)


class Workbooks(Items):
    """Workbooks by id: 301 to 303 in deployment 1, 401 in 2; 303 has a draft only."""

    what = "Workbook"

    def __init__(self) -> None:
        super().__init__(
            {
                "id": workbook_id,
                **_blank(deployment, 7, "2026-03-01"),
                "updatedAt": f"2026-06-{workbook_id % 100:02d}T10:00:00.000Z",
                "name": name,
                "folderId": folder,
                "slug": slug,
                "dashboardDraft": dashboards.sample_config(name),
            }
            for workbook_id, deployment, name, slug, folder in _SAMPLES
        )

    def with_slug(self, deployment: int, slug: str) -> Item | None:
        return next((one for one in self.of(deployment) if one["slug"] == slug), None)


def _blank(deployment: int, user_id: int, now: str) -> Item:
    return {
        "name": "Untitled workbook",
        "meta": {},
        "calculatedFields": {},
        "deploymentId": deployment,
        "createdAt": now,
        "updatedAt": now,
        "createdBy": user_id,
        "userId": user_id,
        "folderId": None,
        "slug": None,
        "isFavorite": False,
        "dashboardDraft": None,
    }


resource.collections["workbooks"] = lambda server: server.store(Workbooks).all()
resource.collections["dashboards"] = lambda server: server.store(Dashboards).all()

_FIELDS: checks.Fields = {
    "name": checks.string(max_length=255),
    "folderId": checks.integer(),
    "meta": checks.mapping,
}


def shown(call: Call, workbook: Item) -> Item:
    """A workbook as answers carry it, with its dashboard."""
    dashboard = call.store(Dashboards).of_workbook(workbook["id"])
    return {
        **workbook,
        "type": "WORKBOOK",
        "user": users.owner(workbook["userId"]),
        "folderPath": call.store(Folders).path(workbook["folderId"]),
        "publishedDashboard": dashboard,
        "dashboardPublished": None if dashboard is None else dashboard["config"],
    }


@resource.get(query={"folderId": checks.integer(minimum=0), **paging.PARAMETERS})
def list_workbooks(call: Call) -> Any:
    folder = call.query.get("folderId")
    workbooks = [
        shown(call, workbook)
        for workbook in call.store(Workbooks).of(call.deployment)
        if folder in (None, workbook["folderId"])
    ]
    return paging.page(call, workbooks, deprecated=True)


@resource.get("/{workbookId}")
def get_workbook(call: Call) -> Any:
    return shown(call, call.store(Workbooks).get(call, "workbookId"))


@resource.post(needs="WorkbookEdit", body=_FIELDS)
def create_workbook(call: Call) -> Any:
    return shown(call, _create(call, call.body))


@resource.put("/by-slug/{slug:text}", since="0.3.0", needs="WorkbookEdit", body=_FIELDS)
def upsert_workbook_by_slug(call: Call) -> Any:
    """Create or update; ``meta`` is merged into what is there."""
    slug = _slug(call.path["slug"])
    workbook = call.store(Workbooks).with_slug(call.deployment, slug)
    if workbook is None:
        workbook = _create(call, {**call.body, "slug": slug})
    else:
        merged = workbook["meta"] | call.body.get("meta", {})
        _change(call, workbook, {**call.document, "meta": merged})
    return shown(call, workbook)


@resource.put(
    "/{workbookId}",
    needs="WorkbookEdit",
    body={**_FIELDS, "slug": checks.string(), "slugTakeover": checks.boolean},
)
def update_workbook(call: Call) -> Response:
    """Change what is given; a slug that another workbook has is refused unless it is taken over."""
    store = call.store(Workbooks)
    workbook = store.get(call, "workbookId")
    fields = dict(call.document)
    takeover = fields.pop("slugTakeover", None)
    if fields.get("slug") is not None:
        fields["slug"] = _slug(fields["slug"])
        holder = store.with_slug(call.deployment, fields["slug"])
        if holder is not None and holder is not workbook:
            if not takeover:
                raise ApiError(409, f"The slug {fields['slug']} belongs to another workbook")
            holder["slug"] = None
    _change(call, workbook, fields)
    return call.undeclared()


@resource.delete("/{workbookId}", needs="WorkbookManage")
def delete_workbook(call: Call) -> Response:
    delete(call, call.store(Workbooks).get(call, "workbookId"))
    return call.undeclared()


@resource.post("/{workbookId}/duplicate", body={"shared": checks.boolean})
def duplicate_workbook(call: Call) -> Any:
    """A copy of the caller's own workbook or, ``shared``, of one that embed users see published."""
    original = call.store(Workbooks).get(call, "workbookId")
    draft = original["dashboardDraft"]
    if call.body.get("shared"):
        if not call.store(EmbedAccess).of(original["id"]):
            raise ApiError(404, f"Workbook {original['id']} not found in the shared workspace")
        dashboard = call.store(Dashboards).of_workbook(original["id"])
        if dashboard is None:
            raise ApiError(400, ["only a workbook with a published dashboard can be cloned"])
        draft = dashboard["config"]
    copied = {
        "name": f"Copy of {original['name']}",
        "folderId": original["folderId"],
        "meta": copy.deepcopy(original["meta"]),
        "dashboardDraft": copy.deepcopy(draft),
    }
    return shown(call, _create(call, copied))


def delete(call: Call, workbook: Item) -> None:
    """Delete the workbook and its dashboard."""
    store = call.store(Dashboards)
    dashboard = store.of_workbook(workbook["id"])
    if dashboard is not None:
        store.delete(dashboard)
    call.store(Workbooks).delete(workbook)
    call.record("deleted", "workbooks", workbook["id"])


def _create(call: Call, fields: dict[str, Any]) -> Item:
    store = call.store(Workbooks)
    call.store(Folders).check_target(call, fields.get("folderId"))
    now, caller = call.server.clock.stamp(), call.user
    workbook = store.add(**_blank(call.deployment, caller, now) | fields)
    call.record("created", "workbooks", workbook["id"])
    return workbook


def _change(call: Call, workbook: Item, fields: dict[str, Any]) -> None:
    """Apply ``fields``; a folder or slug of None takes it away, other nulls change nothing."""
    call.store(Folders).check_target(call, fields.get("folderId"))
    for name, value in fields.items():
        if value is not None or name in ("folderId", "slug"):
            workbook[name] = value
    workbook["updatedAt"] = call.server.clock.stamp()
    call.record("updated", "workbooks", workbook["id"])


def _slug(given: str) -> str:
    slug = given.strip().lower()
    if not re.fullmatch(_SLUG, slug):
        raise ApiError(400, [f"slug must match {_SLUG}"])
    return slug
