"""The hook's methods for the data model and its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.client.data_model import (
        BranchResponse,
        DataModelValidationResponse,
        DataModelWriteResponse,
        DevBranchResponse,
        MergeResponse,
        PullResponse,
        SetBranchStagingEnvironmentResponse,
    )


class DataModelMethods(ManagementMethods):
    """Branches of the data model: validate them, work on them, merge them."""

    def list_branches(
        self, *, first: int | None = None, deployment_id: int | str | None = None
    ) -> Iterator[BranchResponse]:
        """The branches of a deployment."""
        from airflow_provider_platform.client.data_model import LIST_BRANCHES
        from airflow_provider_platform.client.paging import Listing, PageQuery

        return self.iterate(
            Listing.of(
                LIST_BRANCHES,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=PageQuery.build(first=first),
            )
        )

    def create_branch(
        self,
        name: str,
        *,
        from_branch: str | None = None,
        activate: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> DevBranchResponse:
        """Create a branch, from another or from the production branch, with `activate` in dev mode.

        Not repeated when its outcome is unknown.
        """
        from airflow_provider_platform.client.data_model import CREATE_BRANCH, CreateBranchRequest

        return self.run(
            CREATE_BRANCH(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CreateBranchRequest.build(name=name, from_=from_branch, activate=activate),
            )
        )

    def remove_branch(
        self,
        branch_name: str,
        *,
        remove_on_upstream: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> DataModelWriteResponse:
        """Delete a branch, with `remove_on_upstream` in the upstream repository too.

        Raises PlatformNotFoundError for an unknown branch, PlatformBadRequestError for the
        production branch.
        """
        from airflow_provider_platform.client.data_model import REMOVE_BRANCH, RemoveBranchQuery

        return self.run(
            REMOVE_BRANCH(
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=RemoveBranchQuery.build(
                    branch_name=branch_name, remove_on_upstream=remove_on_upstream
                ),
            )
        )

    def set_branch_staging_environment(
        self,
        *,
        enabled: bool,
        branch_name: str | None = None,
        branch_id: int | None = None,
        deployment_id: int | str | None = None,
    ) -> SetBranchStagingEnvironmentResponse:
        """Give a branch (exactly one of name and id) an address of its own, or take it away."""
        from airflow_provider_platform.client.data_model import (
            SET_STAGING_ENVIRONMENT,
            SetBranchStagingEnvironmentRequest,
        )

        return self.run(
            SET_STAGING_ENVIRONMENT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=SetBranchStagingEnvironmentRequest.build(
                    enabled=enabled, branch_name=branch_name, branch_id=branch_id
                ),
            )
        )

    def validate_data_model(
        self,
        *,
        branch_name: str | None = None,
        dev_mode: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> DataModelValidationResponse:
        """Compile the data model of a branch, of the caller's dev mode or of the production branch.

        `valid` is False and `errors` says why where it does not compile.
        """
        from airflow_provider_platform.client.data_model import VALIDATE_DATA_MODEL, ValidateQuery

        return self.run(
            VALIDATE_DATA_MODEL(
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=ValidateQuery.build(branch_name=branch_name, dev_mode=dev_mode),
            )
        )

    def start_dev_mode(
        self, *, branch_name: str | None = None, deployment_id: int | str | None = None
    ) -> DevBranchResponse:
        """Enter dev mode: forks a personal branch and returns its name."""
        from airflow_provider_platform.client.data_model import START_DEV_MODE, StartDevModeRequest

        return self.run(
            START_DEV_MODE(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=StartDevModeRequest.build(branch_name=branch_name),
            )
        )

    def stop_dev_mode(self, *, deployment_id: int | str | None = None) -> DataModelWriteResponse:
        """Leave dev mode."""
        from airflow_provider_platform.client.data_model import STOP_DEV_MODE

        return self.run(STOP_DEV_MODE(deployment_id=self.resolve_deployment_id(deployment_id)))

    def commit_changes(
        self,
        *,
        message: str | None = None,
        exit_dev_mode: bool | None = None,
        resolve_merge_conflict: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> DataModelWriteResponse:
        """Commit and push the pending changes of the active branch."""
        from airflow_provider_platform.client.data_model import COMMIT_CHANGES, CommitChangesRequest

        return self.run(
            COMMIT_CHANGES(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CommitChangesRequest.build(
                    message=message,
                    exit_dev_mode=exit_dev_mode,
                    resolve_merge_conflict=resolve_merge_conflict,
                ),
            )
        )

    def pull_branch(
        self, branch_name: str, *, deployment_id: int | str | None = None
    ) -> PullResponse:
        """Pull a branch from its remote; builds it where something changed."""
        from airflow_provider_platform.client.data_model import PULL_BRANCH, PullRequest

        return self.run(
            PULL_BRANCH(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=PullRequest.build(branch_name=branch_name),
            )
        )

    def merge_to_parent(
        self,
        *,
        branch_name: str | None = None,
        branch_id: int | None = None,
        message: str | None = None,
        squash_commits: bool | None = None,
        delete_branch: bool | None = None,
        switch_to_parent_branch: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> MergeResponse:
        """Merge a branch into its parent. Raises PlatformConflictError."""
        from airflow_provider_platform.client.data_model import (
            MERGE_TO_PARENT,
            MergeIntoParentBranchRequest,
        )

        return self.run(
            MERGE_TO_PARENT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=MergeIntoParentBranchRequest.build(
                    branch_name=branch_name,
                    branch_id=branch_id,
                    message=message,
                    squash_commits=squash_commits,
                    delete_branch=delete_branch,
                    switch_to_parent_branch=switch_to_parent_branch,
                ),
            )
        )

    def merge_to_default(
        self,
        *,
        message: str,
        branch_name: str | None = None,
        branch_id: int | None = None,
        remove_branch_after_merge: bool | None = None,
        deployment_id: int | str | None = None,
    ) -> MergeResponse:
        """Merge a branch straight into the production branch."""
        from airflow_provider_platform.client.data_model import (
            MERGE_TO_DEFAULT,
            MergeToDefaultBranchRequest,
        )

        return self.run(
            MERGE_TO_DEFAULT(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=MergeToDefaultBranchRequest.build(
                    message=message,
                    branch_name=branch_name,
                    branch_id=branch_id,
                    remove_branch_after_merge=remove_branch_after_merge,
                ),
            )
        )
