"""What a function that calls the service gets: calls, a stream, a clock.

Code that decides about order, repeats and the end of a run is `async def` with an `Api` as its
first argument, and calls the service through it:
`answer = await api.call(get_report(report_id=101))`. A test passes a fake `Api` and needs no
server.

The `Api` repeats a management call under the policy of `repeats`, and everything else is sent
once. `run_here` runs such a function on the running event loop, for the clients.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from pydantic import SecretStr
from tenacity import AsyncRetrying

from airflow_provider_platform.client.choices import not_interrupted
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformError,
    PlatformInputError,
    PlatformInterruptedError,
    RequestName,
)
from airflow_provider_platform.client.failed_calls import CHAT_ABORT, CHAT_STREAM, DATA_QUERY
from airflow_provider_platform.client.http import (
    Connections,
    Progress,
    Stream,
    json_body,
    sending,
    system_proxy_passwords,
    with_query,
)
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.redaction import (
    KnownSecrets,
    may_hold_secrets,
    secrets_in,
)
from airflow_provider_platform.client.repeats import has_deleted_before, tenacity_policy
from airflow_provider_platform.client.responses import (
    MAX_ERROR_BYTES,
    MAX_LIST_BYTES,
    OpenResponse,
    check_data_start,
    check_stream_start,
    max_bytes,
    read_abort,
    read_data_document,
    read_response,
)

T = TypeVar("T")
P = ParamSpec("P")
A = TypeVar("A", bound="Api")


Clock = Callable[[], float]
"""Returns Unix time in seconds. A jump of the wall clock does not change it while the process
runs."""


def steady_clock() -> Clock:
    """Return a clock that starts at the wall clock's time."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


Reload = Callable[[], Awaitable[PlatformConfig]]
"""Reads the configuration again from its source."""
Mask = Callable[[list[str]], Awaitable[None]]
"""Called with each secret that is sent or received for the first time, before the caller can use
it."""

LEAST_SECONDS = 1.0
LARGE_BYTES = 256 * 1024
"""A larger response is parsed in another thread."""
INTERRUPTED = "The task was stopped, so it sends no further request."


@dataclass
class ClientState:
    """What all work of one client shares. Create and use it on one event loop."""

    config: PlatformConfig
    """The configuration in use (credentials may have been read again)."""
    reload: Reload | None = None
    clock: Clock = field(default_factory=steady_clock)
    mask: Mask | None = None
    secrets: KnownSecrets = field(init=False)
    """All secrets that were sent or received."""
    connections: Connections = field(default_factory=Connections, init=False)
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        # The error page of a proxy of the system may quote its password.
        self.secrets = KnownSecrets(self.config.secrets, learned=system_proxy_passwords())

    def anew(self) -> ClientState:
        """Return a state with the same configuration and secrets, and its own connections."""
        other = ClientState(self.config, self.reload, self.clock, self.mask)
        other.secrets = self.secrets
        return other


async def _ignore(event: object) -> None:
    """Ignore the event."""


def ignore_event(event: object) -> None:
    """Ignore the event."""


def _api_step(
    method: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[A, P], Coroutine[Any, Any, T]]:
    """Refuse what an interrupted task asks for, and hide secrets in the errors of the method."""

    @wraps(method)
    async def step(self: A, /, *args: P.args, **options: P.kwargs) -> T:
        if self.interrupted():
            raise PlatformInterruptedError(INTERRUPTED)
        request = method(self, *args, **options)
        try:
            if self.interrupted is not_interrupted:  # a triggerer, whose polls are cheaper so
                return await request
            return await self._interruptible(request)
        except PlatformError as error:
            self.secrets.hide_in(error)
            raise

    return step


