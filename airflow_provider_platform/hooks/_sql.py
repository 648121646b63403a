"""The hook's methods for SQL over the data API."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - evaluated by those who read the hints
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.hooks._lazy import lazy_module

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.data_api import limits, pages, paging, query, rows
    from airflow_provider_platform.client.data_api import parameters as binding
    from airflow_provider_platform.client.formats import durations
    from airflow_provider_platform.client.http.client import AsyncPlatformClient, PlatformClient
    from airflow_provider_platform.client.http.events import Events
    from airflow_provider_platform.client.operations.program import Clock, Program
    from airflow_provider_platform.hooks import query_rows
else:
    durations = lazy_module("airflow_provider_platform.client.formats.durations")
    binding = lazy_module("airflow_provider_platform.client.data_api.parameters")
    limits = lazy_module("airflow_provider_platform.client.data_api.limits")
    pages = lazy_module("airflow_provider_platform.client.data_api.pages")
    paging = lazy_module("airflow_provider_platform.client.data_api.paging")
    query = lazy_module("airflow_provider_platform.client.data_api.query")
    query_rows = lazy_module("airflow_provider_platform.hooks.query_rows")
    rows = lazy_module("airflow_provider_platform.client.data_api.rows")

SQL_TIMEOUT = 600.0


class DataMethods:
    """SQL over the data API of a deployment."""

    if TYPE_CHECKING:

        def open_client(self) -> PlatformClient:
            """The hook's client."""

        async def open_client_on_loop(self) -> AsyncPlatformClient:
            """The hook's client for the running event loop."""

        @property
        def config(self) -> PlatformConfig:
            """The hook's configuration."""

    def run_sql(
        self,
        sql: str,
        *,
        parameters: binding.Parameters | None = None,
        deployment_id: int | str | None = None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: query.Cache | None = None,
        timeout: durations.Seconds = SQL_TIMEOUT,
        default_row_limit: int | None = None,
        max_row_limit: int | None = None,
        page_by: Sequence[str] | None = None,
        page_rows: int | None = None,
    ) -> query_rows.QueryRows:
        """The rows of a query, read while they are used: all of them, where the chat API sends
        the first ones (100 by default). `timeout` is in seconds, or a timedelta, until the first
        row.

        `parameters` are the values of the SQL's placeholders: a list for `%s`, a mapping for
        `%(name)s`; with parameters, `%%` is a percent sign. Values are str, int, float, Decimal,
        bool, None, date, datetime, UUID, or after `IN` a list of them. Raises PlatformInputError
        for a placeholder or a value that does not fit, before anything is sent.

        An iteration gives the rows as lists of texts. `to_arrow()`, `to_pandas()` and `to_polars()`
        of what is returned read all rows into a table whose columns have types.

        The service gives 10,000 rows at most for a query without a LIMIT, 50,000
        for one with, unless the deployment has other limits: `default_row_limit` and
        `max_row_limit` (default: the connection's). `truncated` of what is returned says after the
        last row whether there may be more.

        With `page_by`, names of columns that name each row, the query is read in pages of at most
        `page_rows` (default: the row limit) and gives all rows in the order of these columns;
        `timeout` holds for each page. See `paging`; raises PlatformInputError at once for a query
        that cannot be paged rightly, PageKeyError or PagesChangedError while it is read.

        The data API is the connection's `data_api_url`, else it is found through the management
        API, which also gives the token. Raises DataQueryError, PlatformError, when the
        first row is asked for or later.
        """
        sql = binding.bind_parameters(sql, parameters, timezone)
        options = (deployment_id, branch_name, timezone, cache, timeout)
        paged = (page_by, page_rows, max_row_limit)
        why_cut = self._why_cut(sql, default_row_limit, *paged)

        def begin() -> Events:
            client = self.open_client()
            return client.events(_program(sql, options, paged, client.config, client.clock))

        return query_rows.QueryRows(begin, why_cut)

    def arun_sql(
        self,
        sql: str,
        *,
        parameters: binding.Parameters | None = None,
        deployment_id: int | str | None = None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: query.Cache | None = None,
        timeout: durations.Seconds = SQL_TIMEOUT,
        default_row_limit: int | None = None,
        max_row_limit: int | None = None,
        page_by: Sequence[str] | None = None,
        page_rows: int | None = None,
    ) -> query_rows.AsyncQueryRows:
        """`run_sql` for an event loop."""
        sql = binding.bind_parameters(sql, parameters, timezone)
        options = (deployment_id, branch_name, timezone, cache, timeout)
        paged = (page_by, page_rows, max_row_limit)
        why_cut = self._why_cut(sql, default_row_limit, *paged)

        async def begin() -> AsyncGenerator[Any]:
            client = await self.open_client_on_loop()
            return client.events(_program(sql, options, paged, client.config, client.clock))

        return query_rows.AsyncQueryRows(begin, why_cut)

    def _why_cut(
        self,
        sql: str,
        default: int | None,
        page_by: Sequence[str] | None,
        page_rows: int | None,
        maximum: int | None,
    ) -> rows.WhyCut:
        """How the number of rows is judged: that of a result in pages says nothing. The connection
        has been read by then. Raises PlatformInputError for a limit that is not one, or a query
        that has no pages."""
        limits.check_limit("default_row_limit", default)
        limits.check_limit("max_row_limit", maximum)
        limits.check_limit("page_rows", page_rows)
        if page_by is not None:
            paging.PagedQuery.build(sql, page_by)
            return lambda _: None

        def why_cut(row_count: int) -> str | None:
            return limits.known_limits(self.config, default, maximum).why_cut(sql, row_count)

        return why_cut


def _program(
    sql: str,
    options: tuple[Any, ...],
    paged: tuple[Any, ...],
    config: PlatformConfig,
    clock: Clock,
) -> Program[None]:
    deployment_id, branch_name, timezone, cache, timeout = options
    prepared = query.SqlQuery.build(
        sql,
        deployment_id=config.resolve_deployment_id(deployment_id),
        deadline=clock() + durations.in_seconds(timeout),
        branch_name=branch_name,
        timezone=timezone,
        cache=cache,
    )
    page_by, page_rows, max_row_limit = paged
    if page_by is None:
        return query.run_sql(prepared, config, clock)
    rows = limits.page_rows(config, page_rows, max_row_limit)
    return pages.run_pages(
        prepared, paging.PagedQuery.build(sql, page_by, rows=rows), config, clock
    )
