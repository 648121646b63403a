"""Branches of the data model: which there are, how one is opened so that it can be asked and
queried, its address, and how it is closed and deleted.

These operations are in the platform's second API, beside the management API on the same host.

A branch that a dbt sync wrote is not served until its staging environment is switched on. The
switch belongs to the branch: everybody sees and uses the same one. So opening reports whether it
was on before, and only a branch that was off before is closed again.

A tenant that lacks an operation and one that does not know the branch answer in the same way. The
list of branches decides which of the two it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_platform.client.argument_rules import check_branch_name
from airflow_provider_platform.client.connection_fields import DATA_PATH, data_address
from airflow_provider_platform.client.errors import (
    BranchNotWrittenError,
    OperationMissingError,
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformInputError,
    PlatformPermissionError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.models import EmptiableResponse, ResponseModel
from airflow_provider_platform.client.operation import Operation, typed
from airflow_provider_platform.client.pages import Page, PageWalk
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.deployments import (
    DeploymentEnvironment,
    data_api_base,
    get_deployment_settings,
    list_environments,
)
from airflow_provider_platform.resources.missing_operations import (
    may_be_missing,
    raise_if_missing,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


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

    merged: bool
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


@dataclass(frozen=True)
class NotDeleted:
    """A branch was not deleted, and why. `exists`: whether it still exists."""

    reason: str
    exists: bool


async def is_open(
    api: Api, deployment_id: int, branch_name: str, *, deadline: float | None = None
) -> bool:
    """Return whether the staging environment of a branch is on. `deadline` in Unix time.

    Raises BranchNotWrittenError, OperationMissingError, and the errors of requests.
    """
    branch = await _find_branch(api, deployment_id, branch_name, deadline)
    return bool(branch.is_staging_environment_enabled)


async def open_branch(
    api: Api, deployment_id: int, branch_name: str, *, deadline: float | None = None
) -> str | None:
    """Switch the staging environment of a branch on. Returns the branch's commit, None if the
    service does not say it. Switching it on again changes nothing.

    Raises BranchNotWrittenError, OperationMissingError, and the errors of requests.
    """
    body = {"branchName": branch_name, "enabled": True}
    operation = set_branch_staging_environment(deployment_id=deployment_id, body=body)
    try:
        answer = await api.call(operation, deadline=deadline)
    except PlatformError as error:
        await _raise_if_missing(api, deployment_id, branch_name, error, deadline)
        raise
    return (answer.data or BranchResponse()).last_hash


async def close_branch(api: Api, deployment_id: int, branch_name: str) -> str | None:
    """Switch the staging environment of a branch off. Returns why there was nothing to switch off;
    None if the branch was closed. Raises the errors of requests, also for a wrong address and an
    unknown deployment, because the branch would stay open."""
    body = {"branchName": branch_name, "enabled": False}
    operation = set_branch_staging_environment(deployment_id=deployment_id, body=body)
    try:
        await api.call(operation)
    except PlatformError as error:
        try:
            await _raise_if_missing(api, deployment_id, branch_name, error, None)
        except BranchNotWrittenError:
            return "the branch no longer exists"
        except OperationMissingError:
            return "this tenant has no staging environments"
        raise
    return None


async def delete_branch(
    api: Api,
    deployment_id: int,
    branch_name: str,
    *,
    remove_on_upstream: bool,
    commit: str | None = None,
) -> NotDeleted | None:
    """Delete a branch; with `commit` only if the branch is at this commit. Returns why it was not
    deleted; None if it was deleted. Raises the errors of requests; PlatformBadRequestError for the
    production branch."""
    try:
        if commit is not None:
            branch = await _find_branch(api, deployment_id, branch_name, None)
            if branch.last_hash != commit:
                return NotDeleted(
                    f"it is at commit {quote_service(branch.last_hash or 'unknown')}, and only "
                    f"commit {quote_service(commit)} may be deleted",
                    exists=True,
                )
        query = {"branchName": branch_name, "removeOnUpstream": remove_on_upstream}
        try:
            await api.call(remove_branch(deployment_id=deployment_id, query=query))
        except PlatformError as error:
            await _raise_if_missing(api, deployment_id, branch_name, error, None)
            raise
    except BranchNotWrittenError:
        return NotDeleted("the branch no longer exists", exists=False)
    except OperationMissingError:
        return NotDeleted("this tenant has no operation that deletes branches", exists=True)
    return None


async def refuse_production(api: Api, deployment_id: int, branch_name: str) -> None:
    """Raise PlatformInputError for the production branch: beside itself everything is the same. A
    tenant that does not name its production branch is not checked."""
    if api.config.management_url is None:
        return
    try:
        settings = await api.call(get_deployment_settings(deployment_id=deployment_id))
    except (PlatformAddressError, PlatformApiError) as error:
        if error.retryable:
            raise
        return
    if settings.deploy_branch_name == branch_name:
        raise PlatformInputError(
            "Nothing was asked: this is the production branch, and the task compares a branch with "
            "production. Set branch_name to another branch.",
            field="branch_name",
            where=name_branch(deployment_id, branch_name),
        )


async def find_branch_address(
    api: Api,
    deployment_id: int,
    branch_name: str,
    *,
    deadline: float | None = None,
) -> str:
    """Return the data API address of a branch, in the form of the connection's `data_api_url`.

    The address comes from the service's list of staging environments. If the branch is not in the
    list, its address is derived from production's: `data_api_url`, or the deployment's. Raises
    PlatformInputError for a name that no branch has, and if no address can be derived, because
    `data_api_url` has its own path.
    """
    check_branch_name(branch_name)
    listed = await _listed_address(api, deployment_id, branch_name, deadline)
    if listed is not None:
        address = data_address(
            listed, field="api_credentials.url", allow_http=api.config.allow_http
        )
        return address.removesuffix("/v1")
    if (data_api_url := api.config.data_api_url) is not None:
        return branch_address_beside(data_api_url, branch_name)
    where = name_branch(deployment_id, branch_name)
    base = await data_api_base(api, deployment_id, deadline=deadline, where=where)
    return _branch_address(base, branch_name)


def branch_address_beside(data_api_url: str, branch_name: str) -> str:
    """Return the address of a branch, derived from production's data API address. Raises
    PlatformInputError if that address does not have the standard path: the deployment may have
    moved its data API, and then the addresses of its branches are not known.
    """
    base = data_api_url.removesuffix("/v1")
    root = base.removesuffix(DATA_PATH)
    if root == base and "/" in root.partition("://")[2]:
        raise PlatformInputError(
            f"Nothing was sent: the address of branch {quote_service(branch_name)!r} is unknown. "
            "The service does not list the branch. The address cannot be derived from Data API "
            f"address (data_api_url) in the connection, which does not end in {DATA_PATH}. Leave "
            "this field empty, or switch on the branch's staging environment.",
            field="branch_name",
        )
    return _branch_address(root, branch_name)


async def find_opened_address(api: Api, deployment_id: int, branch_name: str) -> str | None:
    """Return the data API address of an opened branch; None if the tenant does not report it, and
    none can be derived from the connection's `data_api_url`."""
    try:
        return await find_branch_address(api, deployment_id, branch_name)
    except PlatformApiError as error:
        if error.retryable:
            raise
    except (PlatformAddressError, PlatformInputError, PlatformProtocolError):
        pass
    return None