class Api:
    """The calls, the stream, the clock and the listener of one run of work.

    It follows no redirect, and sends each credential to its own address only. It owns the stream
    that the work has open: at most one. Secrets are removed from the errors that its methods raise.
    What a method asks of the service is a task of its own. `interrupt` ends this task: the method
    raises PlatformInterruptedError, and the work decides what follows. If `interrupted` returns
    True, every later request raises it too.
    """

    def __init__(
        self,
        state: ClientState,
        hear: Callable[[object], Awaitable[None]] = _ignore,
        report: Callable[[object], None] = ignore_event,
        interrupted: Callable[[], bool] = not_interrupted,
    ) -> None:
        self._state = state
        self._hear = hear
        self.report = report
        """Report an event for the log. The work continues at once. The caller handles all events in
        order."""
        self.interrupted = interrupted
        """Whether the task was stopped."""
        self.clock = state.clock
        """Unix time in seconds."""
        self.secrets = state.secrets
        """All secrets that were sent or received."""
        self._streams: list[Stream] = []
        self._tasks: set[asyncio.Future[Any]] = set()
        self._config_used = state.config

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._state.config

    def hearing(self, hear: Callable[[object], Awaitable[None]]) -> Self:
        """Return this api. `hear` handles the events of its `notify`."""
        other = copy(self)
        other._hear = hear  # noqa: SLF001 - of the same class
        return other

    def beside(self) -> Self:
        """Return an api for work that runs at the same time: it has a stream of its own, which its
        user must close (`aclose`)."""
        other = copy(self)
        other._streams = []  # noqa: SLF001 - of the same class
        return other

    def interrupt(self) -> None:
        """End what is under way on the service."""
        for task in self._tasks:
            task.cancel()

    async def notify(self, event: object) -> None:
        """Report an event to the caller, and wait until the caller has handled it. Each function
        says which events it sends."""
        await self._hear(event)

    @_api_step
    async def call(
        self, operation: Operation[T], *, once: bool = False, deadline: float | None = None
    ) -> T:
        """Run a management operation and return its typed answer. Raises PlatformError.

        With `once`, the call is attempted once, and the caller decides about repeats. Otherwise the
        retry policy applies. It never waits beyond `deadline` (Unix time).
        """
        operation = operation.in_deployment(self.config.resolve_deployment_id)
        await self._learn(operation.secrets)
        if once:  # a poll, of which a triggerer makes many
            return await self._attempt(operation, deadline)
        policy = tenacity_policy(
            repeatable=operation.repeatable,
            max_attempts=self.config.max_attempts,
            deadline=deadline,
            clock=self.clock,
        )
        earlier: list[PlatformError] = []
        async for attempt in AsyncRetrying(**policy):
            with attempt:
                try:
                    return await self._attempt(operation, deadline)
                except PlatformError as error:
                    if has_deleted_before(operation.method, error, earlier):
                        return operation.done_before()
                    earlier.append(error)
                    raise
        raise AssertionError("tenacity re-raises the last error")

    @_api_step
    async def open_stream(
        self,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool = False,
        agent_id: int | str | None = None,
    ) -> None:
        """Send a chat request and open its response as a stream; an open stream is closed before.
        `agent_id` names another agent than the connection's.

        With `repeatable`, the request may reach the service twice. Raises PlatformError for an
        error status, HTML, a redirect or a broken connection.
        """
        await self.aclose()
        self._config_used = self.config
        await self._learn(list(secrets_in(body)))
        await self._open(
            CHAT_STREAM,
            f"{self.config.require_chat_url(agent_id)}/stream-chat-state",
            headers=self._chat_headers(),
            body=body,
            seconds=timeout,
            check=check_stream_start,
            repeatable=repeatable,
        )

    @_api_step
    async def open_data_stream(
        self, url: str, token: SecretStr, body: dict[str, Any], *, timeout: float
    ) -> bool:
        """Send a query to the data API at `url` and open its response, as `open_stream` does. The
        header has only the token, without a scheme. Returns whether the response is open-ended:
        only the end of the connection marks its end, so a response that was cut looks complete."""
        await self.aclose()
        await self._learn([token.get_secret_value()])
        opened = await self._open(
            DATA_QUERY,
            url,
            headers={"Authorization": token.get_secret_value()},
            body=body,
            seconds=timeout,
            check=check_data_start,
        )
        return opened.is_open_ended

    @_api_step
    async def read_stream(self, timeout: float) -> bytes | None:
        """Return the next bytes of the open stream: b"" at its end, and None after `timeout`
        seconds without bytes (the stream is then lost).

        HTTP marks the end; if the response is open-ended, the end of the connection does. Raises
        PlatformTransportError if the connection breaks, PlatformProtocolError if the response has a
        content coding that the request did not allow.
        """
        if not self._streams:
            raise RuntimeError("no stream is open")
        return await self._streams[0].read(timeout)

    @_api_step
    async def close_stream(self, *, complete: bool = False) -> None:
        """Close the open stream, if any. `complete` says that the service has sent everything. The
        stream then waits a moment for the end of the response, so that the connection can be used
        again."""
        if complete and self._streams:
            await self._streams[0].drain()
        await self.aclose()

    @_api_step
    async def call_data(
        self,
        name: RequestName,
        url: str,
        token: SecretStr,
        body: dict[str, Any] | None,
        *,
        timeout: float,
        repeatable: bool = False,
    ) -> Any:
        """Send a request to the data API at `url` whose response is one JSON document: a GET if
        there is no body. Returns that document, or a `DataRefusal` if the deployment itself answers
        with an error.

        Errors call the request `name`. `timeout` is in seconds. With `repeatable`, the request may
        reach the service twice. It is attempted once. Raises PlatformError for HTML, a redirect, a
        refused token, a broken connection, or an error of a server in front of the deployment.
        """
        await self._learn([token.get_secret_value()])
        answered = await self._request(
            name,
            "GET" if body is None else "POST",
            url,
            headers={"Authorization": token.get_secret_value(), "Accept": "application/json"},
            body=body,
            limit=MAX_LIST_BYTES,
            seconds=timeout,
            repeatable=repeatable,
        )
        return read_data_document(
            name, answered.status, answered.headers, answered.body, now=self.clock()
        )

    @_api_step
    async def send_chat(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None = None,
        agent_id: int | str | None = None,
    ) -> None:
        """Send a chat request whose response is not a stream (abort), and return if the service
        confirms it. `timeout` is in seconds; None means the configuration's. `agent_id` names
        another agent than the connection's. Raises PlatformError."""
        await self._learn(list(secrets_in(body)))
        answered = await self._request(
            CHAT_ABORT,
            "POST",
            f"{self.config.require_chat_url(agent_id)}{path}",
            headers={**self._chat_headers(), "Accept": "application/json"},
            body=body,
            limit=MAX_ERROR_BYTES,
            seconds=timeout or self.config.request_timeout,
        )
        read_abort(answered.status, answered.headers, answered.body, now=self.clock())

    @_api_step
    async def sleep(self, seconds: float, longest: float | None = None) -> None:
        """Pause for `seconds`. With `longest`, pause for a random time between both, so that waits
        which began together do not all poll at the same time."""
        longest = seconds if longest is None else longest
        await asyncio.sleep(random.uniform(seconds, longest))  # noqa: S311 - guards nothing

    @_api_step
    async def reload_credentials(self) -> bool:
        """Read the credentials again from their source, and return whether they changed."""
        return await self._replace(self._config_used)

    async def aclose(self) -> None:
        """Close the open stream, if any."""
        while self._streams:
            await self._streams.pop().aclose()

    async def _interruptible(self, request: Awaitable[T]) -> T:
        """Return the result of the request, which is a task of its own."""
        task = asyncio.ensure_future(request)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            return await task
        except asyncio.CancelledError:
            if not (task.cancelled() and self.interrupted()):
                raise
            raise PlatformInterruptedError(INTERRUPTED) from None

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # if the work was ended, nobody waits for it

    async def _attempt(self, operation: Operation[T], deadline: float | None) -> T:
        """Send a management call once, and once more if a new credential replaces a refused one."""
        used = self.config
        try:
            return await self._perform(operation, deadline)
        except PlatformAuthenticationError:
            if not await self._replace(used):
                raise
            return await self._perform(operation, deadline)

    async def _replace(self, refused: PlatformConfig) -> bool:
        """Read the credentials again. Return True if they differ from the refused ones. If the
        connection now has another address, its credentials are not used."""
        state = self._state
        if state.reload is None:
            return False
        async with state.reloading:
            if state.config.secrets != refused.secrets:
                return True  # another call has read them in the meantime
            fresh = await state.reload()
            if fresh.secrets == state.config.secrets or not fresh.same_endpoints(state.config):
                return False
            state.config = fresh
            state.secrets.learn(fresh.secrets)
            return True

    async def _perform(self, operation: Operation[T], deadline: float | None) -> T:
        base, token = self.config.require_management_url(), self.config.management_token
        url = operation.url(base)
        answered = await self._request(
            operation.request_name,
            operation.method,
            with_query(url, operation.query) if operation.query else url,
            headers={
                "accept": "*/*" if operation.binary else "application/json",
                **operation.headers,
                "Authorization": f"Bearer {token.get_secret_value() if token else ''}",
            },
            body=operation.body,
            limit=max_bytes(operation),
            seconds=self._seconds_until(deadline),
            repeatable=operation.repeatable,
        )
        # What the service quotes of our own credentials goes no further: answers become XComs. In
        # what no model describes it is left for the caller to find.
        secrets = self.secrets if operation.described else None
        read = partial(_read, operation, answered, now=self.clock(), secrets=secrets)
        large = len(answered.body) > LARGE_BYTES and not operation.binary
        answer, received = await asyncio.to_thread(read) if large else read()
        await self._learn(received)
        return answer

    async def _learn(self, secrets: Sequence[str]) -> None:
        """Hide these secrets from now on in errors, and in logs if the caller masks them."""
        new = self.secrets.learn(secrets) if secrets else []
        if new and self._state.mask is not None:
            await self._state.mask(new)

    async def _request(
        self,
        name: RequestName,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: Any,
        limit: int,
        seconds: float,
        repeatable: bool = False,
    ) -> OpenResponse:
        """Send a request and return its response with the whole body."""
        async with sending(name, url, seconds) as progress:
            response = await self._send(
                name, method, url, progress, headers=headers, body=body, repeatable=repeatable
            )
            try:
                response.body = await response.read(name, limit)
            finally:
                await response.aclose()
        return response

    async def _open(
        self,
        name: RequestName,
        url: str,
        *,
        headers: dict[str, str],
        body: dict[str, Any],
        seconds: float,
        check: Callable[..., None],
        repeatable: bool = False,
    ) -> Stream:
        """Send a request, check the head of its response, and keep its body open."""
        headers = {**headers, "Accept": "application/json"}
        async with sending(name, url, seconds) as progress:
            response = await self._send(
                name, "POST", url, progress, headers=headers, body=body, repeatable=repeatable
            )
            try:
                failed = response.status >= 300
                said = await response.read(name, MAX_ERROR_BYTES) if failed else b""
                check(name, response.status, response.headers, said, now=self.clock())
            except BaseException:
                await response.aclose()
                raise
        self._streams.append(Stream(name, response, self._state.connections))
        return self._streams[-1]

    async def _send(
        self,
        name: RequestName,
        method: str,
        url: str,
        progress: Progress,
        *,
        headers: dict[str, str],
        body: Any,
        repeatable: bool,
    ) -> OpenResponse:
        content = None if method == "GET" and body is None else json_body(name, body)
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        elif content is not None:  # some front ends answer 411 if it is missing
            headers = {**headers, "Content-Length": "0"}
        return await self._state.connections.send(
            self.config,
            method,
            url,
            progress,
            headers=headers,
            content=content,
            repeatable=repeatable,
        )

    def _seconds_until(self, deadline: float | None) -> float:
        """Return the seconds that one request may take. The last request before a deadline has at
        least a second."""
        if deadline is None:
            return self.config.request_timeout
        return min(self.config.request_timeout, max(LEAST_SECONDS, deadline - self.clock()))

    def _chat_headers(self) -> dict[str, str]:
        config = self.config
        if config.chat_api_key is not None:
            return {"Authorization": f"Api-Key {config.chat_api_key.get_secret_value()}"}
        token = config.chat_service_token
        return {config.chat_service_header: token.get_secret_value()} if token else {}


