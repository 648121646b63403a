"""Branches of the data model, and merges to the production branch.

These operations are in the platform's second API, beside the management API on the same host. A
branch that a dbt sync wrote is taken into use by them.
"""

from __future__ import annotations

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.operations.models import EmptiableResponse, ResponseModel
from airflow_provider_platform.client.operations.operation import typed
from airflow_provider_platform.client.operations.paging import Page


class BranchResponse(ResponseModel):
    """A branch."""

    name: str | None = None
    is_staging_environment_enabled: bool | None = None
    last_hash: str | None = None
    parent_branch: str | None = None


class StagingEnvironmentResponse(EmptiableResponse):
    """The branch as it is now."""

    data: BranchResponse | None = None


class MergeResponse(ResponseModel):
    """What a merge did."""

    merged: bool | None = None
    branch_deleted: bool | None = None


_WRITE_BRANCH = (
    "SchemaUpdate on the deployment (roles Developer and Admin have it), or "
    "SchemaUpdateDevBranches if the branch is not the production branch"
)
_MERGE = (
    "SchemaUpdate on the deployment (roles Developer and Admin have it). SchemaUpdateDevBranches "
    "is not enough to merge into the production branch"
)

list_branches = typed("listBranches", Page[BranchResponse])
remove_branch = typed("removeBranch", EmptiableResponse, permission=_WRITE_BRANCH)
set_branch_staging_environment = typed(
    "setBranchStagingEnvironment", StagingEnvironmentResponse, permission=_WRITE_BRANCH
)
merge_to_parent = typed("mergeIntoParentBranch", MergeResponse, permission=_MERGE)
merge_to_default = typed("mergeToDefaultBranch", MergeResponse, permission=_MERGE)


def name_branch(deployment_id: int, branch_name: str) -> str:
    """Return the name of a branch that ends the message of an error."""
    return f"branch {quote_service(branch_name)}, deployment {deployment_id}"
