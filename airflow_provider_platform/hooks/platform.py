"""`PlatformHook`: the door from an Airflow connection to the platform's client."""

# ruff: noqa: TC001, TC003 - typing.get_type_hints evaluates the annotations
from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from difflib import get_close_matches
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack, get_args

from tenacity import AsyncRetrying, Retrying

from airflow_provider_platform._airflow import (
    BaseHook,
    get_connection_on_loop,
)
from airflow_provider_platform.client.chat.program import ChatCall, ChatLimits
from airflow_provider_platform.client.chat.result import (
    ChatResult,
    ToolErrorRule,
    with_changed_texts,
)
from airflow_provider_platform.client.chat.thread import ChatThread, abort, read_thread
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_check import check_connection, summary
from airflow_provider_platform.client.errors import (
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
)
from airflow_provider_platform.client.formats.durations import Seconds, in_seconds
from airflow_provider_platform.client.http.client import AsyncPlatformClient, PlatformClient
from airflow_provider_platform.client.http.turns import turn
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Program
from airflow_provider_platform.hooks._clients import HookClients
from airflow_provider_platform.hooks._connection_retry import rereading
from airflow_provider_platform.hooks._form_methods import PlatformConnectionForm
from airflow_provider_platform.hooks._log_mask import LOG_MASK
from airflow_provider_platform.hooks._management import ManagementMethods
from airflow_provider_platform.hooks._sql import DataMethods
from airflow_provider_platform.hooks.connection import (
    config_from_connection,
    read_extras,
    unknown_settings,
)
from airflow_provider_platform.hooks.connection_form import CONNECTION_TYPE

T = TypeVar("T")

_NOT_MASKED = "A secret of a call could not be masked in the logs."


class ChatOptions(TypedDict, total=False):
    """Options of `PlatformHook.chat`: those of `PlatformChatOperator`, `timeout` (default 1800)
    and `poll_interval` (default 5) in seconds, or as timedelta."""

    chat_id: str | None
    message_id: str | None
    session_settings: dict[str, Any] | None
    active_branch_name: str | None
    is_default_branch: bool | None
    if_thread_busy: Literal["wait", "fail"]
    fail_on_tool_error: ToolErrorRule
    max_rows: int
    timeout: Seconds
    poll_interval: Seconds


_CHOICES = {"if_thread_busy": ("wait", "fail"), "fail_on_tool_error": get_args(ToolErrorRule)}


def _check_options(options: ChatOptions) -> None:
    """Raise PlatformInputError for an option that is none: a misspelled one would be dropped, and
    the question asked of another branch or thread."""
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
        if choices is not None and value not in choices:
            raise PlatformInputError(
                f"Nothing was sent: {name} must be one of {', '.join(choices)}, got {value!r}.",
                field=name,
            )


def _redacted(shown: T, client: PlatformClient | AsyncPlatformClient) -> T:
    """A result or a thread as a task may return it, and thereby store it in an XCom."""
    return with_changed_texts(shown, client.secrets.redact)


