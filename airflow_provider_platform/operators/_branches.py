"""What the operators that open a branch share: opening it, waiting for its build, and the result.

The run's ids hold under `opened` what was opened, as plain JSON: the fields of `OpenedBranch`, when
it was (`opened_at`, Unix time), and whether the build is waited for (`waits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.client.management.data_model.builds import Build, BuildWanted
    from airflow_provider_platform.operators._submission.attempt import Attempt, Ids

ENVIRONMENTS = ("staging", "dev_mode", "if_supported")
BUILD_TIMEOUT = 900.0


def open_and_log(
    attempt: Attempt,
    *,
    deployment_id: int,
    branch_name: str,
    environment: str,
    deadline: float,
    wait_for_build: bool = True,
) -> Ids:
    """Open a branch; returns what `opened` holds. Opening it again changes nothing. Raises
    PlatformError."""
    from airflow_provider_platform.client.management.data_model.opening import open_branch

    program = open_branch(deployment_id, branch_name, environment, deadline=deadline)
    opened = attempt.client.run(program, attempt.event_log)
    if opened.environment is None:
        attempt.log.warning(
            "This tenant has no operation that opens a branch, so branch %s was not opened here. "
            "It answers if somebody opened it in the platform; its build is not waited for.",
            branch_name,
        )
    elif opened.environment == "staging":
        attempt.log.info("The staging environment of branch %s is on", opened.branch_name)
    else:
        attempt.log.info(
            "Opened branch %s in dev mode; the branch to ask is %s",
            branch_name,
            opened.branch_name,
        )
    waits = wait_for_build and opened.environment is not None
    return {**opened.to_json(), "opened_at": attempt.now, "waits": waits}


def build_wanted(ids: Ids) -> BuildWanted:
    """The build that the run with these ids waits for."""
    from airflow_provider_platform.client.management.data_model.builds import BuildWanted

    opened = ids["opened"]
    return BuildWanted(
        ids["deployment_id"], opened["branch_name"], opened["hash"], float(opened["opened_at"])
    )


def follow_build(attempt: Attempt, ids: Ids, *, deadline: float, poll_interval: float) -> Build:
    """Wait for the build on the worker; nothing where it is not waited for. Raises
    PlatformError."""
    from airflow_provider_platform.client.management.data_model.builds import Build, wait_for_build

    if not ids["opened"]["waits"]:
        return Build(None)
    program = wait_for_build(
        build_wanted(ids),
        deadline=deadline,
        poll_interval=poll_interval,
        clock=attempt.client.clock,
    )
    return attempt.client.run(program, attempt.event_log)


def poll_build_once(attempt: Attempt, ids: Ids) -> Build | None:
    """The build, None where it is not over. Raises PlatformError."""
    from airflow_provider_platform.client.management.data_model.builds import Build, poll_build

    if not ids["opened"]["waits"]:
        return Build(None)
    found = attempt.client.run(
        poll_build(build_wanted(ids), attempt.client.clock), attempt.event_log
    )
    return found if isinstance(found, Build) else None


def describe_opened(attempt: Attempt, ids: Ids, build: Build) -> dict[str, Any]:
    """What is known of the opened branch: `branch_name` (the name to ask), `opened_branch`,
    `environment`, `url`, `hash`, `status`. Raises PlatformError."""
    from airflow_provider_platform.client.management.data_model.opening import (
        OpenedBranch,
        find_opened_address,
    )

    given = ids["opened"]
    opened = OpenedBranch(
        given["branch_name"], given["opened_branch"], given["environment"], given["hash"]
    )
    url = None
    if opened.environment is not None:
        program = find_opened_address(opened, ids["deployment_id"], attempt.config)
        url = attempt.client.run(program)
    if build.hash and opened.hash and build.hash != opened.hash:
        attempt.log.warning(
            "Branch %s had commit %s when it was opened, and its build is of commit %s: somebody "
            "committed meanwhile, or the service built another one.",
            opened.branch_name,
            opened.hash,
            build.hash,
        )
    if build.status is not None:
        attempt.log.info("Branch %s is built (commit %s)", opened.branch_name, build.hash)
    return {
        "branch_name": opened.branch_name,
        "opened_branch": opened.opened_branch,
        "environment": opened.environment,
        "url": url,
        "hash": build.hash or opened.hash,
        "status": build.status,
    }
