"""Workbooks, their dashboards, and the workspace: what is sent, and what the answers become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.management.workbooks.dashboards import Dashboard
from airflow_provider_platform.client.management.workbooks.workbooks import (
    CreateWorkbookInput,
    DuplicateWorkbookInput,
    PublishDashboardInput,
    UpdatePublishedAiWidgetThreadInput,
    UpdateWorkbookInput,
    Workbook,
    WorkbookDashboardInput,
    attach_ai_widget_thread,
    duplicate_workbook,
    publish_workbook,
    update_workbook,
    update_workbook_dashboard,
    upsert_workbook,
)
from airflow_provider_platform.client.management.workspace.folders import (
    CreateFolderInput,
    Folder,
    FoldersQuery,
    create_folder,
    list_folders,
)
from airflow_provider_platform.client.management.workspace.objects import (
    BulkDeleteWorkspaceObjectsInput,
    BulkMoveWorkspaceObjectsInput,
    MoveWorkspaceObjectInput,
    WorkspaceQuery,
    bulk_delete_workspace_objects,
    bulk_move_workspace_objects,
    list_workspace,
    move_workspace_object,
)


def test_a_workbook_has_the_described_fields() -> None:
    sent = {
        "id": 3,
        "name": "Sales",
        "slug": "sales",
        "user": {"id": 1, "email": "a@example.com", "firstName": "Ann", "picture": None},
        "folderId": 4.0,
        "createdAt": "2026-07-20",
        "publishedDashboard": {"id": 9, "fromSharedWorkspace": True},
    }

    workbook = Workbook.model_validate(sent)

    assert workbook.slug == "sales"
    assert workbook.user is not None
    assert (workbook.user.first_name, workbook.user.email) == ("Ann", "a@example.com")
    assert workbook.folder_id == 4
    assert workbook.published_dashboard is not None
    assert workbook.published_dashboard.from_shared_workspace


def test_a_dashboard_has_the_described_fields() -> None:
    sent = {
        "id": 9,
        "publicId": "pub-1",
        "restrictDataDownload": True,
        "useBoardDashboards": False,
        "fromSharedWorkspace": None,
        "status": "hibernating",
        "config": {
            "widgets": [
                {
                    "id": "w",
                    "type": "HOLOGRAM",
                    "position": {"x": 0, "y": 0, "w": 2, "h": 2, "z": 1},
                }
            ],
            "layout": {"rowHeight": 10, "cols": {"lg": 12}},
        },
        "reportSnapshots": [{"id": 1, "fillMissingRows": None}],
    }

    dashboard = Dashboard.model_validate(sent)

    assert (dashboard.restrict_data_download, dashboard.use_board_dashboards) == (True, False)
    assert dashboard.config is not None
    assert dashboard.config.widgets is not None
    assert dashboard.config.widgets[0].type == "HOLOGRAM"
    assert dashboard.to_json() == sent


def test_update_of_a_workbook_has_the_described_body() -> None:
    body = UpdateWorkbookInput.build(slug="sales", slug_takeover="true")

    operation = update_workbook(deployment_id=7, workbook_id=3, body=body)

    assert (operation.method, operation.path) == ("PUT", "/v1/deployments/7/workbooks/3")
    assert operation.body == {"slug": "sales", "slugTakeover": True}
    assert operation.read(None) is None


@pytest.mark.parametrize(("given", "body"), [({}, {}), ({"shared": True}, {"shared": True})])
def test_duplicating_a_workbook_is_sent_once(given: dict[str, Any], body: dict[str, Any]) -> None:
    operation = duplicate_workbook(
        deployment_id=7, workbook_id=3, body=DuplicateWorkbookInput.build(**given)
    )

    assert operation.path == "/v1/deployments/7/workbooks/3/duplicate"
    assert operation.body == body
    assert not operation.repeatable


def test_an_upsert_by_slug_can_be_repeated() -> None:
    body = CreateWorkbookInput.build(name="Sales", meta={"a": 1})
    operation = upsert_workbook(deployment_id=7, slug="sa/les", body=body)

    assert operation.path == "/v1/deployments/7/workbooks/by-slug/sa%2Fles"
    assert operation.repeatable


def test_publishing_a_config_sends_the_described_body() -> None:
    widget = {"id": "w", "type": "CHART", "position": {"x": 0, "y": 0, "w": 2, "h": 2}}
    body = PublishDashboardInput.build(
        workbook_id=3, title="Sales", config={"kind": "CLASSIC", "widgets": [widget]}
    )

    operation = publish_workbook(deployment_id=7, workbook_id=3, body=body)

    assert operation.body == {
        "workbookId": 3,
        "title": "Sales",
        "config": {"kind": "CLASSIC", "widgets": [widget]},
    }
    assert not operation.repeatable
    assert PublishDashboardInput.build(workbook_id=3, config={}).to_json()["config"] == {}


@pytest.mark.parametrize(
    "config",
    [
        {"widgets": [{"type": "CHART"}]},
        {"widgets": [{"id": "w", "type": "CHART"}]},
        {"kind": "OTHER"},
        {"colour": "red"},
    ],
)
def test_configs_that_cannot_be_published_are_refused(config: Any) -> None:
    with pytest.raises(PlatformInputError, match="config"):
        PublishDashboardInput.build(workbook_id=3, config=config)


def test_widgets_of_a_draft_need_no_id() -> None:
    position = {"x": 0, "y": 0, "w": 2, "h": 2}
    draft = {"widgets": [{"type": "TEXT", "position": position}], "theme": {"themeId": "t"}}

    operation = update_workbook_dashboard(
        deployment_id=7, workbook_id=3, body=WorkbookDashboardInput.build(dashboard_draft=draft)
    )

    assert operation.body == {"dashboardDraft": draft}


def test_ai_widget_thread_has_the_described_body() -> None:
    body = UpdatePublishedAiWidgetThreadInput.build(thread_id="t", widget_id="w", checksum="c")

    operation = attach_ai_widget_thread(deployment_id=7, workbook_id=3, body=body)

    assert operation.path == "/v1/deployments/7/workbooks/3/dashboard/ai-widget-thread"
    assert operation.body == {"threadId": "t", "widgetId": "w", "checksum": "c"}
    with pytest.raises(PlatformInputError, match="widget_id"):
        UpdatePublishedAiWidgetThreadInput.build(thread_id="t")


def test_folders_have_the_described_query_and_fields() -> None:
    query = FoldersQuery.build(parent_id=2, first=10)
    folder = Folder.model_validate(
        {"id": 5, "name": "F", "folderPath": [{"id": 2, "name": "P"}], "createdAt": "2026-07-20"}
    )

    assert list_folders(deployment_id=7, query=query).query == {"parentId": 2, "first": 10}
    assert folder.folder_path is not None
    assert folder.folder_path[0].name == "P"
    body = CreateFolderInput.build(name="F", parent_id=2)
    assert create_folder(deployment_id=7, body=body).body == {"name": "F", "parentId": 2}
    for bad in ({"name": ""}, {"name": "x" * 256}, {}):
        with pytest.raises(PlatformInputError, match="name"):
            CreateFolderInput.build(**bad)


@pytest.mark.parametrize(("folder", "sent"), [(4, 4), (None, None)])
def test_move_sends_the_folder_and_null_for_the_root(folder: int | None, sent: Any) -> None:
    body = MoveWorkspaceObjectInput.build(type="REPORT", id=1, folder_id=folder)

    assert move_workspace_object(deployment_id=7, body=body).body == {
        "type": "REPORT",
        "id": 1,
        "folderId": sent,
    }


def test_bulk_move_and_deletion_have_the_described_bodies() -> None:
    items = [{"type": "REPORT", "id": 1}, {"type": "FOLDER", "id": 2}]
    move = bulk_move_workspace_objects(
        deployment_id=7, body=BulkMoveWorkspaceObjectsInput.build(items=items)
    )
    delete = bulk_delete_workspace_objects(
        deployment_id=7, body=BulkDeleteWorkspaceObjectsInput.build(items=items)
    )

    assert move.body == {"folderId": None, "items": items}
    assert delete.body == {"items": items}
    outcome = move.read(
        {
            "moved": [{"id": 1, "type": "REPORT"}],
            "failed": [{"type": "FOLDER", "id": 2, "error": {"status": 404, "message": "gone"}}],
        }
    )
    assert outcome.failed is not None
    assert outcome.failed[0].error is not None
    assert outcome.failed[0].error.message == "gone"


@pytest.mark.parametrize("count", [0, 101])
def test_bulk_request_needs_1_to_100_items(count: int) -> None:
    with pytest.raises(PlatformInputError, match="items"):
        BulkDeleteWorkspaceObjectsInput.build(items=[{"type": "REPORT", "id": 1}] * count)


def test_the_workspace_can_be_filtered_and_sorted() -> None:
    query = WorkspaceQuery.build(
        types=["REPORT", "WORKBOOK"], order_by_field="name", order_by_direction="DESC", search="x"
    )

    assert list_workspace(deployment_id=7, query=query).query == {
        "types": ["REPORT", "WORKBOOK"],
        "orderByField": "name",
        "orderByDirection": "DESC",
        "search": "x",
    }
    with pytest.raises(PlatformInputError):
        WorkspaceQuery.build(types=["PIGEON"])
