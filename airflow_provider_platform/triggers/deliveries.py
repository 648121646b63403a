"""Triggers that wait for a run of a report delivery or of a scheduled task."""

from __future__ import annotations

from airflow_provider_platform.runs.deliveries import DeliveryRunKind, ScheduledTaskRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger


class PlatformDeliveryTrigger(RemoteRunTrigger):
    """Wait for a run of a report delivery; `run` holds `deployment_id`, `subject_id`, `run_id` and
    `success_before`. The event is `{"status": "success", "outcome": {...}}`. Nothing stops a
    run."""

    def run_kind(self) -> DeliveryRunKind:
        return DeliveryRunKind()


class PlatformScheduledTaskTrigger(RemoteRunTrigger):
    """Wait for a run of a scheduled task; `run` holds `deployment_id`, `subject_id` and `run_id`.
    The event is `{"status": "success", "outcome": {...}}`. Nothing stops a run."""

    def run_kind(self) -> ScheduledTaskRunKind:
        return ScheduledTaskRunKind()
