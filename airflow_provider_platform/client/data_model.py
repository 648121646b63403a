"""The data model: branches, dev mode, validation, and merging to the production branch.

These operations are in the platform's second API, beside the management API on the same host. A
branch that a dbt sync wrote is taken into use by them.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from airflow_provider_platform.client.models import AnswerModel, EmptiableAnswer, InputModel
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.paging import Page, PageQuery


class BranchResponse(AnswerModel):
    """A branch."""

    id: int | None = None
    name: str | None = None
    is_staging_environment_enabled: bool | None = None
    last_hash: str | None = None
    parent_branch: str | None = None


class DevBranchResponse(EmptiableAnswer):
    """The caller's branch in dev mode, if `active`."""

    active: bool | None = None
    branch_name: str | None = None
    parent_branch: str | None = None


class DataModelValidationError(AnswerModel):
    """Why a data model does not compile."""

    message: str | None = None
    file_name: str | None = None


class DataModelValidationResponse(AnswerModel):
    """Whether a branch's data model compiles."""

    deployment_id: int | None = None
    branch_name: str | None = None
    mode: str | None = None
    valid: bool | None = None
    errors: list[DataModelValidationError] | None = None
    cubes_count: int | None = None


class DataModelWriteResponse(EmptiableAnswer):
    """Whether it was done."""

    success: bool | None = None


class PullResponse(AnswerModel):
    """Whether a pull brought something to build."""

    build_triggered: bool | None = None


class MergeResponse(AnswerModel):
    """What a merge did."""

    merged: bool | None = None
    branch_deleted: bool | None = None


class SetBranchStagingEnvironmentResponse(AnswerModel):
    """The branch as it is now."""

    data: BranchResponse | None = None


class CreateBranchRequest(InputModel):
    """A branch to create, `from` another; `activate` enters dev mode on it."""

    name: str = Field(min_length=1)
    activate: bool | None = None
    from_: str | None = Field(default=None, alias="from")


class SetBranchStagingEnvironmentRequest(InputModel):
    """Whether a branch, by id or name, answers at an address of its own."""

    enabled: bool
    branch_id: int | None = None
    branch_name: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_branch(self) -> Self:
        if (self.branch_id is None) == (self.branch_name is None):
            raise ValueError("give exactly one of branch_id and branch_name")
        return self


class StartDevModeRequest(InputModel):
    """The branch to work on."""

    branch_name: str | None = None


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

    branch_id: int | None = None
    branch_name: str | None = None
    delete_branch: bool | None = None
    message: str | None = None
    squash_commits: bool | None = None
    switch_to_parent_branch: bool | None = None


class MergeToDefaultBranchRequest(InputModel):
    """The branch to merge, by id or name, and how."""

    branch_id: int | None = None
    branch_name: str | None = None
    message: str = Field(min_length=1)
    remove_branch_after_merge: bool | None = None


class RemoveBranchQuery(InputModel):
    """The branch to delete, and whether in the upstream repository too."""

    branch_name: str = Field(min_length=1)
    remove_on_upstream: bool | None = None


class ValidateQuery(InputModel):
    """A branch, or the caller's dev mode; the production branch when neither is given."""

    branch_name: str | None = Field(default=None, min_length=1)
    dev_mode: bool | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.branch_name is not None and self.dev_mode is not None:
            raise ValueError("branch_name and dev_mode exclude each other")
        return self


_DEPLOYMENT = "/v1/deployments/{deploymentId}"
_BRANCHES = f"{_DEPLOYMENT}/branches"
_DEV_MODE = f"{_DEPLOYMENT}/dev-mode"
_WRITE = "SchemaUpdate on the deployment"

LIST_BRANCHES = Endpoint(
    operation_id="listBranches",
    api="build",
    method="GET",
    path=_BRANCHES,
    query=PageQuery,
    answer=Page[BranchResponse],
    description="branch list",
    permission="SchemaRead on the deployment",
)
CREATE_BRANCH = Endpoint(
    operation_id="createBranch",
    api="build",
    method="POST",
    path=_BRANCHES,
    body=CreateBranchRequest,
    body_required=True,
    answer=DevBranchResponse,
    description="branch create",
    permission=_WRITE,
)
REMOVE_BRANCH = Endpoint(
    operation_id="removeBranch",
    api="build",
    method="DELETE",
    path=_BRANCHES,
    query=RemoveBranchQuery,
    answer=DataModelWriteResponse,
    description="branch remove",
    permission=_WRITE,
)
SET_STAGING_ENVIRONMENT = Endpoint(
    operation_id="setBranchStagingEnvironment",
    api="build",
    method="PUT",
    path=f"{_BRANCHES}/staging-environment",
    body=SetBranchStagingEnvironmentRequest,
    body_required=True,
    answer=SetBranchStagingEnvironmentResponse,
    description="branch staging environment set",
    permission=_WRITE,
)
VALIDATE_DATA_MODEL = Endpoint(
    operation_id="validateDataModel",
    api="build",
    method="GET",
    path=f"{_DEPLOYMENT}/data-model/validate",
    query=ValidateQuery,
    answer=DataModelValidationResponse,
    description="data model validate",
    permission="SchemaRead on the deployment",
)
START_DEV_MODE = Endpoint(
    operation_id="startDevMode",
    api="build",
    method="POST",
    path=_DEV_MODE,
    body=StartDevModeRequest,
    body_required=True,
    answer=DevBranchResponse,
    description="dev mode start",
    permission=_WRITE,
)
STOP_DEV_MODE = Endpoint(
    operation_id="stopDevMode",
    api="build",
    method="DELETE",
    path=_DEV_MODE,
    answer=DataModelWriteResponse,
    description="dev mode stop",
    permission=_WRITE,
)
COMMIT_CHANGES = Endpoint(
    operation_id="commitChanges",
    api="build",
    method="POST",
    path=f"{_DEPLOYMENT}/commit",
    body=CommitChangesRequest,
    body_required=True,
    answer=DataModelWriteResponse,
    description="commit",
    permission=_WRITE,
)
PULL_BRANCH = Endpoint(
    operation_id="pull",
    api="build",
    method="POST",
    path=f"{_DEPLOYMENT}/pull",
    body=PullRequest,
    body_required=True,
    answer=PullResponse,
    description="branch pull",
    permission=_WRITE,
)
MERGE_TO_PARENT = Endpoint(
    operation_id="mergeIntoParentBranch",
    api="build",
    method="POST",
    path=f"{_DEPLOYMENT}/merge",
    body=MergeIntoParentBranchRequest,
    body_required=True,
    answer=MergeResponse,
    description="branch merge to parent",
    permission=_WRITE,
)
MERGE_TO_DEFAULT = Endpoint(
    operation_id="mergeToDefaultBranch",
    api="build",
    method="POST",
    path=f"{_DEPLOYMENT}/merge-to-default",
    body=MergeToDefaultBranchRequest,
    body_required=True,
    answer=MergeResponse,
    description="branch merge to default",
    permission=_WRITE,
)
