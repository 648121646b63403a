"""SQL over the data API: find the address, get a token, wake a sleeping branch, read the rows.

The data API returns every row of a query; the chat API sends 100 by default. `run_sql` reads the
response while it arrives: it sends one event with the columns, and then events with rows. Values
are as the service sends them: strings whatever their type, JSON booleans, or None.

The service suspends the environment of a branch after ten minutes without a request to its data
API. The next request starts the environment again, and that request can fail. Reading a build
status does not count as such a request, so code that waits for a branch sends one (`poll_awake`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, get_args

from pydantic import SecretStr

from airflow_provider_platform.client.argument_rules import given, optional_choice, text
from airflow_provider_platform.client.choices import CacheMode
from airflow_provider_platform.client.connection_fields import DATA_PATH
from airflow_provider_platform.client.errors import (
    BranchNotServedError,
    DataQueryError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInputError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import branch_advice
from airflow_provider_platform.client.polling import deadline_after
from airflow_provider_platform.client.redaction import quote_service, shortened
from airflow_provider_platform.client.repeats import may_repeat, pause_after
from airflow_provider_platform.resources.branches import (
    branch_address_beside,
    find_branch_address,
)
from airflow_provider_platform.resources.builds import (
    Build,
    BuildSeen,
    BuildWanted,
    poll_build,
)
from airflow_provider_platform.resources.deployments import (
    create_deployment_token,
    data_api_base,
)
from airflow_provider_platform.resources.sql.response import SqlOpenEnd, SqlResponse

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


TOKEN_SECONDS = 3600
"""How long a data token lives beyond the deadline of its request: the answer is read after that."""
LONGEST_TOKEN_SECONDS = 86400


def address_below(data_api_url: str, path: str) -> str:
    """Where a path of the data API is, below an address that may end in `/v1`, or in the host."""
    base = data_api_url.removesuffix("/v1")
    has_path = "/" in base.partition("://")[2]
    return f"{base if has_path else base + DATA_PATH}/v1/{path}"


async def find_deployment_address(
    api: Api, deployment_id: int, *, deadline: float | None, where: object
) -> str:
    """The data API address of a deployment's production (`data_api_base`)."""
    base = await data_api_base(api, deployment_id, deadline=deadline, where=where)
    return f"{base}{DATA_PATH}"


async def mint_token(api: Api, deployment_id: int, *, deadline: float) -> SecretStr:
    """A data token of our own, for as long as a request may last; asking for another one does no
    harm."""
    seconds = TOKEN_SECONDS + max(0, math.ceil(deadline - api.clock()))
    body = {"expiresIn": min(seconds, LONGEST_TOKEN_SECONDS)}
    operation = create_deployment_token(deployment_id=deployment_id, body=body)
    answer = await api.call(operation, deadline=deadline)
    return answer.cube_api_token


log = logging.getLogger(__name__)

SQL_IN_LOG = 2000
"""Characters of a failed query that the log shows."""
REPEAT_PAUSE = 0.5
"""Seconds before a query that still runs is asked for again; the service itself waits longer."""


@dataclass(frozen=True)
class SqlQuery:
    """A query to run: `branch_name` for a development branch, `deadline` in Unix time, until the
    first row. With a `token` it runs with the permissions of that token, else with those of the
    data token that the management API returns. `deployment_id` is needed for each call of that
    API. Raises PlatformInputError for a bad argument."""

    sql: str
    _: KW_ONLY
    deployment_id: int | None
    deadline: float
    branch_name: str | None = None
    token: SecretStr | None = None
    timezone: str | None = None
    cache: CacheMode | None = None

    def __post_init__(self) -> None:
        text("sql", self.sql)
        optional_choice("cache", self.cache, get_args(CacheMode))

    @property
    def body(self) -> dict[str, Any]:
        """The request. The service answers "Continue wait" while the query runs, instead of staying
        silent."""
        return given(
            query=self.sql, timezone=self.timezone, cache=self.cache, throwContinueWait=True
        )

    @property
    def deployment(self) -> int:
        """The deployment. Raises PlatformInputError where none is known."""
        if self.deployment_id is None:
            raise PlatformInputError(
                "Nothing was sent: deployment_id is missing. Set it in the task, or as "
                "Deployment id (deployment_id) in the connection.",
                field="deployment_id",
            )
        return self.deployment_id

    @property
    def where(self) -> str:
        """What ends the message of this query's errors."""
        named = {"deployment": self.deployment_id, "branch": self.branch_name}
        return ", ".join(
            f"{name} {quote_service(value)}" for name, value in named.items() if value is not None
        )


async def run_sql(api: Api, query: SqlQuery) -> None:
    """Run a query. Notifies of SqlColumns, once, then of SqlChunk, and of SqlOpenEnd after the last
    row where the answer had no end of its own.

    The query is sent again while it runs, and after a failure before its first line; a result
    that breaks off later is not taken up. The deadline holds for every request up to the first
    line. Raises DataQueryError, PlatformDeadlineError and what requests raise.
    """
    try:
        url = await find_address(api, query)
        token = query.token or await mint_token(api, query.deployment, deadline=query.deadline)
    except PlatformTransportError as error:
        if api.clock() < query.deadline:
            raise
        raise _too_late(query) from error
    failures = 0
    while True:
        response = SqlResponse(query.where)
        pause = REPEAT_PAUSE
        failure: PlatformError | None = None
        try:
            await _read(api, url, token, response, query)
        except PlatformError as error:
            failures += 1
            _raise_for_branch(query, error)
            late = api.clock() >= query.deadline and not response.begun
            if late and isinstance(error, PlatformTransportError):
                raise _too_late(query) from error
            if response.columns is not None:
                raise
            if failures >= api.config.max_attempts:
                raise
            if not may_repeat(error, repeatable=True):
                raise
            pause, failure = pause_after(error, failures), error
        else:
            if not response.still_runs:
                return
        if api.clock() + pause >= query.deadline:
            raise _too_late(query) if failure is None else deadline_after(failure)
        await api.sleep(pause)


