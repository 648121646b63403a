"""Read one compressed response in its own process and print time and memory as JSON.

Called with the kind of the answer and the address that serves it.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.platform_client import AsyncPlatformClient
from airflow_provider_platform.resources.exports import (
    download_dashboard_export,
    get_dashboard_export,
)
from airflow_provider_platform.resources.reports import list_reports
from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql
from airflow_provider_platform.resources.sql.response import SqlChunk
from tests.support.wire.calls import GET, config_for

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

OPERATIONS: dict[str, Any] = {
    "poll": get_dashboard_export(deployment_id=7, job_id="j"),
    "list": list_reports(deployment_id=7),
    "raw": GET,
    "file": download_dashboard_export(deployment_id=7, job_id="j"),
}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def stream(api: Api) -> int:
    """Read the chat's stream to its end; its size."""
    await api.open_stream({}, timeout=60.0)
    size = 0
    while data := await api.read_stream(60.0):
        size += len(data)
    await api.close_stream()
    return size


async def rows(client: AsyncPlatformClient) -> int:
    query = SqlQuery(
        "SELECT n FROM t",
        deployment_id=None,
        deadline=client.clock() + 60.0,
        token=SecretStr("canary-data"),
    )
    sizes: list[int] = []

    def count(event: object) -> None:
        if isinstance(event, SqlChunk):
            sizes.append(len(event.rows))

    await client.run(lambda api: run_sql(api, query), count)
    return sum(sizes)


async def read(kind: str, url: str) -> dict[str, Any]:
    config = config_for(url, data_api_url=url, max_attempts=1)
    async with AsyncPlatformClient(config) as client:
        await client.run(GET)  # what a first call loads and opens does not count
        before = peak_megabytes()
        try:
            if kind == "rows":
                outcome: Any = await rows(client)
            else:
                outcome = await client.run(stream if kind == "stream" else OPERATIONS[kind])
            outcome = outcome if isinstance(outcome, int) else type(outcome).__name__
        except PlatformError as error:
            outcome = f"{type(error).__name__}: {error}"
    return {"outcome": outcome, "megabytes": peak_megabytes() - before}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(read(*sys.argv[1:]))))
