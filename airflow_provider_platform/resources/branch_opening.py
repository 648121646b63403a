"""Opening a branch and waiting until the branch is built.

In the ids of such a run, `was_open` says whether the branch was open before this task: only a
branch that was not is closed again. `opened` describes the open branch as plain JSON: its commit
(`hash`), the time when it was opened (`opened_at`, Unix time), and whether the task waits for its
build (`waits`).
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    BuildFailedError,
    PlatformDeadlineError,
    PlatformError,
)
from airflow_provider_platform.resources.branches import (
    close_branch,
    find_opened_address,
    is_open,
    open_branch,
)
from airflow_provider_platform.resources.builds import (
    Build,
    BuildWanted,
    not_built,
    report_unbuilt,
)
from airflow_provider_platform.resources.run_kind import (
    Intended,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
)
from airflow_provider_platform.resources.run_log import say, warn
from airflow_provider_platform.resources.sql.query import poll_awake

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


class Opened(TypedDict):
    """A branch that was opened: at which commit, when (Unix time), and whether the task waits for
    its build."""

    hash: str | None
    opened_at: float
    waits: bool


class BranchIds(RunIds):
    """The ids of a branch that is opened."""

    deployment_id: int
    branch_name: str
    was_open: bool
    opened: NotRequired[Opened]


class BranchRunKind(RunKind[Build, BranchIds]):
    """A branch that is opened, with the arguments of `PlatformOpenBranchOperator`.

    Opening a branch again changes nothing. To stop such a run is to close the branch, unless it was
    open before. A trigger waits for the build only, so `branch_name` is then empty.
    """

    id_field = "branch_name"
    outcome_class = Build
    may_be_late = False

    branch_name: str = ""
    wait_for_build: bool = True
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint("open branch", config.management_url, deployment_id, self.branch_name)

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: BranchIds | None, *, until_end: bool
    ) -> Build | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        was_open = earlier.get("was_open") if earlier else None
        if was_open is None:
            was_open = await is_open(api, deployment_id, self.branch_name, deadline=env.deadline)
        intent: BranchIds = {
            "deployment_id": deployment_id,
            "submitted_at": api.clock(),
            "branch_name": self.branch_name,
            "was_open": was_open,
        }
        await api.notify(Intended(intent, named=True))
        run = await self.resume(api, env, intent)
        await api.notify(RunAccepted(run))
        return None if run["opened"]["waits"] else Build(None)

    async def find(self, api: Api, env: RunEnvironment, ids: BranchIds) -> tuple[bool, BranchIds]:
        """Return False: the branch is opened again, which changes nothing."""
        return False, ids

    async def resume(self, api: Api, env: RunEnvironment, ids: BranchIds) -> BranchIds:
        """Open the branch, again if necessary: somebody may have closed it since the last try."""
        opened = await open_and_log(api, env, ids, wait_for_build=self.wait_for_build)
        return {**ids, "opened": opened}

    async def poll(self, api: Api, ids: BranchIds) -> Build | None:
        """Poll the build, if the task waits for it. If the build fails, the branch is closed,
        unless it was open before."""
        if not ids["opened"]["waits"]:
            return Build(None)
        try:
            seen = await poll_awake(api, _build_wanted(ids))
        except BuildFailedError:
            await _close_unbuilt(api, ids)
            raise
        return report_unbuilt(api, seen)

    def overdue(self, ids: BranchIds, last: Any) -> PlatformDeadlineError:
        return not_built(_build_wanted(ids), last)

    async def stop(self, api: Api, ids: BranchIds, *, seconds: float | None = None) -> bool:
        return await close_again(api, ids)

    async def read(self, api: Api, ids: BranchIds, outcome: Build) -> dict[str, Any]:
        return await describe_opened(api, ids, outcome)


async def open_and_log(
    api: Api, env: RunEnvironment, ids: BranchIds, *, wait_for_build: bool = True
) -> Opened:
    """Open the branch of these ids and return the value of `opened`. Opening it again changes
    nothing. Raises PlatformError."""
    branch_name = ids["branch_name"]
    commit = await open_branch(api, ids["deployment_id"], branch_name, deadline=env.deadline)
    before = " (it was on before)" if ids["was_open"] else ""
    say(api, f"The staging environment of branch {branch_name} is on{before}")
    return {"hash": commit, "opened_at": api.clock(), "waits": wait_for_build}


async def close_again(api: Api, ids: BranchIds) -> bool:
    """Close the branch of these ids, unless it was open before. Returns whether it was closed.
    Raises PlatformError."""
    if ids.get("was_open") is not False:
        return False
    return await close_branch(api, ids["deployment_id"], ids["branch_name"]) is None


async def describe_opened(api: Api, ids: BranchIds, build: Build) -> dict[str, Any]:
    """Return what is known of the opened branch: `branch_name`, `opened_branch`, `url`, `hash`,
    `status`. Raises PlatformError."""
    branch_name, commit = ids["branch_name"], ids["opened"]["hash"]
    url = await find_opened_address(api, ids["deployment_id"], branch_name)
    if build.hash and commit and build.hash != commit:
        warn(
            api,
            f"Branch {branch_name} was at commit {commit} when it was opened, but its build is of "
            f"commit {build.hash}. Another user may have committed since, or the service built "
            "another commit.",
        )
    if build.status is not None:
        say(api, f"Branch {branch_name} is built (commit {build.hash})")
    if build.hash is None and ids["was_open"] and ids["opened"]["waits"]:
        commit = None  # the build that answers may be of an earlier commit
    return {
        "branch_name": branch_name,
        "opened_branch": None if ids["was_open"] else branch_name,
        "url": url,
        "hash": build.hash or commit,
        "status": build.status,
    }


async def _close_unbuilt(api: Api, ids: BranchIds) -> None:
    """Close a branch whose build failed, unless it was open before: no teardown closes what its
    setup did not open."""
    try:
        if await close_again(api, ids):
            say(api, f"Branch {ids['branch_name']} is closed again, because its build failed")
    except PlatformError as error:
        warn(api, f"Branch {ids['branch_name']} could not be closed again: {error.message}")


def _build_wanted(ids: BranchIds) -> BuildWanted:
    opened = ids["opened"]
    return BuildWanted(
        ids["deployment_id"], ids["branch_name"], opened["hash"], float(opened["opened_at"])
    )
