"""`PlatformExportDashboardTrigger`: waits until a dashboard export is complete."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.management.exports.run import wait
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.client import AsyncPlatformClient


class PlatformExportDashboardTrigger(RemoteRunTrigger):
    """Waits for an export; `run` holds `deployment_id` and `job_id`, `deadline` is in Unix time.

    The event is `{"status": "success", "outcome": {...}}`; the worker downloads the file. The
    service has no operation that stops an export; it drops it by itself.
    """

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        program = wait(
            self.ids["deployment_id"],
            self.ids["job_id"],
            deadline=float(self.limits["deadline"]),
            poll_interval=float(self.limits["poll_interval"]),
            clock=client.clock,
            one_of_many=True,
        )
        outcome = await self.carry_out(client, program)
        return {"status": "success", "outcome": asdict(outcome)}