def _read(
    operation: Operation[T], answered: OpenResponse, *, now: float, secrets: KnownSecrets | None
) -> tuple[T, list[str]]:
    """Return the answer and the secrets in it."""
    answer = read_response(
        operation,
        answered.status,
        answered.headers,
        answered.body,
        now=now,
        secrets=secrets,
        open_ended=answered.is_open_ended,
    )
    searched = not operation.binary and may_hold_secrets(answered.body)
    return answer, list(secrets_in(answer)) if searched else []


# Work that calls the service, as it runs on an event loop.


Work = Callable[[Api], Awaitable[T]]
"""What a client runs: it gets the `Api` of this run, and its result is the run's."""


def work_of(work: Operation[T] | Work[T]) -> Work[T]:
    """Return the work; an operation becomes the work that makes this one call. Raises
    PlatformInputError for anything else."""
    if isinstance(work, Operation):
        operation = work
        return lambda api: api.call(operation)
    if not callable(work):
        raise PlatformInputError(
            "Nothing was sent: run needs a function that gets an api and makes calls, not "
            f"{type(work).__name__}. For one operation, write call(operation, ...).",
            field="work",
        )
    return work


OnEvent = Callable[[Any], None]


async def run_here(work: Operation[T] | Work[T], api: Api) -> T:
    """Run an operation or other work on the running loop."""
    try:
        return await work_of(work)(api)
    except PlatformError as error:
        api.secrets.hide_in(error)
        raise
    finally:
        await api.aclose()
