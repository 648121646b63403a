"""Opening a branch and waiting until the branch is built.

In the ids of such a run, `opened` describes the open branch as plain JSON: the fields of
`OpenedBranch`, the time when the branch was opened (`opened_at`, Unix time), and whether the task
waits for its build (`waits`). A dbt sync that opens its branch runs the same steps after the sync.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.management.data_model.build_status import (
    Build,
    BuildWanted,
    poll_build,
    wait_for_build,
)
from airflow_provider_platform.client.management.data_model.open_and_close import (
    OpenedBranch,
    find_opened_address,
    open_branch,
)
from airflow_provider_platform.client.operations.program import Clock, Notify, Program
from airflow_provider_platform.runs.run_kind import (
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    say,
    warn,
)


@dataclass(frozen=True)
class BranchRunKind(RunKind[Build]):
    """A branch that is opened, with the arguments of `PlatformOpenBranchOperator`.

    Opening a branch again changes nothing. The branch stays open: nothing is stopped. A trigger
    waits for the build only, so `branch_name` is then empty.
    """

    id_field = "branch_name"
    outcome_class = Build

    branch_name: str = ""
    environment: str = "staging"
    replaces: bool = True
    wait_for_build: bool = True
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        inputs = (self.branch_name, self.environment)
        return fingerprint("open branch", config.management_url, deployment_id, *inputs)

    def submit(
        self, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> Program[Build | None]:
        intent: Ids = {
            "deployment_id": env.config.resolve_deployment_id(self.deployment_id),
            "submitted_at": env.now,
        }
        yield Notify(Intended(intent))
        run = yield from self.resume(env, intent)
        yield Notify(RunAccepted(run))
        return None if run["opened"]["waits"] else Build(None)

    def find(self, env: RunEnvironment, ids: Ids) -> Program[tuple[bool, Ids]]:
        """Return False: the branch is opened again, which changes nothing."""
        yield from ()
        return False, ids

    def resume(self, env: RunEnvironment, ids: Ids) -> Program[Ids]:
        """Open the branch, again if necessary: somebody may have closed it since the last try."""
        opened = yield from open_and_log(
            env,
            deployment_id=ids["deployment_id"],
            branch_name=self.branch_name,
            environment=self.environment,
            replaces=self.replaces,
            deadline=env.deadline,
            wait_for_build=self.wait_for_build,
        )
        return {**ids, "branch_name": opened["branch_name"], "opened": opened}

    def follow(self, env: RunEnvironment, ids: Ids) -> Program[Build]:
        return (yield from follow_build(env, ids))

    def poll_once(self, env: RunEnvironment, ids: Ids) -> Program[Build | None]:
        return (yield from poll_build_once(env, ids))

    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None = None
    ) -> Program[bool]:
        """Stop nothing: closing the branch could close it for the next try or for another user."""
        yield from ()
        return False

    def read(self, env: RunEnvironment, ids: Ids, outcome: Build) -> Program[dict[str, Any]]:
        return (yield from describe_opened(env, ids, outcome))


def open_and_log(
    env: RunEnvironment,
    *,
    deployment_id: int,
    branch_name: str,
    environment: str,
    deadline: float,
    replaces: bool = True,
    wait_for_build: bool = True,
) -> Program[Ids]:
    """Open a branch and return the value of `opened`. Opening it again changes nothing. Raises
    PlatformError."""
    opened = yield from open_branch(
        deployment_id, branch_name, environment, replaces=replaces, deadline=deadline
    )
    if opened.environment is None:
        yield warn(
            "This tenant has no operation that opens a branch, so the task did not open branch "
            f"{branch_name} and does not wait for its build. Queries work only if the branch is "
            "open in the platform."
        )
    elif opened.environment == "staging":
        yield say(f"The staging environment of branch {opened.branch_name} is on")
    else:
        yield say(
            f"Opened branch {branch_name} in dev mode; its name for queries and questions is "
            f"{opened.branch_name}"
        )
    waits = wait_for_build and opened.environment is not None
    return {**opened.to_json(), "opened_at": env.now, "waits": waits}


def follow_build(env: RunEnvironment, ids: Ids) -> Program[Build]:
    """Wait for the build of the run with these ids, if the run waits for one. Raises
    PlatformError."""
    if not ids["opened"]["waits"]:
        return Build(None)
    return (yield from wait_for_build(_build_wanted(ids), env.poll_limits, env.clock))


def poll_build_once(env: RunEnvironment, ids: Ids) -> Program[Build | None]:
    """Return the build, or None if the build is not over. Raises PlatformError."""
    if not ids["opened"]["waits"]:
        return Build(None)
    outcome = yield from poll_build(_build_wanted(ids), env.clock)
    return outcome if isinstance(outcome, Build) else None


def describe_opened(env: RunEnvironment, ids: Ids, build: Build) -> Program[dict[str, Any]]:
    """Return what is known of the opened branch: `branch_name` (the name to ask), `opened_branch`,
    `opened_hash`, `environment`, `url`, `hash`, `status`. Raises PlatformError."""
    branch = ids["opened"]
    opened = OpenedBranch(
        branch["branch_name"],
        branch["opened_branch"],
        branch["environment"],
        branch["hash"],
        branch["opened_hash"],
    )
    url = None
    if opened.environment is not None:
        url = yield from find_opened_address(opened, ids["deployment_id"], env.config)
    if build.hash and opened.hash and build.hash != opened.hash:
        yield warn(
            f"Branch {opened.branch_name} was at commit {opened.hash} when it was opened, but its "
            f"build is of commit {build.hash}. Another user may have committed since, or the "
            "service built another commit."
        )
    if build.status is not None:
        yield say(f"Branch {opened.branch_name} is built (commit {build.hash})")
    return {
        "branch_name": opened.branch_name,
        "opened_branch": opened.opened_branch,
        "opened_hash": (opened.branch_name == opened.opened_branch and build.hash)
        or opened.opened_hash,
        "environment": opened.environment,
        "url": url,
        "hash": build.hash or opened.hash,
        "status": build.status,
    }


def _build_wanted(ids: Ids) -> BuildWanted:
    opened = ids["opened"]
    return BuildWanted(
        ids["deployment_id"], opened["branch_name"], opened["hash"], float(opened["opened_at"])
    )
