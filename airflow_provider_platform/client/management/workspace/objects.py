"""The workspace: folders, workbooks and reports in one tree; move and delete them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from airflow_provider_platform.client.management.workbooks.workbooks import Workbook
from airflow_provider_platform.client.operations.models import InputModel, ResponseModel
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery

ItemType = Literal["FOLDER", "WORKBOOK", "REPORT"]


class WorkspaceItem(Workbook):
    """A folder, a workbook or a report: `type` tells which; the service types all as workbooks."""


class WorkspaceItemRef(ResponseModel):
    """An item of the workspace."""

    type: str | None = None
    id: int | None = None


class BulkActionError(ResponseModel):
    """Why one of many was not done."""

    status: int | None = None
    message: str | None = None


class WorkspaceBulkFailure(ResponseModel):
    """An item that was not moved or deleted."""

    error: BulkActionError | None = None
    type: str | None = None
    id: int | None = None


class BulkMoveWorkspaceObjectsResponse(ResponseModel):
    """What a bulk move did."""

    moved: list[WorkspaceItem] | None = None
    failed: list[WorkspaceBulkFailure] | None = None


class BulkDeleteWorkspaceObjectsPayload(ResponseModel):
    """What a bulk deletion did."""

    deleted: list[WorkspaceItemRef] | None = None
    failed: list[WorkspaceBulkFailure] | None = None


class WorkspaceItemRefInput(InputModel):
    """An item of the workspace."""

    type: ItemType
    id: int


class MoveWorkspaceObjectInput(WorkspaceItemRefInput):
    """An item and the folder to move it to; `folder_id` None, sent as null, is the root."""

    folder_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that were given, and the folder in any case."""
        return {"folderId": None, **super().to_json()}


class BulkMoveWorkspaceObjectsInput(InputModel):
    """Items and the folder to move them to; `folder_id` None, sent as null, is the root."""

    items: list[WorkspaceItemRefInput] = Field(min_length=1, max_length=100)
    folder_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that were given, and the folder in any case."""
        return {"folderId": None, **super().to_json()}


class BulkDeleteWorkspaceObjectsInput(InputModel):
    """Items to delete."""

    items: list[WorkspaceItemRefInput] = Field(min_length=1, max_length=100)


class WorkspaceQuery(PageQuery):
    """Which items, in which order; the root's without `folder_id`, `search` looks everywhere."""

    folder_id: int | None = None
    types: list[ItemType] | None = None
    order_by_field: Literal["updated_at", "created_at", "name", "viewer_last_viewed_at"] | None = (
        None
    )
    order_by_direction: Literal["ASC", "DESC"] | None = None
    search: str | None = None


_DEPLOYMENT = "/v1/deployments/{deploymentId}"
_WORKSPACE = f"{_DEPLOYMENT}/workspace"


@endpoint("GET", _WORKSPACE, operation_id="workspaceObjects")
def list_workspace(
    *, deployment_id: DeploymentId = None, query: WorkspaceQuery | None = None
) -> Page[WorkspaceItem]:
    """The items of a folder or of the root, folders first; `search` looks everywhere. `type`
    tells what an item is."""


@endpoint("GET", f"{_DEPLOYMENT}/shared-workspace", operation_id="sharedWorkspaceObjects")
def list_shared_workspace(
    *, deployment_id: DeploymentId = None, query: WorkspaceQuery | None = None
) -> Page[WorkspaceItem]:
    """The items that are shared with embed users, as `list_workspace`."""


@endpoint("POST", f"{_WORKSPACE}/move", operation_id="moveWorkspaceObject")
def move_workspace_object(
    *, body: MoveWorkspaceObjectInput, deployment_id: DeploymentId = None
) -> WorkspaceItem:
    """Move an item to a folder, or to the root (`folder_id` None); returns the item."""


@endpoint("POST", f"{_WORKSPACE}/bulk-move", operation_id="bulkMoveWorkspaceObjects")
def bulk_move_workspace_objects(
    *, body: BulkMoveWorkspaceObjectsInput, deployment_id: DeploymentId = None
) -> BulkMoveWorkspaceObjectsResponse:
    """Move up to 100 items, each `{"type", "id"}`, to a folder, or to the root (`folder_id`
    None). What could not be moved is in `failed`, not an error."""


@endpoint("POST", f"{_WORKSPACE}/bulk-delete", operation_id="bulkDeleteWorkspaceObjects")
def bulk_delete_workspace_objects(
    *, body: BulkDeleteWorkspaceObjectsInput, deployment_id: DeploymentId = None
) -> BulkDeleteWorkspaceObjectsPayload:
    """Delete up to 100 items, each `{"type", "id"}`. What could not be deleted is in `failed`,
    not an error."""
