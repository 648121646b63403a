"""The data model: branches, validation, and merging to the production branch.

These operations are in the platform's second API, beside the management API on the same host. A
branch that a dbt sync wrote is taken into use by them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AliasChoices, Field
from pydantic.alias_generators import to_snake

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.operations.models import (
    NEVER_NULL,
    EmptiableResponse,
    InputModel,
    QueryModel,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery
from airflow_provider_platform.client.operations.rules import Rule, at_most_one, exactly_one


class BranchResponse(ResponseModel):
    """A branch."""

    id: int | None = None
    name: str | None = None
    is_staging_environment_enabled: bool | None = None
    last_hash: str | None = None
    parent_branch: str | None = None


class DevBranchResponse(EmptiableResponse):
    """The caller's branch in dev mode, if `active`."""

    active: bool | None = None
    branch_name: str | None = None
    parent_branch: str | None = None


class DataModelValidationError(ResponseModel):
    """Why a data model does not compile."""

    message: str | None = None
    file_name: str | None = None


class DataModelValidationResponse(ResponseModel):
    """Whether a branch's data model compiles."""

    deployment_id: int | None = None
    branch_name: str | None = None
    mode: str | None = None
    valid: bool | None = None
    errors: list[DataModelValidationError] | None = None
    cubes_count: int | None = None


class DataModelWriteResponse(EmptiableResponse):
    """Whether it was done."""

    success: bool | None = None


class PullResponse(ResponseModel):
    """Whether a pull brought something to build."""

    build_triggered: bool | None = None


class MergeResponse(ResponseModel):
    """What a merge did."""

    merged: bool | None = None
    branch_deleted: bool | None = None


class SetBranchStagingEnvironmentResponse(EmptiableResponse):
    """The branch as it is now."""

    data: BranchResponse | None = None


class CreateBranchRequest(InputModel):
    """A branch to create, `from` another; `activate` enters dev mode on it."""

    name: str = Field(min_length=1)
    activate: bool | None = None
    from_branch: str | None = Field(default=None, alias="from")


class SetBranchStagingEnvironmentRequest(InputModel):
    """Whether a branch, by id or name, answers at an address of its own."""

    enabled: bool
    branch_id: int | None = None
    branch_name: str | None = Field(default=None, min_length=1)

    rules: ClassVar[tuple[Rule, ...]] = ((("branch_id", "branch_name"), exactly_one),)


class CommitChangesRequest(InputModel):
    """How to commit the pending changes."""

    exit_dev_mode: bool | None = None
    message: str | None = None
    resolve_merge_conflict: bool | None = None


class PullRequest(InputModel):
    """The branch to pull."""

    branch_name: str = Field(min_length=1)


class MergeIntoParentBranchRequest(InputModel):
    """The branch to merge, by id or name, and how."""

    branch_id: Annotated[int | None, NEVER_NULL] = None
    branch_name: Annotated[str | None, NEVER_NULL] = None
    delete_branch: bool | None = None
    message: str | None = None
    squash_commits: bool | None = None
    switch_to_parent_branch: bool | None = None


class MergeToDefaultBranchRequest(InputModel):
    """The branch to merge, by id or name, and how; `delete_branch` is the service's
    `removeBranchAfterMerge`."""

    branch_id: Annotated[int | None, NEVER_NULL] = None
    branch_name: Annotated[str | None, NEVER_NULL] = None
    message: str = Field(min_length=1)
    delete_branch: bool | None = Field(
        default=None,
        validation_alias=AliasChoices("removeBranchAfterMerge", "remove_branch_after_merge"),
        serialization_alias="removeBranchAfterMerge",
    )

    @staticmethod
    def caller_name(name: str) -> str:
        snake = to_snake(name)
        return "delete_branch" if snake == "remove_branch_after_merge" else snake


class RemoveBranchQuery(QueryModel):
    """The branch to delete, and whether in the upstream repository too."""

    branch_name: str = Field(min_length=1)
    remove_on_upstream: bool | None = None


class ValidateQuery(QueryModel):
    """A branch, or the caller's dev mode; the production branch when neither is given."""

    branch_name: str | None = Field(default=None, min_length=1)
    dev_mode: bool | None = None

    rules: ClassVar[tuple[Rule, ...]] = ((("branch_name", "dev_mode"), at_most_one),)


