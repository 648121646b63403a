"""The hook's methods for SQL over the data API."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.data_api.query import Cache
    from airflow_provider_platform.client.data_api.rows import AsyncSqlRows, SqlRows
    from airflow_provider_platform.client.formats.durations import Seconds
    from airflow_provider_platform.client.http.client import (
        AsyncPlatformClient,
        PlatformClient,
    )
    from airflow_provider_platform.client.operations.program import Clock, Program

SQL_TIMEOUT = 600.0


class DataMethods:
    """SQL over the data API of a deployment."""

    if TYPE_CHECKING:

        def client(self) -> AbstractContextManager[PlatformClient]:
            """One client for all calls inside the block."""

        def async_client(self) -> AbstractAsyncContextManager[AsyncPlatformClient]:
            """A client for an event loop."""

    def run_sql(
        self,
        sql: str,
        *,
        deployment_id: int | str | None = None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: Cache | None = None,
        timeout: Seconds = SQL_TIMEOUT,
    ) -> SqlRows:
        """The rows of a query, read while they are used: all of them, where the chat API gives
        the first hundred. `timeout` is in seconds, or a timedelta, until the first row.

        Values are texts. Without a limit of its own the query gives 10,000 rows at most, with one
        50,000. The data API is the connection's `data_api_url`, else it is found through the
        management API, which also gives the token. Raises DataQueryError, PlatformError, when the
        first row is asked for or later.
        """
        from airflow_provider_platform.client.data_api.rows import SqlRows

        options = (deployment_id, branch_name, timezone, cache, timeout)
        return SqlRows(self._sql_events(sql, options))

    def arun_sql(
        self,
        sql: str,
        *,
        deployment_id: int | str | None = None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: Cache | None = None,
        timeout: Seconds = SQL_TIMEOUT,
    ) -> AsyncSqlRows:
        """`run_sql` for an event loop."""
        from airflow_provider_platform.client.data_api.rows import AsyncSqlRows

        options = (deployment_id, branch_name, timezone, cache, timeout)
        return AsyncSqlRows(self._sql_events_on_loop(sql, options))

    def _sql_events(self, sql: str, options: tuple[Any, ...]) -> Generator[Any]:
        with self.client() as client:
            yield from client.events(_program(sql, options, client.config, client.clock))

    async def _sql_events_on_loop(self, sql: str, options: tuple[Any, ...]) -> AsyncGenerator[Any]:
        async with self.async_client() as client:
            events = client.events(_program(sql, options, client.config, client.clock))
            async with aclosing(events):
                async for event in events:
                    yield event


def _program(
    sql: str, options: tuple[Any, ...], config: PlatformConfig, clock: Clock
) -> Program[None]:
    from airflow_provider_platform.client.data_api.query import SqlQuery, run_sql
    from airflow_provider_platform.client.formats.durations import in_seconds

    deployment_id, branch_name, timezone, cache, timeout = options
    query = SqlQuery.build(
        sql,
        deployment_id=config.resolve_deployment_id(deployment_id),
        deadline=clock() + in_seconds(timeout),
        branch_name=branch_name,
        timezone=timezone,
        cache=cache,
    )
    return run_sql(query, config, clock)
