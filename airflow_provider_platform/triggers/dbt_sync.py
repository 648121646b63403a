"""`PlatformDbtSyncTrigger`: wait until a dbt sync has ended."""

from __future__ import annotations

from airflow_provider_platform.runs.dbt_sync import DbtSyncRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger


class PlatformDbtSyncTrigger(RemoteRunTrigger):
    """Wait for a dbt sync; `run` holds `deployment_id`, `sync_job_id`, `branch_name` and `waits`:
    whether the task waits for the end of the sync. The event is `{"status": "success", "outcome":
    {...}}`."""

    def run_kind(self) -> DbtSyncRunKind:
        return DbtSyncRunKind()