_DEPLOYMENT = "/build/api/v1/deployments/{deploymentId}"
_BRANCHES = f"{_DEPLOYMENT}/branches"
_READ = "SchemaRead on the deployment"
_WRITE = "SchemaUpdate on the deployment"
_WRITE_BRANCH = (
    "SchemaUpdate on the deployment (roles Developer and Admin have it), or "
    "SchemaUpdateDevBranches if the branch is not the production branch"
)


_MERGE = (
    "SchemaUpdate on the deployment (roles Developer and Admin have it). SchemaUpdateDevBranches "
    "is not enough to merge into the production branch"
)


@endpoint("GET", _BRANCHES, operation_id="listBranches", permission=_READ)
def list_branches(
    *, deployment_id: DeploymentId = None, query: PageQuery | None = None
) -> Page[BranchResponse]:
    """The branches of a deployment."""


@endpoint("POST", _BRANCHES, operation_id="createBranch", permission=_WRITE)
def create_branch(
    *, body: CreateBranchRequest, deployment_id: DeploymentId = None
) -> DevBranchResponse:
    """Create a branch, from another or from the production branch, with `activate` in dev mode.

    Not repeated when its outcome is unknown."""


@endpoint("DELETE", _BRANCHES, operation_id="removeBranch", permission=_WRITE_BRANCH)
def remove_branch(
    *, query: RemoveBranchQuery, deployment_id: DeploymentId = None
) -> DataModelWriteResponse:
    """Delete a branch, with `remove_on_upstream` in the upstream repository too.

    Raises PlatformNotFoundError for an unknown branch, PlatformBadRequestError for the
    production branch."""


@endpoint(
    "PUT",
    f"{_BRANCHES}/staging-environment",
    operation_id="setBranchStagingEnvironment",
    permission=_WRITE_BRANCH,
)
def set_branch_staging_environment(
    *, body: SetBranchStagingEnvironmentRequest, deployment_id: DeploymentId = None
) -> SetBranchStagingEnvironmentResponse:
    """Give a branch (exactly one of name and id) an address of its own, or take it away."""


@endpoint(
    "GET", f"{_DEPLOYMENT}/data-model/validate", operation_id="validateDataModel", permission=_READ
)
def validate_data_model(
    *, deployment_id: DeploymentId = None, query: ValidateQuery | None = None
) -> DataModelValidationResponse:
    """Compile the data model of a branch, of the caller's dev mode or of the production branch.

    `valid` is False and `errors` says why where it does not compile."""


@endpoint("POST", f"{_DEPLOYMENT}/commit", operation_id="commitChanges", permission=_WRITE)
def commit_changes(
    *, deployment_id: DeploymentId = None, body: CommitChangesRequest | None = None
) -> DataModelWriteResponse:
    """Commit and push the pending changes of the active branch."""


@endpoint("POST", f"{_DEPLOYMENT}/pull", operation_id="pull", permission=_WRITE)
def pull_branch(*, body: PullRequest, deployment_id: DeploymentId = None) -> PullResponse:
    """Pull a branch from its remote; builds it where something changed."""


@endpoint("POST", f"{_DEPLOYMENT}/merge", operation_id="mergeIntoParentBranch", permission=_MERGE)
def merge_to_parent(
    *, deployment_id: DeploymentId = None, body: MergeIntoParentBranchRequest | None = None
) -> MergeResponse:
    """Merge a branch into its parent. Raises PlatformConflictError."""


@endpoint(
    "POST",
    f"{_DEPLOYMENT}/merge-to-default",
    operation_id="mergeToDefaultBranch",
    permission=_MERGE,
)
def merge_to_default(
    *, body: MergeToDefaultBranchRequest, deployment_id: DeploymentId = None
) -> MergeResponse:
    """Merge a branch straight into the production branch."""


def name_branch(deployment_id: int, branch_name: str) -> str:
    """Return the name of a branch that ends the message of an error."""
    return f"branch {quote_service(branch_name)}, deployment {deployment_id}"
