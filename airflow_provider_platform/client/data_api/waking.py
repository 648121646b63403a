"""Wakes a branch that sleeps.

The service suspends the environment of a branch after ten minutes without a request to its data
API. The next request starts the environment again, and that request can fail. A build status is no
such request, so whoever waits for a branch sends one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_platform.client.branches import (
    find_branch_address,
)
from airflow_provider_platform.client.builds import (
    Build,
    BuildSeen,
    BuildWanted,
    poll_build,
)
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.data_api.access import address_below, mint_token
from airflow_provider_platform.client.errors import BranchNotServedError, PlatformError
from airflow_provider_platform.client.service_text import quote_service

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

WAKE_SECONDS = 15.0
"""What one request that wakes a branch may take."""


@dataclass(frozen=True)
class Waking:
    """A branch sleeps, and a request to its data API is sent."""

    branch_name: str

    def __str__(self) -> str:
        return f"Branch {quote_service(self.branch_name)} sleeps. Sending it a request to wake it."


async def poll_awake(
    api: Api, wanted: BuildWanted, config: PlatformConfig, clock: Clock
) -> Build | BuildSeen:
    """`poll_build`, which wakes a sleeping branch. Notifies of Waking. Raises what `poll_build`
    raises; a BranchNotServedError after the request, because the next poll may find the branch
    awake."""
    try:
        return await poll_build(api, wanted, clock)
    except BranchNotServedError as error:
        if error.details.get("mode") == "production":
            raise
        await api.notify(Waking(wanted.branch_name))
        await _wake(api, wanted, config, clock)
        raise


async def _wake(api: Api, wanted: BuildWanted, config: PlatformConfig, clock: Clock) -> None:
    deadline = clock() + WAKE_SECONDS
    try:
        address = await find_branch_address(
            api,
            wanted.deployment_id,
            wanted.branch_name,
            allow_http=config.allow_http,
            data_api_url=config.data_api_url,
            deadline=deadline,
        )
        token = await mint_token(api, wanted.deployment_id, deadline=deadline, clock=clock)
        url = address_below(address, "cubesql")
        await api.open_data_stream(url, token, {"query": "SELECT 1"}, timeout=WAKE_SECONDS)
        await api.close_stream()
    except PlatformError:
        return  # the request that wakes a branch can fail; the next poll shows the branch's state
