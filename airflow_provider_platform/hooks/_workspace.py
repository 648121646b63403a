"""The hook's methods for the workspace and its folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from airflow_provider_platform.client.folders import Folder
    from airflow_provider_platform.client.workspace import (
        BulkDeleteWorkspaceObjectsPayload,
        BulkMoveWorkspaceObjectsResponse,
        ItemType,
        WorkspaceItem,
    )


class WorkspaceMethods(ManagementMethods):
    """Folders; the workspace as one tree of folders, workbooks and reports."""

    def list_folders(
        self,
        *,
        parent_id: int | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[Folder]:
        """The folders right below a folder, or below the root."""
        from airflow_provider_platform.client.folders import LIST_FOLDERS, FoldersQuery
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_FOLDERS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=FoldersQuery.build(parent_id=parent_id, first=first),
            )
        )

    def create_folder(
        self,
        *,
        name: str,
        parent_id: int | None = None,
        position: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Folder:
        """Create a folder; not repeated when its outcome is unknown."""
        from airflow_provider_platform.client.folders import CREATE_FOLDER, CreateFolderInput

        return self.run(
            CREATE_FOLDER(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CreateFolderInput.build(name=name, parent_id=parent_id, position=position),
            )
        )

    def update_folder(
        self,
        folder_id: int | str,
        *,
        name: str | None = None,
        position: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Folder:
        """Rename a folder or change its position; `move_workspace_object` moves it."""
        from airflow_provider_platform.client.folders import UPDATE_FOLDER, UpdateFolderInput

        return self.run(
            UPDATE_FOLDER(
                deployment_id=self.resolve_deployment_id(deployment_id),
                folder_id=folder_id,
                body=UpdateFolderInput.build(name=name, position=position),
            )
        )

    def delete_folder(
        self, folder_id: int | str, *, deployment_id: int | str | None = None
    ) -> None:
        """Delete a folder; what is in it goes to the root. Raises PlatformBadRequestError where it
        has sub-folders."""
        from airflow_provider_platform.client.folders import DELETE_FOLDER

        self.run(
            DELETE_FOLDER(
                deployment_id=self.resolve_deployment_id(deployment_id), folder_id=folder_id
            )
        )

    def list_folder_ancestors(
        self, folder_id: int | str, *, deployment_id: int | str | None = None
    ) -> Iterator[Folder]:
        """The way to a folder: the root's folder first, the folder itself last."""
        from airflow_provider_platform.client.folders import LIST_FOLDER_ANCESTORS
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_FOLDER_ANCESTORS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                folder_id=folder_id,
            )
        )

    def list_workspace(
        self,
        *,
        folder_id: int | None = None,
        types: list[ItemType] | None = None,
        search: str | None = None,
        order_by_field: Literal["updated_at", "created_at", "name", "viewer_last_viewed_at"]
        | None = None,
        order_by_direction: Literal["ASC", "DESC"] | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[WorkspaceItem]:
        """The items of a folder or of the root, folders first; `search` looks everywhere. `type`
        tells what an item is."""
        from airflow_provider_platform.client.paging import Listing
        from airflow_provider_platform.client.workspace import LIST_WORKSPACE, WorkspaceQuery

        return self.iterate(
            Listing.of(
                LIST_WORKSPACE,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=WorkspaceQuery.build(
                    folder_id=folder_id,
                    types=types,
                    search=search,
                    order_by_field=order_by_field,
                    order_by_direction=order_by_direction,
                    first=first,
                ),
            )
        )

    def list_shared_workspace(
        self,
        *,
        folder_id: int | None = None,
        types: list[ItemType] | None = None,
        search: str | None = None,
        order_by_field: Literal["updated_at", "created_at", "name", "viewer_last_viewed_at"]
        | None = None,
        order_by_direction: Literal["ASC", "DESC"] | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[WorkspaceItem]:
        """The items that are shared with embed users, as `list_workspace`."""
        from airflow_provider_platform.client.paging import Listing
        from airflow_provider_platform.client.workspace import LIST_SHARED_WORKSPACE, WorkspaceQuery

        return self.iterate(
            Listing.of(
                LIST_SHARED_WORKSPACE,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=WorkspaceQuery.build(
                    folder_id=folder_id,
                    types=types,
                    search=search,
                    order_by_field=order_by_field,
                    order_by_direction=order_by_direction,
                    first=first,
                ),
            )
        )

    def move_workspace_object(
        self,
        type: ItemType,
        id: int,
        *,
        folder_id: int | None,
        deployment_id: int | str | None = None,
    ) -> WorkspaceItem:
        """Move an item to a folder, or to the root (`folder_id` None); returns the item."""
        from airflow_provider_platform.client.workspace import (
            MOVE_WORKSPACE_OBJECT,
            MoveWorkspaceObjectInput,
        )

        deployment = self.resolve_deployment_id(deployment_id)
        body = MoveWorkspaceObjectInput.build(type=type, id=id, folder_id=folder_id)
        return self.run(MOVE_WORKSPACE_OBJECT(deployment_id=deployment, body=body))

    def bulk_move_workspace_objects(
        self, items: Sequence[Any], *, folder_id: int | None, deployment_id: int | str | None = None
    ) -> BulkMoveWorkspaceObjectsResponse:
        """Move up to 100 items, each `{"type", "id"}`, to a folder, or to the root (`folder_id`
        None). What could not be moved is in `failed`, not an error."""
        from airflow_provider_platform.client.workspace import (
            BULK_MOVE_WORKSPACE_OBJECTS,
            BulkMoveWorkspaceObjectsInput,
        )

        deployment = self.resolve_deployment_id(deployment_id)
        body = BulkMoveWorkspaceObjectsInput.build(items=items, folder_id=folder_id)
        return self.run(BULK_MOVE_WORKSPACE_OBJECTS(deployment_id=deployment, body=body))

    def bulk_delete_workspace_objects(
        self, *, items: Sequence[Any], deployment_id: int | str | None = None
    ) -> BulkDeleteWorkspaceObjectsPayload:
        """Delete up to 100 items, each `{"type", "id"}`. What could not be deleted is in `failed`,
        not an error."""
        from airflow_provider_platform.client.workspace import (
            BULK_DELETE_WORKSPACE_OBJECTS,
            BulkDeleteWorkspaceObjectsInput,
        )

        return self.run(
            BULK_DELETE_WORKSPACE_OBJECTS(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=BulkDeleteWorkspaceObjectsInput.build(items=items),
            )
        )
