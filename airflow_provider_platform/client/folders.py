"""Folders of the workspace."""

from __future__ import annotations

from pydantic import Field

from airflow_provider_platform.client.models import AnswerModel, InputModel, Timestamp
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.ownership import ResourceOwner, WorkspaceFolderPathEntry
from airflow_provider_platform.client.paging import Page, PageQuery


class Folder(AnswerModel):
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

LIST_FOLDERS = Endpoint(
    operation_id="getFolders",
    method="GET",
    path=_FOLDERS,
    query=FoldersQuery,
    answer=Page[Folder],
    description="folder list",
)
CREATE_FOLDER = Endpoint(
    operation_id="createFolder",
    method="POST",
    path=_FOLDERS,
    body=CreateFolderInput,
    body_required=True,
    answer=Folder,
    description="folder create",
)
UPDATE_FOLDER = Endpoint(
    operation_id="updateFolder",
    method="PUT",
    path=_FOLDER,
    body=UpdateFolderInput,
    body_required=True,
    answer=Folder,
    description="folder update",
    permission="FolderEdit on the folder",
)
DELETE_FOLDER = Endpoint(
    operation_id="deleteFolder",
    method="DELETE",
    path=_FOLDER,
    answer=type(None),
    description="folder delete",
    permission="FolderManage on the folder",
)
LIST_FOLDER_ANCESTORS = Endpoint(
    operation_id="getFolderAncestors",
    method="GET",
    path=f"{_FOLDER}/ancestors",
    answer=Page[Folder],
    description="folder ancestors",
)
