"""The workspace: folders, workbooks and reports in one tree; move and delete them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from airflow_provider_platform.client.models import AnswerModel, InputModel
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.paging import Page, PageQuery
from airflow_provider_platform.client.workbooks import Workbook

ItemType = Literal["FOLDER", "WORKBOOK", "REPORT"]


class WorkspaceItem(Workbook):
    """A folder, a workbook or a report: `type` tells which; the service types all as workbooks."""


class WorkspaceItemRef(AnswerModel):
    """An item of the workspace."""

    type: str | None = None
    id: int | None = None


class BulkActionError(AnswerModel):
    """Why one of many was not done."""

    status: int | None = None
    message: str | None = None


class WorkspaceBulkFailure(AnswerModel):
    """An item that was not moved or deleted."""

    error: BulkActionError | None = None
    type: str | None = None
    id: int | None = None


class BulkMoveWorkspaceObjectsResponse(AnswerModel):
    """What a bulk move did."""

    moved: list[WorkspaceItem] | None = None
    failed: list[WorkspaceBulkFailure] | None = None


class BulkDeleteWorkspaceObjectsPayload(AnswerModel):
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

LIST_WORKSPACE = Endpoint(
    operation_id="workspaceObjects",
    method="GET",
    path=_WORKSPACE,
    query=WorkspaceQuery,
    answer=Page[WorkspaceItem],
    description="workspace list",
)
LIST_SHARED_WORKSPACE = Endpoint(
    operation_id="sharedWorkspaceObjects",
    method="GET",
    path=f"{_DEPLOYMENT}/shared-workspace",
    query=WorkspaceQuery,
    answer=Page[WorkspaceItem],
    description="shared workspace list",
)
MOVE_WORKSPACE_OBJECT = Endpoint(
    operation_id="moveWorkspaceObject",
    method="POST",
    path=f"{_WORKSPACE}/move",
    body=MoveWorkspaceObjectInput,
    body_required=True,
    answer=WorkspaceItem,
    description="workspace move",
)
BULK_MOVE_WORKSPACE_OBJECTS = Endpoint(
    operation_id="bulkMoveWorkspaceObjects",
    method="POST",
    path=f"{_WORKSPACE}/bulk-move",
    body=BulkMoveWorkspaceObjectsInput,
    body_required=True,
    answer=BulkMoveWorkspaceObjectsResponse,
    description="workspace bulk move",
)
BULK_DELETE_WORKSPACE_OBJECTS = Endpoint(
    operation_id="bulkDeleteWorkspaceObjects",
    method="POST",
    path=f"{_WORKSPACE}/bulk-delete",
    body=BulkDeleteWorkspaceObjectsInput,
    body_required=True,
    answer=BulkDeleteWorkspaceObjectsPayload,
    description="workspace bulk delete",
)