class PlatformHook(PlatformConnectionForm, ManagementMethods, DataMethods, BaseHook):
    """Calls the platform with the credentials of an Airflow connection.

    Methods raise PlatformError (see `client.errors`); each says what failed and what to do. The
    methods of the resources (`connect_report`, `list_notifications` ...) are synchronous; on an
    event loop use `async_client` or the twins `arun`, `aiterate`, `achat`, `aread_thread`,
    `aabort_chat`, `arun_sql`.

    A hook keeps one client, and one for each event loop that its twins are called on. They are
    opened when first needed and closed with the hook: at the end of a `with` or `async with` block,
    by `close` or `aclose`, or when nothing refers to the hook any more. A hook that is used after
    that opens a new one; a result that was not read to its end by then raises.
    """

    conn_name_attr = "platform_conn_id"
    default_conn_name = "platform_default"
    conn_type = CONNECTION_TYPE
    hook_name = "Analytics Platform"

    def __init__(self, platform_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.platform_conn_id = platform_conn_id
        self._config: PlatformConfig | None = None
        self._clients = HookClients()

    @property
    def config(self) -> PlatformConfig:
        """The connection as checked configuration, its secrets masked in logs; with the newest
        credentials that were read. Raises PlatformConfigError naming the field."""
        if self._config is None:
            self._config = self.read_config()
        return self._config

    def read_config(self) -> PlatformConfig:
        """The connection as it is now."""
        connection = self.get_connection(self.platform_conn_id)
        config = config_from_connection(connection, self.platform_conn_id)
        LOG_MASK.hide(config.secrets)
        return config

    def reread_config(self) -> PlatformConfig:
        """`read_config` where it has worked before: tried for some seconds. Raises
        PlatformTransportError."""
        return Retrying(**rereading(self.platform_conn_id))(self.read_config)

    async def read_config_on_loop(self) -> PlatformConfig:
        """`read_config` for an event loop."""
        await turn()
        connection = await get_connection_on_loop(type(self), self.platform_conn_id)
        await turn()
        config = config_from_connection(connection, self.platform_conn_id)
        await LOG_MASK.hide_on_loop(config.secrets)
        return config

    async def reread_config_on_loop(self) -> PlatformConfig:
        """`reread_config` for an event loop."""
        patiently = AsyncRetrying(**rereading(self.platform_conn_id))
        return await patiently(self.read_config_on_loop)

    @contextmanager
    def client(self) -> Iterator[PlatformClient]:
        """The hook's client, for calls of its own; it stays open until the hook is closed.

        It reads the connection again when a token is refused.
        """
        yield self.open_client()

    def open_client(self) -> PlatformClient:
        """The client that the hook's methods use."""
        config = self.config
        return self._clients.sync(
            lambda: PlatformClient(config, reload=self._reread, mask=self._mask)
        )

    async def open_client_on_loop(self) -> AsyncPlatformClient:
        """The client that the hook's methods use on the running event loop."""
        if self._config is None:
            self._config = await self.read_config_on_loop()
        config = self._config
        return await self._clients.on_loop(
            lambda: AsyncPlatformClient(
                config, reload=self._reread_on_loop, mask=self._mask_on_loop
            )
        )

    def close(self) -> None:
        """Close the hook's connections; those of event loops are closed there a little later."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the hook's connections, on an event loop."""
        await self._clients.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    @asynccontextmanager
    async def async_client(self, *, again: bool = False) -> AsyncIterator[AsyncPlatformClient]:
        """A client of the block's own, for an event loop; it reads the connection now, and again
        when a token is refused.

        `again` says that the task has read the connection before, as a trigger's task has.
        """
        config = await (self.reread_config_on_loop() if again else self.read_config_on_loop())
        async with AsyncPlatformClient(
            config, reload=self.reread_config_on_loop, mask=self._mask_on_loop
        ) as client:
            yield client

    def get_conn(self) -> PlatformClient:
        """A client of its own for the caller, who closes it."""
        return self._new_client()

    def _new_client(self) -> PlatformClient:
        return PlatformClient(self.config, reload=self._reread, mask=self._mask)

    def run(
        self, work: Operation[T] | Program[T], on_event: Callable[[Any], None] | None = None
    ) -> T:
        """Run an operation or a program of the client, and return its typed answer."""
        client = self.open_client()
        return client.run(work, on_event) if on_event else client.run(work)

    async def arun(
        self, work: Operation[T] | Program[T], on_event: Callable[[Any], None] | None = None
    ) -> T:
        """`run` for an event loop."""
        client = await self.open_client_on_loop()
        return await (client.run(work, on_event) if on_event else client.run(work))

    def resolve_deployment_id(self, deployment_id: int | str | None = None) -> int:
        """The given deployment, else the connection's. Raises PlatformInputError."""
        return self.config.resolve_deployment_id(deployment_id)

    def chat(self, prompt: str, **options: Unpack[ChatOptions]) -> ChatResult:
        """Ask the agent and wait for its final answer, through every broken connection.

        The result holds `***` where the service quotes a secret that the client knows. A run that
        is not over after `timeout` seconds is stopped. Raises PlatformError.
        """
        client = self.open_client()
        call = self._chat_call(client, prompt, options)
        client.run(call.ask_or_stop(client.clock))
        with client.redacted_errors():
            result = call.run.result(fail_on_tool_error=options.get("fail_on_tool_error", "all"))
        return _redacted(result, client)

    async def achat(self, prompt: str, **options: Unpack[ChatOptions]) -> ChatResult:
        """`chat` for an event loop."""
        client = await self.open_client_on_loop()
        call = self._chat_call(client, prompt, options)
        await client.run(call.ask_or_stop(client.clock))
        with client.redacted_errors():
            result = call.run.result(fail_on_tool_error=options.get("fail_on_tool_error", "all"))
        return _redacted(result, client)

    def read_thread(
        self,
        chat_id: str,
        session_settings: dict[str, Any] | None = None,
        *,
        max_rows: int = 100,
        timeout: Seconds = 60.0,
    ) -> ChatThread:
        """Read a thread without asking anything: whether it is streaming, and its turns with their
        answers and queries (at most `max_rows` rows each). It holds `***` where the service quotes
        a secret that the client knows.

        `timeout` is in seconds, or a timedelta. Raises PlatformNotFoundError for an unknown thread,
        PlatformPermissionError for one of another user, ChatRpcError for a refused credential,
        PlatformTransportError where it could not be read in time.
        """
        client = self.open_client()
        thread = client.run(
            self._thread_reading(client, chat_id, session_settings, max_rows, timeout)
        )
        return _redacted(thread, client)

    async def aread_thread(
        self,
        chat_id: str,
        session_settings: dict[str, Any] | None = None,
        *,
        max_rows: int = 100,
        timeout: Seconds = 60.0,  # noqa: ASYNC109 - passed on as a number
    ) -> ChatThread:
        """`read_thread` for an event loop."""
        client = await self.open_client_on_loop()
        thread = await client.run(
            self._thread_reading(client, chat_id, session_settings, max_rows, timeout)
        )
        return _redacted(thread, client)

    def abort_chat(self, chat_id: str, session_settings: dict[str, Any] | None = None) -> None:
        """Stop whatever streams in the thread. Without session settings the request names no user:
        the service decides whether it takes it.

        Raises PlatformNotFoundError for an unknown thread, PlatformPermissionError for one of
        another owner, ChatRpcError for a refused credential, and PlatformInputError for
        `session_settings` that are given with a service token.
        """
        settings = self.config.resolve_session_settings(session_settings, required=False)
        self.run(abort(chat_id, settings))

    async def aabort_chat(
        self, chat_id: str, session_settings: dict[str, Any] | None = None
    ) -> None:
        """`abort_chat` for an event loop."""
        client = await self.open_client_on_loop()
        settings = client.config.resolve_session_settings(session_settings, required=False)
        await client.run(abort(chat_id, settings))

    def test_connection(self) -> tuple[bool, str]:
        """What works and what does not, for each side that is configured; starts no chat run."""
        try:
            with self._new_client() as client:
                ok, message = summary(client.run(check_connection(client.config)))
            notes = unknown_settings(read_extras(self.get_connection(self.platform_conn_id)))
        except PlatformConfigError as error:
            # Airflow tests under a made-up connection id, which would only confuse.
            return False, error.reason
        except PlatformError as error:
            return False, error.message
        return ok, "\n".join([message, *notes])

    def _mask(self, secrets: list[str]) -> None:
        """Mask what a call sends or brings. A failure is no reason to lose the call's answer."""
        try:
            LOG_MASK.learn(secrets)
        except Exception:
            self.log.warning(_NOT_MASKED, exc_info=True)

    async def _mask_on_loop(self, secrets: list[str]) -> None:
        """`_mask` for an event loop."""
        try:
            await LOG_MASK.learn_on_loop(secrets)
        except Exception:
            self.log.warning(_NOT_MASKED, exc_info=True)

    def _reread(self) -> PlatformConfig:
        """`reread_config`, for a client whose token was refused; the hook uses what it finds."""
        return self._renewed(self.reread_config())

    async def _reread_on_loop(self) -> PlatformConfig:
        return self._renewed(await self.reread_config_on_loop())

    def _renewed(self, config: PlatformConfig) -> PlatformConfig:
        """A connection that points elsewhere now is another one: what was begun ends with the old
        one."""
        if self._config is None or config.same_places(self._config):
            self._config = config
        return config

    def _thread_reading(
        self,
        client: PlatformClient | AsyncPlatformClient,
        chat_id: str,
        session_settings: dict[str, Any] | None,
        max_rows: int,
        timeout: Seconds,
    ) -> Program[ChatThread]:
        return read_thread(
            chat_id,
            client.config.resolve_session_settings(session_settings),
            client.clock,
            seconds=in_seconds(timeout),
            max_rows=max_rows,
            max_attempts=client.config.max_attempts,
        )

    def _chat_call(
        self, client: PlatformClient | AsyncPlatformClient, prompt: str, options: ChatOptions
    ) -> ChatCall:
        _check_options(options)
        limits = ChatLimits.of(
            client.config,
            deadline=client.clock() + in_seconds(options.get("timeout", 1800.0)),
            poll_interval=in_seconds(options.get("poll_interval", 5.0)),
            if_thread_busy=options.get("if_thread_busy", "wait"),
        )
        return ChatCall.prepare(
            client.config,
            prompt,
            limits,
            message_id=options.get("message_id"),
            chat_id=options.get("chat_id"),
            session_settings=options.get("session_settings"),
            active_branch_name=options.get("active_branch_name"),
            is_default_branch=options.get("is_default_branch"),
            max_rows=options.get("max_rows", 100),
            details=True,
        )