def _raise_for_branch(query: SqlQuery, error: PlatformError) -> None:
    """Raise a DataQueryError that names the branch, where the service says that it does not
    answer: nothing is wrong with the query then."""
    if query.branch_name is None or not isinstance(error, DataQueryError):
        return
    advice = branch_advice(error.reason)
    if advice is None:
        return
    said = error.reason if advice in error.reason else f"{error.reason} {advice}"
    raise DataQueryError(said, where=query.where, **error.details) from error


def _too_late(query: SqlQuery) -> PlatformDeadlineError:
    return PlatformDeadlineError(
        "The query returned no result before the deadline. If the query needs more time, raise "
        "timeout, or the task's execution_timeout if that is shorter.",
        where=query.where,
    )


async def find_address(api: Api, query: SqlQuery) -> str:
    """Where the query goes: the connection's data API, else the deployment's own; for a branch, the
    branch's address (`find_branch_address`), and without the management API the one beside the
    connection's data API."""
    config = api.config
    if query.branch_name is not None:
        if config.management_url is None and config.data_api_url is not None:
            return sql_address(branch_address_beside(config.data_api_url, query.branch_name))
        address = await find_branch_address(
            api, query.deployment, query.branch_name, deadline=query.deadline
        )
        return sql_address(address)
    if config.data_api_url is not None:
        return sql_address(config.data_api_url)
    address = await find_deployment_address(
        api, query.deployment, deadline=query.deadline, where=query.where
    )
    return sql_address(address)


def sql_address(data_api_url: str) -> str:
    """Where SQL queries go, below a data API address that may end in `/v1`, or in the host."""
    return address_below(data_api_url, "cubesql")


async def _read(
    api: Api,
    url: str,
    token: SecretStr,
    response: SqlResponse,
    query: SqlQuery,
) -> None:
    """One request, read to its end."""
    idle_timeout = api.config.stream_idle_timeout
    left = query.deadline - api.clock()
    if left <= 0:
        raise _too_late(query)
    open_ended: bool = await api.open_data_stream(
        url, token, query.body, timeout=min(idle_timeout, left)
    )
    last_active, first_row_by = api.clock(), query.deadline
    while not response.still_runs:
        until = last_active + idle_timeout
        wait = (until if response.begun else min(until, first_row_by)) - api.clock()
        data: bytes | None = await api.read_stream(wait) if wait > 0 else None
        if data is None:
            raise PlatformTransportError(
                f"The data API sent nothing for {idle_timeout:g} seconds.", where=query.where
            )
        had_columns = response.columns is not None
        for event in response.feed(data) if data else response.finish():
            await api.notify(event)
            await api.sleep(0)  # a long line is many events: other tasks of an event loop go on
        if response.active or not response.begun:
            # Until the first row, blank lines may say that the query still runs.
            last_active = api.clock()
        if response.columns is not None and not had_columns:
            # The caller may have kept the columns for long, while the first row waits here.
            first_row_by = max(first_row_by, last_active + idle_timeout)
        if not data:
            if open_ended and response.columns is not None:
                await api.notify(SqlOpenEnd())
            break
    await api.close_stream()


class FailedSqlLog:
    """Logs the SQL of a query that fails, so that the log of a failed try shows it.

    `redact` takes secrets out of the SQL; set it before the query is sent.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.redact: Callable[[str], str] = str

    def __call__(self, error: PlatformError) -> None:
        """Log a warning if the service refused the query or did not answer before the deadline."""
        if isinstance(error, DataQueryError | PlatformDeadlineError):
            log.warning("The query that failed: %s", shortened(self.redact(self.sql), SQL_IN_LOG))


WAKE_SECONDS = 15.0
"""What one request that wakes a branch may take."""


@dataclass(frozen=True)
class Waking:
    """A branch sleeps, and a request to its data API is sent."""

    branch_name: str

    def __str__(self) -> str:
        return f"Branch {quote_service(self.branch_name)} sleeps. Sending it a request to wake it."


async def poll_awake(api: Api, wanted: BuildWanted) -> Build | BuildSeen:
    """`poll_build`, which wakes a sleeping branch. Notifies of Waking. Raises what `poll_build`
    raises; a BranchNotServedError after the request, because the next poll may find the branch
    awake."""
    try:
        return await poll_build(api, wanted)
    except BranchNotServedError as error:
        if error.details.get("mode") == "production":
            raise
        api.report(Waking(wanted.branch_name))
        await _wake(api, wanted)
        raise


async def _wake(api: Api, wanted: BuildWanted) -> None:
    deadline = api.clock() + WAKE_SECONDS
    try:
        address = await find_branch_address(
            api, wanted.deployment_id, wanted.branch_name, deadline=deadline
        )
        token = await mint_token(api, wanted.deployment_id, deadline=deadline)
        url = address_below(address, "cubesql")
        await api.open_data_stream(url, token, {"query": "SELECT 1"}, timeout=WAKE_SECONDS)
        await api.close_stream()
    except PlatformError:
        return  # the request that wakes a branch can fail; the next poll shows the branch's state