async def _raise_if_missing(
    api: Api, deployment_id: int, branch_name: str, error: PlatformError, deadline: float | None
) -> None:
    """Raise BranchNotWrittenError or OperationMissingError if this error of a call means one of
    these: a tenant answers an unknown branch and an unknown operation in the same way. Return if
    the error means something else."""
    if may_be_missing(error):
        branch = await _find_branch(api, deployment_id, branch_name, deadline)
        if branch.is_staging_environment_enabled:
            return
        raise OperationMissingError(
            "This tenant lists the branch, but does not have the operation: its platform is "
            "older. Open, close or delete the branch in the platform, and leave this task out.",
            where=error.where,
        ) from error


async def _find_branch(
    api: Api, deployment_id: int, branch_name: str, deadline: float | None
) -> BranchResponse:
    """Return a branch by its name. Raises BranchNotWrittenError, OperationMissingError if the
    tenant has no list of branches, and the errors of requests."""
    try:
        branches = await all_rows(api, list_branches(deployment_id=deployment_id), deadline)
    except PlatformError as error:
        await raise_if_missing(
            api,
            deployment_id,
            error,
            reason=f"The task cannot open, close or delete branch {quote_service(branch_name)}",
            step="Open the branch in the platform, and leave this task out.",
            deadline=deadline,
        )
        raise
    for branch in branches:
        if branch.name == branch_name:
            found: BranchResponse = branch
            return found
    raise BranchNotWrittenError(
        "No branch has this name. Check the spelling. If the dbt sync that writes the branch is "
        "still running, a retry finds the branch.",
        where=name_branch(deployment_id, branch_name),
    )


async def _listed_address(
    api: Api, deployment_id: int, branch_name: str, deadline: float | None
) -> str | None:
    """Return the address in the list of staging environments; None if the branch is not in the
    list, or if the tenant or the credential has no such list."""
    operation = list_environments(deployment_id=deployment_id, query={"type": "staging"})
    try:
        environments = await all_rows(api, operation, deadline)
    except (PlatformAddressError, PlatformPermissionError):
        return None
    except PlatformApiError as error:
        if not may_be_missing(error):
            raise
        return None
    for environment in environments:
        if environment.branch == branch_name:
            return _rest_address(environment)
    return None


def _rest_address(environment: DeploymentEnvironment) -> str | None:
    for credential in environment.api_credentials or []:
        if credential.type == "rest" and credential.url:
            return credential.url
    return None


async def all_rows(api: Api, operation: Operation[Page[Any]], deadline: float | None) -> list[Any]:
    """Return all rows of a list; `deadline` in Unix time."""
    walk = PageWalk(operation)
    rows: list[Any] = []
    while walk.operation is not None:
        page = await api.call(walk.operation, deadline=deadline)
        rows += walk.add_page(page)
    return rows


def _branch_address(root: str, branch_name: str) -> str:
    """Return the address with the branch's name as one encoded segment. The documents do not say
    how a name with slashes is written in the path."""
    name = quote(check_branch_name(branch_name), safe="")
    return f"{root}/dev-mode/{name}{DATA_PATH}"
