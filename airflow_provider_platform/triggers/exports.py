"""`PlatformExportDashboardTrigger`: wait until a dashboard export is complete."""

from __future__ import annotations

from airflow_provider_platform.runs.exports import ExportRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger


class PlatformExportDashboardTrigger(RemoteRunTrigger):
    """Wait for an export; `run` holds `deployment_id` and `job_id`. The event is `{"status":
    "success", "outcome": {...}}`; the worker downloads the file."""

    def run_kind(self) -> ExportRunKind:
        return ExportRunKind()
