"""Folders of the workspace."""

from __future__ import annotations

from pydantic import Field

from airflow_provider_platform.client.management.shared.ownership import (
    ResourceOwner,
    WorkspaceFolderPathEntry,
)
from airflow_provider_platform.client.operations.models import InputModel, ResponseModel, Timestamp
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery


class Folder(ResponseModel):
    """A folder; `parent_id` None is the root."""

    id: int
    name: str | None = None
    position: int | None = None
    deployment_id: int | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    type: str | None = None
    created_by: int | None = None
    folder_path: list[WorkspaceFolderPathEntry] | None = None
    parent_id: int | None = None
    updated_by: int | None = None
    user: ResourceOwner | None = None


class CreateFolderInput(InputModel):
    """A folder to create."""

    name: str = Field(max_length=255, min_length=1)
    parent_id: int | None = None
    position: int | None = None


class UpdateFolderInput(InputModel):
    """What to change in a folder; to move it see the workspace."""

    name: str | None = Field(default=None, max_length=255)
    position: int | None = None


class FoldersQuery(PageQuery):
    """Folders below which folder; the root's when not given."""

    parent_id: int | None = Field(default=None, ge=0)


_FOLDERS = "/v1/deployments/{deploymentId}/folders"
_FOLDER = _FOLDERS + "/{folderId}"


@endpoint("GET", _FOLDERS, operation_id="getFolders")
def list_folders(
    *, deployment_id: DeploymentId = None, query: FoldersQuery | None = None
) -> Page[Folder]:
    """The folders right below a folder, or below the root."""


@endpoint("POST", _FOLDERS, operation_id="createFolder")
def create_folder(*, body: CreateFolderInput, deployment_id: DeploymentId = None) -> Folder:
    """Create a folder; not repeated when its outcome is unknown."""


@endpoint("PUT", _FOLDER, operation_id="updateFolder", permission="FolderEdit on the folder")
def update_folder(
    *,
    folder_id: int | str,
    deployment_id: DeploymentId = None,
    body: UpdateFolderInput | None = None,
) -> Folder:
    """Rename a folder or change its position; `move_workspace_object` moves it."""


@endpoint("DELETE", _FOLDER, operation_id="deleteFolder", permission="FolderManage on the folder")
def delete_folder(*, folder_id: int | str, deployment_id: DeploymentId = None) -> None:
    """Delete a folder; what is in it goes to the root. Raises PlatformBadRequestError where it
    has sub-folders."""


@endpoint("GET", f"{_FOLDER}/ancestors", operation_id="getFolderAncestors")
def list_folder_ancestors(
    *, folder_id: int | str, deployment_id: DeploymentId = None
) -> Page[Folder]:
    """The way to a folder: the root's folder first, the folder itself last."""
