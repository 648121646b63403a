"""Triggers that wait for a build: of an opened branch, and of production after a merge."""

from __future__ import annotations

from airflow_provider_platform.runs.branches import BranchRunKind
from airflow_provider_platform.runs.merges import MergeRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger


class PlatformBuildTrigger(RemoteRunTrigger):
    """Wait for the build of a branch; `run` holds `deployment_id`, `branch_name`, `was_open` and
    `opened` (`hash`, `opened_at`). The event is `{"status": "success", "outcome": {...}}`. To stop
    is to close the branch, unless it was open before."""

    def run_kind(self) -> BranchRunKind:
        return BranchRunKind()


class PlatformMergedBuildTrigger(RemoteRunTrigger):
    """Wait until production is built from a merge; `run` holds `deployment_id` and `merge`, the
    fields of `Merge`. The event is `{"status": "success", "outcome": {...}}`. A merge cannot be
    undone: nothing is stopped."""

    def run_kind(self) -> MergeRunKind:
        return MergeRunKind()
