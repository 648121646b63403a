"""`PlatformBuildSensor`: wait until a branch of the data model is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.links import BranchLink, all_links
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from airflow_provider_platform.operators._base import Checks


class PlatformBuildSensor(DeploymentOperator, PlatformSensor):
    """Wait until a branch is built. A build that failed or was cancelled fails the task.

    Use it before a task that reads production if another program merged into production, or for a
    branch that a person or another DAG opened. If this DAG opens the branch, use
    `PlatformOpenBranchOperator`, which waits for the build itself.

    A branch that is not open and a branch that does not exist fail the task at once. A branch that
    sleeps (status `stopped`) or has no build (`none`) gets a request that wakes it, unless it is
    production. If it does not wake within a minute, the task fails. Needs the permission
    DeploymentRead.

    Returns `{"branch_name", "status", "hash", "mode"}`; `mode` is `production` or `dev_mode`.
    `hash` and `mode` are None if the service does not report them.

    :param branch_name: the branch (default: the production branch)
    :param hash: the commit that must be built; the sensor waits while the build is of another
        commit. Without it, or if the service does not report the commit, any build ends the wait,
        also one from before a merge
    """

    operator_extra_links = all_links(BranchLink)
    condition_kind = "build"
    checks: ClassVar[Checks] = {
        "branch_name": arguments.optional_branch,
        "hash": arguments.optional_text,
    }

    def __init__(
        self, *, branch_name: str | None = None, hash: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.branch_name = branch_name
        self.hash = hash
        self.validate_known_arguments()
