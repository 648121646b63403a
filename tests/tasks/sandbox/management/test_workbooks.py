"""Workbooks and their dashboards: create, slug, duplicate, publish, AI widget, embed access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

PATH = "deployments/1/workbooks"
WIDGET = {"id": "w", "type": "TEXT", "position": {"x": 0, "y": 0, "w": 1, "h": 1}}


def get(platform: Platform, workbook: int) -> dict[str, Any]:
    response = platform.call("GET", f"{PATH}/{workbook}")
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_workbooks_are_listed_and_read(platform: Platform) -> None:
    page = platform.call("GET", PATH, params={"first": 2}).json()
    assert [item["id"] for item in page["items"]] == [301, 302]
    assert page["data"] == page["items"]
    assert page["count"] == 3
    in_folder = platform.call("GET", f"{PATH}?folderId=11").json()["items"]
    assert [item["id"] for item in in_folder] == [301]
    workbook = get(platform, 301)
    assert workbook["publishedDashboard"]["publicId"] == "dash00000501"
    assert workbook["user"]["email"] == "analyst@acme.example.com"
    assert get(platform, 303)["publishedDashboard"] is None


def test_creating_is_not_idempotent(platform: Platform) -> None:
    body = {"name": "Forecast", "folderId": 13, "meta": {"by": "dag"}}
    ids = [platform.call("POST", PATH, json=body).json()["id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert [entry.id for entry in platform.control.state().changed("workbooks")] == ids
    assert get(platform, ids[0])["meta"] == {"by": "dag"}


def test_update_changes_only_the_given_fields_and_returns_no_body(platform: Platform) -> None:
    response = platform.call("PUT", f"{PATH}/301", json={"name": "Sales", "folderId": None})
    assert (response.status_code, response.content) == (200, b"")
    workbook = get(platform, 301)
    assert (workbook["name"], workbook["folderId"]) == ("Sales", None)
    assert workbook["slug"] == "sales-overview"


def test_slug_of_another_workbook_is_taken_only_with_slug_takeover(platform: Platform) -> None:
    refused = platform.call("PUT", f"{PATH}/302", json={"slug": "sales-overview"})
    assert refused.status_code == 409
    assert "belongs to another" in refused.json()["message"]
    body = {"slug": "sales-overview", "slugTakeover": True}
    assert platform.call("PUT", f"{PATH}/302", json=body).status_code == 200
    assert get(platform, 302)["slug"] == "sales-overview"
    assert get(platform, 301)["slug"] is None


def test_workbook_is_created_or_updated_by_its_slug(platform: Platform) -> None:
    path = f"{PATH}/by-slug/weekly-review"
    first = platform.call("PUT", path, json={"name": "Review", "meta": {"a": 1}}).json()
    second = platform.call("PUT", path, json={"meta": {"b": 2}}).json()
    assert first["id"] == second["id"]
    assert second["slug"] == "weekly-review"
    assert (second["name"], second["meta"]) == ("Review", {"b": 2})


def test_duplicated_workbook_is_a_new_draft(platform: Platform) -> None:
    copied = platform.call("POST", f"{PATH}/301/duplicate").json()
    assert copied["name"] == "Copy of Sales overview"
    assert copied["slug"] is copied["publishedDashboard"] is None
    assert copied["dashboardDraft"] == get(platform, 301)["dashboardDraft"]
    shared = platform.call("POST", f"{PATH}/302/duplicate", json={"shared": True})
    assert shared.status_code == 200
    unpublished = platform.call("POST", f"{PATH}/303/duplicate", json={"shared": True})
    assert unpublished.status_code == 400
    assert len(platform.control.state().changed("workbooks")) == 2


def test_draft_or_config_can_be_published(platform: Platform) -> None:
    path = f"{PATH}/303/publish"
    first = platform.call("POST", path, json={"workbookId": 303, "allowEmbed": True}).json()
    assert (first["versionNumber"], first["allowEmbed"]) == (1, True)
    assert first["config"] == get(platform, 303)["dashboardDraft"]
    body = {"workbookId": 303, "dashboardId": first["id"], "config": {"widgets": [WIDGET]}}
    second = platform.call("POST", path, json=body).json()
    assert (second["versionNumber"], second["id"]) == (2, first["id"])
    assert second["config"]["widgets"] == [WIDGET]
    assert get(platform, 303)["dashboardPublished"] == second["config"]
    assert len(platform.control.state().changed("dashboards", "published")) == 2


def test_a_draft_is_saved(platform: Platform) -> None:
    nameless = {name: value for name, value in WIDGET.items() if name != "id"}
    body = {"dashboardDraft": {"title": "Löhne", "widgets": [nameless]}}
    saved = platform.call("PUT", f"{PATH}/303/dashboard", json=body).json()
    assert saved["dashboardDraft"]["widgets"][0]["id"]
    assert saved["dashboardPublished"] is None


def test_ai_widget_thread_can_be_read(platform: Platform) -> None:
    path = f"{PATH}/301/dashboard/ai-widget-thread"
    body = {"threadId": "thread-1", "widgetId": "ai-1", "checksum": "abc"}
    dashboard = platform.call("POST", path, json=body).json()
    widget = next(w for w in dashboard["config"]["widgets"] if w["id"] == "ai-1")
    assert widget["config"] == {"threadId": "thread-1", "checksum": "abc"}
    assert dashboard["id"] == 501
    assert platform.control.state().changed("ai-widget-threads", "updated")[0].id == 501


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "401", None, 404, "Workbook 401 not found in deployment 1"),
        ("GET", "one", None, 400, "workbookId must be an integer"),
        ("PUT", "301", {"title": "x"}, 400, "property title should not exist"),
        ("PUT", "301", {"folderId": 21}, 404, "Folder 21 not found in deployment 1"),
        ("PUT", "999", {}, 404, "Workbook 999"),
        ("POST", "301/duplicate", {"name": "x"}, 400, "name should not exist"),
        ("POST", "301/duplicate", {"shared": "yes"}, 400, "shared must be a boolean"),
        ("POST", "301/publish", {}, 400, "workbookId is required"),
        ("POST", "301/publish", {"workbookId": 302}, 400, "one of the path"),
        ("POST", "301/publish", {"workbookId": 301, "dashboardId": 502}, 404, "Dashboard 502"),
        (
            "POST",
            "301/publish",
            {"workbookId": 301, "config": {"widgets": [{"type": "TEXT"}]}},
            400,
            "config.widgets[0].id is required",
        ),
        ("POST", "301/dashboard/ai-widget-thread", {"threadId": "t"}, 400, "widgetId is required"),
        (
            "POST",
            "301/dashboard/ai-widget-thread",
            {"threadId": "t", "widgetId": "chart-1"},
            400,
            "no AI widget",
        ),
        (
            "POST",
            "301/dashboard/ai-widget-thread",
            {"threadId": "t", "widgetId": "x"},
            404,
            "Widget x not found",
        ),
        (
            "POST",
            "303/dashboard/ai-widget-thread",
            {"threadId": "t", "widgetId": "ai-1"},
            404,
            "no published dashboard",
        ),
    ],
)
def test_invalid_workbooks_requests_are_refused(
    platform: Platform, method: str, path: str, body: Any, status: int, words: str
) -> None:
    response = platform.call(method, f"{PATH}/{path}", **({} if body is None else {"json": body}))
    assert response.status_code == status
    assert words in str(response.json()["message"])


def test_workbook_operations_need_their_permissions(platform: Platform) -> None:
    platform.control.set(token_lacks=["WorkbookEdit", "WorkbookManage"])
    assert platform.call("GET", f"{PATH}/301").status_code == 200
    for method, path in (("PUT", "301"), ("DELETE", "301"), ("POST", "301/publish")):
        response = platform.call(method, f"{PATH}/{path}")
        assert (response.status_code, "Workbook" in response.json()["message"]) == (403, True)
