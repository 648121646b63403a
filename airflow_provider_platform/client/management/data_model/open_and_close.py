"""Opens a branch, so that it can be asked and queried; finds its address; closes and deletes it.

A branch that a dbt sync wrote is not served until somebody opens it. There are two ways:

    environment   what it is                             name to ask          undone by
    staging       a switch of the branch, for everybody  the branch           switching it off
    dev_mode      state of the credential: one branch    its fork `dev-...`   leaving dev mode

Staging environments came with a later release than dev mode, and the first release with dbt syncs
has neither. A tenant that lacks an operation answers 404, 405 or its web page. An unknown branch is
answered with 404 too, so the list of branches decides which of the two it was.

Opening twice changes nothing: a staging environment stays on, and dev mode returns the same fork.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from airflow_provider_platform.client.choices import Environment
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    BranchNotWrittenError,
    BranchUnsupportedError,
    DevModeBusyError,
    PlatformAddressError,
    PlatformApiError,
    PlatformBadRequestError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.formats.addresses import DATA_PATH, data_address
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.management.data_model.branches import (
    BranchResponse,
    RemoveBranchQuery,
    SetBranchStagingEnvironmentRequest,
    StartDevModeRequest,
    list_branches,
    name_branch,
    remove_branch,
    set_branch_staging_environment,
    start_dev_mode,
    stop_dev_mode,
)
from airflow_provider_platform.client.management.deployments.deployments import (
    get_build_status,
    get_deployment,
)
from airflow_provider_platform.client.management.deployments.environments import (
    DeploymentEnvironment,
    EnvironmentsQuery,
    list_environments,
)
from airflow_provider_platform.client.management.missing_operations import (
    check_tenant,
    may_be_missing,
)
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.paging import Page, PageWalk
from airflow_provider_platform.client.operations.program import Notify, Program, call

STAGING: Environment = "staging"
DEV_MODE: Environment = "dev_mode"
IF_SUPPORTED = "if_supported"

STAGING_SINCE = "v0.4.0 (August 2026)"
DEV_MODE_SINCE = "v0.3.0"


@dataclass(frozen=True)
class OpenedBranch:
    """A branch that was opened.

    `branch_name` is the name to ask, `opened_branch` the branch that was to be opened; they differ
    in dev mode. `environment` is None where the tenant has no operation that opens a branch.
    `hash` is the commit of the first, `opened_hash` that of the second, where the service says
    them.
    """

    branch_name: str
    opened_branch: str
    environment: Environment | None
    hash: str | None = None
    opened_hash: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the fields of this class."""
        return asdict(self)


@dataclass(frozen=True)
class StaleFork:
    """A fork in dev mode is at another commit than its branch: the fork is older, and the service
    may not update it."""

    branch_name: str
    hash: str
    parent_branch: str
    parent_hash: str

    def __str__(self) -> str:
        return quote_service(
            "Answers may come from an earlier data model. The dev-mode branch "
            f"{self.branch_name} is a copy of {self.parent_branch}. The copy is at commit "
            f"{self.hash}, but {self.parent_branch} is at commit {self.parent_hash}. Sync to a new "
            "branch, or use a staging environment."
        )


@dataclass(frozen=True)
class NothingToClose:
    """A branch did not have to be closed, and why."""

    reason: str


@dataclass(frozen=True)
class NotDeleted:
    """A branch was not deleted, and why. `exists`: whether it still exists."""

    reason: str
    exists: bool


