"""`PlatformHook`: Airflow's way to the platform, from a connection to a client."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack, get_args

from tenacity import AsyncRetrying, Retrying

from airflow_provider_platform._airflow import BaseHook, get_connection_on_loop
from airflow_provider_platform.client.argument_rules import Seconds, choice, in_seconds, refuse
from airflow_provider_platform.client.choices import (
    CHAT_TIMEOUT,
    MAX_ROWS,
    POLL_INTERVAL,
    QUERY_TIMEOUT,
    CacheMode,
    FailOnToolError,
    IfThreadBusy,
)
from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.platform_client import AsyncPlatformClient, PlatformClient
from airflow_provider_platform.hooks.connection import (
    config_from_connection,
    connection_retry_policy,
    read_extras,
    unknown_settings,
)
from airflow_provider_platform.hooks.connection_type import (
    CONNECTION_TYPE,
    field_behaviour,
    form_widgets,
)
from airflow_provider_platform.hooks.fair_scheduling import yield_turn
from airflow_provider_platform.hooks.lineage import (
    DEFAULT_SCHEMA,
    database_info,
    report_queries,
    reported_chat,
)
from airflow_provider_platform.hooks.log_mask import LOG_MASK
from airflow_provider_platform.resources.chat.call import ChatCall, ChatLimits
from airflow_provider_platform.resources.chat.result import (
    ChatResult,
    as_plain,
    check_tools,
    with_changed_texts,
)
from airflow_provider_platform.resources.chat.thread import ChatThread, abort, read_thread
from airflow_provider_platform.resources.names import find_agent_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from airflow.providers.common.ai.managed_agents.base import (
        BoundManagedAgent,
        ManagedAgentCapabilities,
        ManagedAgentRef,
        ManagedAgentRequest,
        ManagedAgentResponse,
    )

    from airflow_provider_platform.client.api import Api, Work
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.operation import DeploymentId, Operation
    from airflow_provider_platform.client.platform_client import Events
    from airflow_provider_platform.hooks.query_rows import QueryRows
    from airflow_provider_platform.resources.sql.parameters import Parameters

T = TypeVar("T")
Id = int | str


class ChatOptions(TypedDict, total=False):
    """Options of `PlatformHook.chat`: those of `PlatformChatOperator`, `timeout` (default 1800)
    and `poll_interval` (default 5) in seconds, or as timedelta."""

    chat_id: str | None
    agent: str | None
    agent_id: int | str | None
    message_id: str | None
    session_settings: dict[str, Any] | None
    active_branch_name: str | None
    is_default_branch: bool | None
    if_thread_busy: IfThreadBusy
    fail_on_tool_error: FailOnToolError
    max_rows: int
    timeout: Seconds
    poll_interval: Seconds


_CHOICES = {
    "if_thread_busy": get_args(IfThreadBusy),
    "fail_on_tool_error": get_args(FailOnToolError),
}


def _check_options(options: ChatOptions) -> None:
    """Raise PlatformInputError for an unknown option. A misspelled option would otherwise be
    ignored, and the question would go to another branch or thread."""
    known = ChatOptions.__annotations__
    for name, value in options.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise PlatformInputError(
                f"Nothing was sent: chat has no option {name}{meant}. Its options are "
                f"{', '.join(known)}.",
                field=name,
            )
        choices = _CHOICES.get(name)
        if choices is not None:
            choice(name, value, choices)


def _redacted(shown: T, client: PlatformClient) -> T:
    """Return a result or a thread without secrets, so that a task may return it (Airflow stores it
    as an XCom)."""
    return with_changed_texts(shown, client.secrets.redact_data)


class PlatformHook(BaseHook):
    """Call the platform with the credentials of an Airflow connection.

    Methods raise PlatformError (see `client.errors`); each error says what failed and what to do.
    The methods are synchronous. On an event loop use `async_client`, whose client has `call` and
    `iterate` too.

    A hook keeps one client. It is opened when first needed and closed with the hook: at the end of
    a `with` block, by `close`, or when nothing refers to the hook any more. A hook that is used
    after that opens a new client. A result that was not read completely before that raises.

    `call` and `iterate` reach every operation of the management API. The methods with a name of
    their own (`list_reports`, `connect_report` ...) are the same for the operations that DAGs use
    most: their further arguments are the fields of the query or of the body, in snake_case. They
    return the service's JSON. `deployment_id` is by default the connection's deployment.
    """

    conn_name_attr = "platform_conn_id"
    default_conn_name = "platform_default"
    conn_type = CONNECTION_TYPE
    hook_name = "Analytics Platform"

    def __init__(self, platform_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.platform_conn_id = platform_conn_id
        self._config: PlatformConfig | None = None
        # At most one client. `setdefault` of a dict is atomic. A lock would have to be free in a
        # forked process and in a signal handler.
        self._clients: dict[None, PlatformClient] = {}

    @property
    def config(self) -> PlatformConfig:
        """Return the connection as checked configuration, with the newest credentials that were
        read. Its secrets are masked in logs. Raises PlatformConfigError, which names the field."""
        if self._config is None:
            self._config = self.read_config()
        return self._config

    def read_config(self) -> PlatformConfig:
        """Read the connection now, and return the configuration."""
        connection = self.get_connection(self.platform_conn_id)
        config = config_from_connection(connection, self.platform_conn_id)
        LOG_MASK.hide(config.secrets)
        return config

    def reread_config(self) -> PlatformConfig:
        """`read_config` for a connection that was read before: repeated for some seconds. Raises
        PlatformTransportError."""
        return Retrying(**connection_retry_policy(self.platform_conn_id))(self.read_config)

    async def read_config_on_loop(self) -> PlatformConfig:
        """`read_config` for an event loop."""
        await yield_turn()
        connection = await get_connection_on_loop(type(self), self.platform_conn_id)
        await yield_turn()
        config = config_from_connection(connection, self.platform_conn_id)
        await LOG_MASK.hide_on_loop(config.secrets)
        return config

    async def reread_config_on_loop(self) -> PlatformConfig:
        """`reread_config` for an event loop."""
        patiently = AsyncRetrying(**connection_retry_policy(self.platform_conn_id))
        return await patiently(self.read_config_on_loop)

    @contextmanager
    def client(self) -> Iterator[PlatformClient]:
        """Return the hook's client, for calls of your own. It stays open until the hook is closed.

        The client reads the connection again when a token is refused.
        """
        yield self.open_client()

    def open_client(self) -> PlatformClient:
        """Return the client that the hook's methods use. Threads share it."""
        client = self._clients.get(None)
        if client is None or client.closed:
            self._clients.pop(None, None)
            client = self._clients.setdefault(None, self._new_client())
        return client

    def close(self) -> None:
        """Close the hook's connections."""
        if client := self._clients.pop(None, None):
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @asynccontextmanager
    async def async_client(self, *, again: bool = False) -> AsyncIterator[AsyncPlatformClient]:
        """Return a client for this block, on an event loop. It reads the connection now, and again
        when a token is refused.

        `again` says that the task has read the connection before, as a trigger's task has.
        """
        config = await (self.reread_config_on_loop() if again else self.read_config_on_loop())
        async with AsyncPlatformClient(
            config, reload=self.reread_config_on_loop, mask=LOG_MASK.learn_on_loop
        ) as client:
            yield client

    def get_conn(self) -> PlatformClient:
        """Return a new client. The caller must close it."""
        return self._new_client()

    def _new_client(self) -> PlatformClient:
        return PlatformClient(self.config, reload=self._reread, mask=LOG_MASK.learn)

    def run(self, work: Operation[T] | Work[T], on_event: Callable[[Any], None] | None = None) -> T:
        """Run an operation, or an async function that gets an `Api` and makes several calls, and
        return its typed result."""
        client = self.open_client()
        return client.run(work, on_event) if on_event else client.run(work)

    def resolve_deployment_id(self, deployment_id: int | str | None = None) -> int:
        """The given deployment, else the connection's. Raises PlatformInputError."""
        return self.config.resolve_deployment_id(deployment_id)

    def chat(self, prompt: str, **options: Unpack[ChatOptions]) -> ChatResult:
        """Ask the agent, wait for its final answer, and return the result. Broken connections are
        repeated.

        The result contains `***` where the service quotes a secret that the client knows. A run
        that is not over after `timeout` seconds is stopped, and so is a run whose task reaches its
        `execution_timeout`. A run whose task somebody ends continues. A retry of the task asks
        again. Raises PlatformError.
        """
        client = self.open_client()
        call = self._chat_call(client, prompt, options)
        try:
            client.run(call.ask)
        except BaseException:  # a time limit of Airflow is no Exception
            with suppress(PlatformError):  # the error that led here says more
                client.run(call.stop)
            raise
        with client.redacted_errors():
            result = call.run.result()
            queries = client.secrets.redact_data(as_plain(result)["queries"])
            with reported_chat(PlatformHook(self.platform_conn_id), queries):
                check_tools(as_plain(result), options.get("fail_on_tool_error", "all"))
        return _redacted(result, client)

    def read_thread(
        self,
        chat_id: str,
        session_settings: dict[str, Any] | None = None,
        *,
        agent: str | None = None,
        agent_id: int | str | None = None,
        max_rows: int = 100,
        timeout: Seconds = 60.0,
    ) -> ChatThread:
        """Read a thread without asking anything: whether it is streaming, and its turns with their
        answers and queries (at most `max_rows` rows each). It contains `***` where the service
        quotes a secret that the client knows.

        `agent` (its name) or `agent_id` is the thread's agent, if it is not the agent of the
        connection. `timeout` is in seconds, or a timedelta. Raises PlatformNotFoundError for an
        unknown thread, PlatformPermissionError for a thread of another user, ChatRpcError for a
        refused credential, PlatformTransportError if the thread could not be read in time.
        """
        client = self.open_client()

        async def read(api: Api) -> ChatThread:
            return await read_thread(
                api,
                chat_id,
                client.config.resolve_session_settings(session_settings),
                seconds=in_seconds(timeout),
                max_rows=max_rows,
                agent_id=await find_agent_id(api, agent, agent_id),
            )

        return _redacted(client.run(read), client)

    def abort_chat(
        self,
        chat_id: str,
        session_settings: dict[str, Any] | None = None,
        *,
        agent: str | None = None,
        agent_id: int | str | None = None,
    ) -> None:
        """Stop the run that is active in the thread. `agent` (its name) or `agent_id` is the
        thread's agent, if it is not the agent of the connection. Without session settings the
        request names no user, and the service decides whether it accepts the request.

        Raises PlatformNotFoundError for an unknown thread, PlatformPermissionError for a thread of
        another owner, ChatRpcError for a refused credential, and PlatformInputError for
        `session_settings` that are given with a service token.
        """
        settings = self.config.resolve_session_settings(session_settings, required=False)
        asked = self._agent_id(agent, agent_id)
        self.run(lambda api: abort(api, chat_id, settings, agent_id=asked))

    def run_sql(
        self,
        sql: str,
        *,
        parameters: Parameters | None = None,
        deployment_id: int | str | None = None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: CacheMode | None = None,
        timeout: Seconds = QUERY_TIMEOUT,
        default_row_limit: int | None = None,
        max_row_limit: int | None = None,
        page_by: Sequence[str] | None = None,
        page_rows: int | None = None,
    ) -> QueryRows:
        """Run a query and return its rows, which are read while you use them. It reads all rows;
        the chat API sends only the first rows (100 by default). `timeout` is in seconds, or a
        timedelta, until the first row.

        `parameters` are the values of the SQL's placeholders: a list for `%s`, a mapping for
        `%(name)s`; with parameters, `%%` is a percent sign. Values are str, int, float, Decimal,
        bool, None, date, datetime, UUID, or after `IN` a list of them. Raises PlatformInputError
        for a placeholder or a value that does not match, before anything is sent.

        An iteration yields the rows as lists of strings. `to_arrow()`, `to_pandas()` and
        `to_polars()` of the returned object read all rows into a table whose columns have types.

        The service returns at most 10,000 rows for a query without a LIMIT and 50,000 for a query
        with a LIMIT, unless the deployment has other limits: `default_row_limit` and
        `max_row_limit` (default: the connection's). After the last row, `truncated` of the returned
        object says whether there may be more rows.

        With `page_by`, names of columns that together identify each row, the query is read in pages
        of at most `page_rows` (default: the row limit) and returns all rows in the order of these
        columns; `timeout` applies to each page. See `resources.sql.page_by`. Raises
        PlatformInputError at once for a query that cannot be read in pages, and PageKeyError or
        PagesChangedError while the rows are read.

        The data API address is the connection's `data_api_url`, or comes from the management API,
        which also returns the token. Raises DataQueryError, PlatformError, when the first row is
        requested or later.
        """
        from airflow_provider_platform.hooks.query_rows import QueryRows
        from airflow_provider_platform.resources.sql import statements
        from airflow_provider_platform.resources.sql.page_by import PagedQuery, run_pages
        from airflow_provider_platform.resources.sql.parameters import bind_parameters
        from airflow_provider_platform.resources.sql.query import FailedSqlLog, SqlQuery, run_sql

        sql = bind_parameters(sql, parameters, timezone)
        statements.check_limit("default_row_limit", default_row_limit)
        statements.check_limit("max_row_limit", max_row_limit)
        statements.check_limit("page_rows", page_rows)
        if page_by is not None:
            PagedQuery.build(sql, page_by)
        failed = FailedSqlLog(sql)

        def why_cut(row_count: int) -> str | None:
            if page_by is not None:  # the number of rows of all pages says nothing
                return None
            limits = statements.known_limits(
                self.open_client().config, default_row_limit, max_row_limit
            )
            return limits.why_cut(sql, row_count)

        def begin() -> Events[Any]:
            client = self.open_client()
            failed.redact = client.secrets.redact_text
            report_queries(PlatformHook(self.platform_conn_id), [client.secrets.redact_text(sql)])

            async def run(api: Api) -> None:
                config = client.config
                query = SqlQuery(
                    sql,
                    deployment_id=config.resolve_deployment_id(deployment_id),
                    deadline=client.clock() + in_seconds(timeout),
                    branch_name=branch_name,
                    timezone=timezone,
                    cache=cache,
                )
                if page_by is None:
                    return await run_sql(api, query)
                most = statements.page_rows(config, page_rows, max_row_limit)
                paged = PagedQuery.build(sql, page_by, rows=most)
                return await run_pages(api, query, paged)

            return client.events(run)

        return QueryRows(begin, why_cut, failed)

    def call(
        self,
        operation: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **ids: Any,
    ) -> Any:
        """Call an operation of the management API by its id, and return the JSON of its answer:

            hook.call("createFolder", deployment_id=7, body={"name": "March"})

        `ids` are the parameters of the operation's path, in snake_case. Names in `query` and `body`
        are the service's own, or the same in snake_case. A query parameter of None counts as
        absent; None in a body is sent as null. The answer has the service's names; credentials in
        it are SecretStr. A method and a path, such as `GET /v1/deployments/{deploymentId}/x`, call
        an operation that this package does not know.

        Raises PlatformInputError for an unknown operation, a missing id, an unknown field or a
        value that breaks a rule, before anything is sent; PlatformError (see `client.errors`).
        """
        return self.open_client().call(operation, query=query, body=body, **ids)

    def iterate(
        self,
        operation: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        **ids: Any,
    ) -> Iterator[Any]:
        """Yield the items of a list, page by page: a page is requested when its first item is
        needed. The arguments are those of `call`; `query={"first": 50}` is the page size.

        Raises PlatformInputError at once, also for an operation that is not a list; later
        PlatformError, and PlatformProtocolError for a list that cannot be read completely.
        """
        return self.open_client().iterate(operation, query=query, **ids)

    def get_app_config(self) -> Any:
        """Return the app configuration: theme, titles, embedding."""
        return self.call("getAppConfig")

    def list_user_oauth_tokens(self) -> Iterator[Any]:
        """Return the tokens that users have given for OAuth integrations; `status` is free text."""
        return self.iterate("listUserOAuthTokens")

    def start_dbt_sync(self, *, deployment_id: DeploymentId = None, **body: Any) -> Any:
        """Start a dbt sync with `branch_name`, `ref`, `source`, `manifest`, `output`; returns its
        id and the platform's branch that the sync writes to. Every call starts a sync, so the call
        is never repeated if its outcome is unknown."""
        return self.call("startDbtSync", deployment_id=deployment_id, body=body)

    def list_reports(self, *, deployment_id: DeploymentId = None, **query: Any) -> Iterator[Any]:
        """Return reports: all, or those that `search`, `folder_id`, `workbook_id` and
        `external_workbook_id` select, in the order of `sort_by` and `sort_direction`. `first` is
        the page size; it is not available with `sort_by` `lastViewedAt`."""
        return self.iterate("getReports", deployment_id=deployment_id, query=query)

    def connect_report(
        self, report_id: Id, *, deployment_id: DeploymentId = None, **body: Any
    ) -> Any:
        """Record that a report is in a spreadsheet outside the platform (`external_workbook_id`),
        from `result_location` (as `Sheet1!A1`) to `end_result_cell`.

        It records an address and writes no cells; read access to the report is enough. Returns the
        report with its placements.
        """
        return self.call(
            "connectReportToWorkbook", deployment_id=deployment_id, report_id=report_id, body=body
        )

    def list_folders(self, *, deployment_id: DeploymentId = None, **query: Any) -> Iterator[Any]:
        """Return the folders directly below a folder (`parent_id`), or below the root."""
        return self.iterate("getFolders", deployment_id=deployment_id, query=query)

    def update_workbook(
        self, workbook_id: Id, *, deployment_id: DeploymentId = None, **body: Any
    ) -> None:
        """Change `name`, `folder_id`, `meta` or `slug` of a workbook; `slug_takeover` takes the
        slug from the workbook that has it. None moves a workbook out of its folder. The service
        returns nothing. Raises PlatformConflictError for a slug that another workbook has."""
        self.call("updateWorkbook", deployment_id=deployment_id, workbook_id=workbook_id, body=body)

    def duplicate_workbook(
        self, workbook_id: Id, *, deployment_id: DeploymentId = None, **body: Any
    ) -> Any:
        """Clone a workbook, with `shared` from the shared workspace; returns the clone.

        The call is not repeated if its outcome is unknown. Raises PlatformBadRequestError at the
        limit of workbooks, and for a shared clone without a published dashboard.
        """
        return self.call(
            "duplicateWorkbook", deployment_id=deployment_id, workbook_id=workbook_id, body=body
        )

    def attach_ai_widget_thread(
        self, workbook_id: Id, *, deployment_id: DeploymentId = None, **body: Any
    ) -> Any:
        """Attach an AI thread (`thread_id`) to a widget (`widget_id`) of the published dashboard.
        Returns the dashboard."""
        return self.call(
            "updatePublishedDashboardAiWidgetThread",
            deployment_id=deployment_id,
            workbook_id=workbook_id,
            body=body,
        )

    def delete_embed_tenant(self, embed_tenant_name: str) -> None:
        """Delete an embed tenant with its users, groups and content. Tenants differ in whether
        the path ends in `/`: if a tenant does not know the one, the other is sent.
        Raises PlatformInputError for a name that is not in lower case."""
        if embed_tenant_name != embed_tenant_name.lower():
            raise refuse("embed_tenant_name", "must be in lower case")
        try:
            self.call("deleteEmbedTenant", embed_tenant_name=embed_tenant_name)
        except (PlatformNotFoundError, PlatformAddressError, PlatformBadRequestError) as error:
            if isinstance(error, PlatformBadRequestError) and error.status != 405:
                raise
            later = "DELETE /v1/embed-tenants/{embedTenantName}"
            self.call(later, embed_tenant_name=embed_tenant_name)

    def generate_embed_session(self, *, deployment_id: DeploymentId = None, **body: Any) -> Any:
        """Generate a session for a user, and return it; `sessionId` is a SecretStr that can be
        redeemed once.

        `tenant_groups` and `tenant_group_definitions` are groups of the embed tenant and need
        `creator_mode` and `embed_tenant_name`. The call is not repeated if its outcome is unknown.
        """
        return self.call("generateSession", deployment_id=deployment_id, body=body)

    def list_notifications(
        self, *, deployment_id: DeploymentId = None, **query: Any
    ) -> Iterator[Any]:
        """Return schedules, newest first: all, those of a dashboard (`dashboard_id`), or those with
        a recipient (`recipient_email`, ...). Raises PlatformPermissionError if the credential is
        not an administrator's."""
        return self.iterate("getNotifications", deployment_id=deployment_id, query=query)

    def create_notification(self, *, deployment_id: DeploymentId = None, **body: Any) -> Any:
        """Create a schedule without recipients: at least `schedule_type`, and `dashboard_id` or
        `dashboard_public_id`. Returns the schedule. Two equal calls create two schedules, so the
        call is never repeated if its outcome is unknown."""
        return self.call("createNotification", deployment_id=deployment_id, body=body)

    def update_notification(
        self, notification_id: Id, *, deployment_id: DeploymentId = None, **body: Any
    ) -> Any:
        """Change a schedule; filters, time grains and member switchers replace the stored ones,
        recipients stay. Returns the schedule."""
        return self.call(
            "updateNotification", deployment_id=deployment_id, id=notification_id, body=body
        )

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the form's fields. Airflow 3.1 calls this, and Airflow 3.0 if WTForms is
        installed. Later releases read the provider metadata."""
        return form_widgets()

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return which standard fields are hidden, and the labels of the others, for the same
        releases as `get_connection_form_widgets`."""
        return field_behaviour()

    def test_connection(self) -> tuple[bool, str]:
        """Return whether each configured part of the connection works, and what does not. Starts no
        chat run."""
        from airflow_provider_platform.resources.connection_check import check_connection, summary

        try:
            with self._new_client() as client:
                ok, message = summary(client.run(check_connection))
            notes = unknown_settings(read_extras(self.get_connection(self.platform_conn_id)))
        except PlatformConfigError as error:
            # Airflow tests under a made-up connection id, which would only confuse.
            return False, error.reason
        except PlatformError as error:
            return False, error.message
        return ok, "\n".join([message, *notes])

    def agent(self, agent: str = "") -> BoundManagedAgent:
        """Return an agent of the platform, by its name or id, as a client for `ManagedAgentToolset`
        of Airflow's common-ai provider; by default the agent of the connection. Experimental, as
        that provider marks its contract for managed agents."""
        from airflow_provider_platform.hooks import managed_agent

        return managed_agent.bind(self, agent)

    def resolve_agent(self, agent: str) -> ManagedAgentRef:
        """Return how logs and metrics name the agent. Part of the contract of `agent`."""
        from airflow_provider_platform.hooks import managed_agent

        return managed_agent.resolve(agent)

    def get_agent_capabilities(self, agent: str) -> ManagedAgentCapabilities:  # noqa: ARG002
        """Return what the agent can do. Part of the contract of `agent`."""
        from airflow_provider_platform.hooks import managed_agent

        return managed_agent.capabilities()

    def invoke_agent(self, agent: str, request: ManagedAgentRequest) -> ManagedAgentResponse:
        """Ask the agent, as `chat` does. Part of the contract of `agent`."""
        from airflow_provider_platform.hooks import managed_agent

        return managed_agent.invoke(self.chat, agent, request)

    def get_openlineage_database_info(self, connection: Any) -> Any:
        """Return the names of the database, for the OpenLineage provider."""
        return database_info(config_from_connection(connection))

    def get_openlineage_database_dialect(self, _: Any) -> str:
        """Return the SQL dialect by the name that OpenLineage's parser has for it."""
        return "postgres"

    def get_openlineage_default_schema(self) -> str:
        """Return the schema of tables that a query names without one."""
        return DEFAULT_SCHEMA

    def _reread(self) -> PlatformConfig:
        """`reread_config`, for a client whose token was refused; the hook then uses the new
        configuration."""
        return self._renewed(self.reread_config())

    def _renewed(self, config: PlatformConfig) -> PlatformConfig:
        """Return the new configuration. If the connection now has another address, it is another
        connection: work that has begun ends with the old one."""
        if self._config is None or config.same_endpoints(self._config):
            self._config = config
        return config

    def _agent_id(self, agent: str | None, agent_id: int | str | None) -> int | str | None:
        """`find_agent_id` for the connection."""
        return self.run(lambda api: find_agent_id(api, agent, agent_id))

    def _chat_call(self, client: PlatformClient, prompt: str, options: ChatOptions) -> ChatCall:
        _check_options(options)
        limits = ChatLimits(
            deadline=client.clock() + in_seconds(options.get("timeout", CHAT_TIMEOUT)),
            poll_interval=in_seconds(options.get("poll_interval", POLL_INTERVAL)),
            idle_timeout=client.config.stream_idle_timeout,
            max_attempts=client.config.max_attempts,
            if_thread_busy=options.get("if_thread_busy", "wait"),
        )
        return ChatCall.prepare(
            client.config,
            prompt,
            limits,
            message_id=options.get("message_id"),
            agent_id=self._agent_id(options.get("agent"), options.get("agent_id")),
            chat_id=options.get("chat_id"),
            session_settings=options.get("session_settings"),
            active_branch_name=options.get("active_branch_name"),
            is_default_branch=options.get("is_default_branch"),
            max_rows=options.get("max_rows", MAX_ROWS),
            details=True,
            is_recorded=False,
        )
