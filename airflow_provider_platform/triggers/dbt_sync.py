"""`PlatformDbtSyncTrigger`: waits until a dbt sync has ended."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.management.dbt_sync.run import (
    DbtSyncOutcome,
    SyncLimits,
    wait,
)
from airflow_provider_platform.client.management.dbt_sync.syncs import cancel_dbt_sync
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.client import AsyncPlatformClient


class PlatformDbtSyncTrigger(RemoteRunTrigger):
    """Waits for a dbt sync; `run` holds `deployment_id`, `sync_job_id`, `branch_name` and whether
    anybody `waits` for its end, `deadline` is in Unix time. The event is
    `{"status": "success", "outcome": {...}}`."""

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        if not self.ids["waits"]:
            started = DbtSyncOutcome(self.ids["sync_job_id"], self.ids["branch_name"], None)
            return {"status": "success", "outcome": asdict(started)}
        limits = SyncLimits(
            deadline=float(self.limits["deadline"]),
            poll_interval=float(self.limits["poll_interval"]),
            one_of_many=True,
        )
        program = wait(self.ids["deployment_id"], self.ids["sync_job_id"], limits, client.clock)
        outcome = await self.carry_out(client, program)
        if outcome is None:
            raise RuntimeError("a wait ends with an outcome")
        return {"status": "success", "outcome": asdict(outcome)}

    async def stop(self, client: AsyncPlatformClient) -> bool:
        await client.run(
            cancel_dbt_sync(
                deployment_id=self.ids["deployment_id"], sync_job_id=self.ids["sync_job_id"]
            )
        )
        return True