def open_branch(
    deployment_id: int,
    branch_name: str,
    environment: str,
    *,
    replaces: bool = True,
    deadline: float | None = None,
) -> Program[OpenedBranch]:
    """Open a branch. `environment` is `staging`, `dev_mode` or `if_supported`: staging, or dev mode
    if the tenant has no staging environments, or nothing if it has neither. With `replaces`, dev
    mode is entered even if the credential is in dev mode on another branch, which this closes.
    `deadline` in Unix time.

    Notifies of StaleFork. Raises BranchNotWrittenError, BranchUnsupportedError, without `replaces`
    DevModeBusyError, and the errors of requests.
    """
    where = _Where(deployment_id, branch_name, deadline)
    missing: PlatformError
    if environment in (STAGING, IF_SUPPORTED):
        try:
            return (yield from _switch_staging_on(where))
        except (PlatformAddressError, PlatformApiError) as error:
            if not may_be_missing(error):
                raise
            missing = error
        has_branches = yield from _has_branches(where, missing)
        if environment == STAGING:
            other = (
                "Use environment='dev_mode', or 'if_supported'."
                if has_branches
                else "The tenant has no dev mode either. Open the branch in the platform, or use "
                "environment='if_supported'."
            )
            raise BranchUnsupportedError(
                f"This tenant has no staging environments (they need release {STAGING_SINCE} or "
                f"later). {other}",
                where=where,
            ) from missing
        if not has_branches:
            return OpenedBranch(branch_name, branch_name, None)
    try:
        return (yield from _enter_dev_mode(where, replaces))
    except (PlatformAddressError, PlatformApiError) as error:
        if not may_be_missing(error):
            raise
        missing = error
    yield from _has_branches(where, missing)
    if environment == DEV_MODE:
        raise BranchUnsupportedError(
            f"This tenant has no dev mode (it needs release {DEV_MODE_SINCE} or later). Open the "
            "branch in the platform, or use environment='if_supported'.",
            where=where,
        ) from missing
    return OpenedBranch(branch_name, branch_name, None)


def close_branch(
    deployment_id: int, branch_name: str, environment: str
) -> Program[NothingToClose | None]:
    """Close a branch: switch its staging environment off (`staging`), leave dev mode (`dev_mode`),
    or whichever of the two the branch is in (`if_supported`). `branch_name` is the branch that was
    opened; in dev mode, its fork is accepted too.

    Returns why there was nothing to close; None if the branch was closed. A credential in dev mode
    on another branch stays there, because that branch was opened by another task or user. Raises
    the errors of requests, also for a wrong address and an unknown deployment, because the branch
    would stay open.
    """
    where = _Where(deployment_id, branch_name, None)
    nothing: NothingToClose | None = None
    if environment in (STAGING, IF_SUPPORTED):
        nothing = yield from _switch_staging_off(where, environment)
    if environment in (DEV_MODE, IF_SUPPORTED):
        staging_was_on = environment == IF_SUPPORTED and nothing is None
        nothing = yield from _leave_dev_mode(where, environment)
        if staging_was_on:
            return None
    return nothing


def delete_branch(
    deployment_id: int, branch_name: str, *, remove_on_upstream: bool
) -> Program[NotDeleted | None]:
    """Delete a branch. Returns why it was not deleted; None if it was deleted. Deleting a fork ends
    its dev mode. Raises the errors of requests; PlatformBadRequestError for the production
    branch."""
    query = RemoveBranchQuery.build(branch_name=branch_name, remove_on_upstream=remove_on_upstream)
    missing: PlatformError
    try:
        yield from call(remove_branch(deployment_id=deployment_id, query=query))
    except (PlatformAddressError, PlatformApiError) as error:
        if not may_be_missing(error):
            raise
        missing = error
    else:
        return None
    try:
        yield from _has_branches(_Where(deployment_id, branch_name, None), missing)
    except BranchNotWrittenError:
        return NotDeleted("the branch no longer exists", exists=False)
    return NotDeleted("this tenant has no operation that deletes branches", exists=True)


def find_branch_address(
    deployment_id: int,
    branch_name: str,
    *,
    allow_http: bool,
    data_api_url: str | None = None,
    deadline: float | None = None,
) -> Program[str]:
    """Return the data API address of a branch, in the form of the connection's `data_api_url`.

    The address comes from the service's list of staging environments. If the branch is not in the
    list (a fork in dev mode, an older tenant), its address is derived from production's:
    `data_api_url`, or the deployment's. Raises PlatformInputError if no address can be derived,
    because `data_api_url` has its own path.
    """
    listed = yield from _listed_address(deployment_id, branch_name, deadline)
    if listed is not None:
        address = data_address(listed, field="api_credentials.url", allow_http=allow_http)
        return address.removesuffix("/v1")
    if data_api_url is not None:
        return branch_address_beside(data_api_url, branch_name)
    deployment = yield from call(get_deployment(deployment_id=deployment_id), deadline=deadline)
    if not deployment.deployment_url:
        raise PlatformProtocolError(
            "The service did not return the deployment's data API address. Set Data API address "
            "(data_api_url) in the connection.",
            where=name_branch(deployment_id, branch_name),
        )
    base = data_address(deployment.deployment_url, field="deploymentUrl", allow_http=allow_http)
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


