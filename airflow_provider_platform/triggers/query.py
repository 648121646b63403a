"""`PlatformQueryTrigger`: wait until the first row of a query arrives."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.data_api.query import SqlQuery, run_sql
from airflow_provider_platform.client.data_api.response import SqlChunk
from airflow_provider_platform.triggers._remote_run import OneEventTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.choices import CacheMode
    from airflow_provider_platform.client.http.client import AsyncPlatformClient
    from airflow_provider_platform.runs.run_kind import Ids


class PlatformQueryTrigger(OneEventTrigger):
    """Send the query again until it returns its first row. The worker then sends the query once
    more and reads the rows: the service keeps the result, but drops a query if nobody requests its
    result. So nothing has to be stopped.

    `run` names the wait and holds the SQL, which the worker must repeat unchanged, and the SQL of
    the first page (`first_page`) if the result is read in pages. The other arguments are those of
    the query; `deadline` is in Unix time.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        run: Ids,
        deployment_id: int | None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: CacheMode | None = None,
        deadline: float,
    ) -> None:
        super().__init__(platform_conn_id=platform_conn_id, run=run, deadline=deadline)
        self.deployment_id = deployment_id
        self.branch_name = branch_name
        self.timezone = timezone
        self.cache = cache

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        query = SqlQuery.build(
            self.ids.get("first_page") or self.ids["sql"],
            deployment_id=self.deployment_id,
            deadline=self.deadline,
            branch_name=self.branch_name,
            timezone=self.timezone,
            cache=self.cache,
        )
        async with aclosing(
            client.events(lambda api: run_sql(api, query, client.config, client.clock))
        ) as events:
            async for event in events:
                if isinstance(event, SqlChunk):
                    break
        return {"status": "success"}
