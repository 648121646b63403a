"""`PlatformBuildTrigger`: waits until an opened branch is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.management.data_model.builds import (
    BuildWanted,
    wait_for_build,
)
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.client import AsyncPlatformClient


class PlatformBuildTrigger(RemoteRunTrigger):
    """Waits for the build of a branch; `run` holds `deployment_id` and `opened` (`branch_name`,
    `hash`, `opened_at`), `deadline` is in Unix time.

    The event is `{"status": "success", "outcome": {...}}`. An opened branch stays open: nothing is
    stopped.
    """

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        opened = self.ids["opened"]
        program = wait_for_build(
            BuildWanted(
                self.ids["deployment_id"],
                opened["branch_name"],
                opened["hash"],
                float(opened["opened_at"]),
            ),
            deadline=float(self.limits["deadline"]),
            poll_interval=float(self.limits["poll_interval"]),
            clock=client.clock,
            one_of_many=True,
        )
        build = await self.carry_out(client, program)
        return {"status": "success", "outcome": build.to_json()}