def find_opened_address(
    opened: OpenedBranch, deployment_id: int, config: PlatformConfig
) -> Program[str | None]:
    """Return the data API address of an opened branch; None if the tenant does not report it, and
    none can be derived from the connection's `data_api_url`."""
    try:
        return (
            yield from find_branch_address(
                deployment_id,
                opened.branch_name,
                allow_http=config.allow_http,
                data_api_url=config.data_api_url,
            )
        )
    except PlatformApiError as error:
        if error.retryable:
            raise
    except (PlatformAddressError, PlatformInputError, PlatformProtocolError):
        pass
    return None


@dataclass(frozen=True)
class _Where:
    """The branch to open, and the deadline (Unix time)."""

    deployment_id: int
    branch_name: str
    deadline: float | None

    def __str__(self) -> str:
        return name_branch(self.deployment_id, self.branch_name)


def _switch_staging_on(where: _Where) -> Program[OpenedBranch]:
    body = SetBranchStagingEnvironmentRequest.build(enabled=True, branch_name=where.branch_name)
    operation = set_branch_staging_environment(deployment_id=where.deployment_id, body=body)
    answer = yield from call(operation, deadline=where.deadline)
    branch = answer.data or BranchResponse()
    return OpenedBranch(
        branch.name or where.branch_name,
        where.branch_name,
        STAGING,
        branch.last_hash,
        branch.last_hash,
    )


def _enter_dev_mode(where: _Where, replaces: bool) -> Program[OpenedBranch]:
    if not replaces:
        yield from _refuse_busy(where)
    body = StartDevModeRequest.build(branch_name=where.branch_name)
    operation = start_dev_mode(deployment_id=where.deployment_id, body=body)
    answer = yield from call(operation, deadline=where.deadline)
    if not answer.branch_name:
        raise PlatformProtocolError(
            "The service entered dev mode but did not return the name of the fork (dev mode's "
            "personal copy of the branch). Without this name no task can query the fork. A retry "
            "asks for the name again. If that does not help, use a staging environment.",
            where=where,
        )
    if not replaces:  # another run may have checked and entered dev mode at the same moment
        yield from _refuse_busy(where)
    fork, parent = yield from _commits(where, answer.branch_name)
    if None not in (fork, parent) and fork != parent:
        yield Notify(StaleFork(answer.branch_name, str(fork), where.branch_name, str(parent)))
    return OpenedBranch(answer.branch_name, where.branch_name, DEV_MODE, fork, parent)


def _refuse_busy(where: _Where) -> Program[None]:
    """Raise DevModeBusyError if the credential is in dev mode on another branch than this one or
    its fork."""
    active = yield from _active_dev_branch(where.deployment_id)
    if active in (None, where.branch_name):
        return
    if (yield from _parent_of(where.deployment_id, active)) != where.branch_name:
        raise DevModeBusyError(
            f"The branch was not opened: the token is in dev mode on another branch, "
            f"{quote_service(active)}, and a token can be in dev mode on only one branch. If "
            "nobody uses that branch, close it with PlatformCloseBranchOperator or in the "
            "platform. When it is closed, a retry opens this branch. To avoid this conflict, give "
            "this DAG its own token or use a staging environment.",
            where=where,
        )


def _commits(where: _Where, fork: str) -> Program[tuple[str | None, str | None]]:
    """Return the commits of a fork and of its branch, None if the service does not say."""
    operation = list_branches(deployment_id=where.deployment_id)
    try:
        branches = yield from all_rows(operation, where.deadline)
    except PlatformError:
        return None, None
    hashes = {branch.name: branch.last_hash for branch in branches}
    return hashes.get(fork), hashes.get(where.branch_name)


