"""The trigger that waits for a run of a report delivery."""

from __future__ import annotations

from airflow_provider_platform.runs.deliveries import DeliveryRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger


class PlatformDeliveryTrigger(RemoteRunTrigger):
    """Wait for a run of a report delivery; `run` holds `deployment_id`, `delivery_id`, `run_id` and
    `success_before`. The event is `{"status": "success", "outcome": {...}}`. Nothing stops a
    run."""

    def run_kind(self) -> DeliveryRunKind:
        return DeliveryRunKind()