def _switch_staging_off(where: _Where, environment: str) -> Program[NothingToClose | None]:
    """Switch the staging environment off. There is nothing to switch off if the branch no longer
    exists or the tenant has no staging environments. With `if_supported`, this also holds for a
    branch that cannot have a staging environment (a fork)."""
    body = SetBranchStagingEnvironmentRequest.build(enabled=False, branch_name=where.branch_name)
    operation = set_branch_staging_environment(deployment_id=where.deployment_id, body=body)
    try:
        yield from call(operation)
    except (PlatformAddressError, PlatformApiError) as error:
        if may_be_missing(error):
            yield from check_tenant(where.deployment_id, error, where.deadline)
            return NothingToClose(
                "the branch no longer exists, or the tenant has no staging environments"
            )
        if environment == STAGING or not isinstance(error, PlatformBadRequestError):
            raise
        return NothingToClose("the branch has no staging environment")
    return None


def _leave_dev_mode(where: _Where, environment: str) -> Program[NothingToClose | None]:
    """Leave dev mode, unless the credential is in dev mode on another branch. With `if_supported`,
    leave it only if the service says that the credential is in dev mode."""
    deployment_id, branch_name = where.deployment_id, where.branch_name
    active = yield from _active_dev_branch(deployment_id)
    if active is None and environment == IF_SUPPORTED:
        return NothingToClose("the branch has no staging environment, and dev mode is off")
    if active is not None and active != branch_name:
        parent = yield from _parent_of(deployment_id, active)
        if parent != branch_name:
            return NothingToClose(
                f"the credential is in dev mode on another branch ({quote_service(active)}); that "
                "branch stays open"
            )
    try:
        yield from call(stop_dev_mode(deployment_id=deployment_id))
    except PlatformBadRequestError as error:
        return NothingToClose(f"dev mode was already off ({error.status})")
    except (PlatformAddressError, PlatformNotFoundError) as error:
        yield from check_tenant(where.deployment_id, error, where.deadline)
        return NothingToClose("dev mode was already off, or the tenant has no dev mode")
    return None


def _has_branches(where: _Where, missing: PlatformError) -> Program[bool]:
    """Return whether the tenant has the list of branches, and so dev mode. Raises
    BranchNotWrittenError if the list does not have the branch, and `missing` if the address or the
    deployment is wrong.
    """
    try:
        branches = yield from all_rows(
            list_branches(deployment_id=where.deployment_id), where.deadline
        )
    except (PlatformAddressError, PlatformApiError) as error:
        if not may_be_missing(error):
            raise
        yield from check_tenant(where.deployment_id, missing, where.deadline)
        return False
    if all(branch.name != where.branch_name for branch in branches):
        raise BranchNotWrittenError(
            "No branch has this name. Check the spelling. If the dbt sync that writes the branch "
            "is still running, a retry finds the branch.",
            where=where,
        ) from missing
    return True


def _parent_of(deployment_id: int, branch_name: str) -> Program[str | None]:
    """Return the parent of a branch; None if the service does not say it."""
    try:
        branches = yield from all_rows(list_branches(deployment_id=deployment_id), None)
    except PlatformError:
        return None
    return next((branch.parent_branch for branch in branches if branch.name == branch_name), None)


def _active_dev_branch(deployment_id: int) -> Program[str | None]:
    """Return the credential's branch in dev mode; None if it has none or the service does not say.
    Only this call leaves out the branch's name: the service then answers for that branch."""
    try:
        answer = yield from call(get_build_status(deployment_id=deployment_id))
    except (PlatformAddressError, PlatformApiError) as error:
        if error.retryable:
            raise
        return None
    return answer.branch_name if answer.mode == DEV_MODE else None


def _listed_address(
    deployment_id: int, branch_name: str, deadline: float | None
) -> Program[str | None]:
    """Return the address in the list of staging environments; None if the branch is not in the
    list, or if the tenant or the credential has no such list."""
    operation = list_environments(
        deployment_id=deployment_id, query=EnvironmentsQuery.build(type=STAGING)
    )
    try:
        environments = yield from all_rows(operation, deadline)
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


def all_rows(operation: Operation[Page[Any]], deadline: float | None) -> Program[list[Any]]:
    """Return all rows of a list; `deadline` in Unix time."""
    walk = PageWalk(operation)
    rows: list[Any] = []
    while walk.operation is not None:
        page = yield from call(walk.operation, deadline=deadline)
        rows += walk.add_page(page)
    return rows


def _branch_address(root: str, branch_name: str) -> str:
    """Return the address with the branch's name as one encoded segment. The documents do not say
    how a name with slashes is written in the path."""
    return f"{root}/dev-mode/{quote(branch_name, safe='')}{DATA_PATH}"
