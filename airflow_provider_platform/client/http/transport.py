"""Carries out effects over HTTP: the one module that imports httpx.

`Transport` performs single effects of a program on an event loop: management calls under the
retry policy, the chat stream, the abort request. It holds one HTTP client per target host for its
whole life, follows no redirects and sends each credential to its own address only.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from tenacity import AsyncRetrying

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformClosedError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformProtocolError,
    PlatformTransportError,
    quote_service,
)
from airflow_provider_platform.client.http import responses as answers
from airflow_provider_platform.client.http.retry import tenacity_policy
from airflow_provider_platform.client.http.tls_and_proxy import (
    keep_alive_options,
    proxy_for,
    tls_context,
)
from airflow_provider_platform.client.http.turns import turn
from airflow_provider_platform.client.operations.credentials import may_hold_secrets, secrets_in
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import (
    Call,
    OpenDataStream,
    OpenStream,
    SendChat,
)
from airflow_provider_platform.client.redaction import KnownSecrets

T = TypeVar("T")

Reload = Callable[[], Awaitable[PlatformConfig]]
"""Reads the configuration again where it came from."""
Mask = Callable[[list[str]], Awaitable[None]]
"""Hears of every secret that is sent or received for the first time, before anybody else can."""

CONNECT_TIMEOUT = 30.0
LEAST_SECONDS = 1.0
FRESH_SECONDS = 2.0
"""Seconds that a connection may have been idle that carries what must not be sent twice."""
STALE_REPEATS = 3
DRAIN_SECONDS = 0.25
MAX_WAITING_BYTES = 1024 * 1024
"""What a stream takes of the network before anybody reads it."""
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
MAX_DOWNLOAD_BYTES = 512 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024

_BROKEN = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class SteadyClock:
    """Unix time that a jump of the wall clock does not move while the process runs."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._offset + time.monotonic()


class Transport:
    """Performs effects for one configuration; create and use it on one event loop."""

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Reload | None = None,
        clock: Callable[[], float] | None = None,
        mask: Mask | None = None,
    ) -> None:
        self.config = config
        self.secrets = KnownSecrets(config.secrets)
        self.clock = clock or SteadyClock()
        self.connections = Connections()
        self._reload = reload
        self._mask = mask
        self._reloading = asyncio.Lock()

    def anew(self) -> Transport:
        """The same with connections of its own."""
        return Transport(self.config, reload=self._reload, clock=self.clock, mask=self._mask)

    async def aclose(self) -> None:
        """Close every connection."""
        await self.connections.aclose()

    async def call(self, effect: Call[T]) -> T:
        """Run a management operation. Raises PlatformError (see `client.errors`)."""
        operation = effect.operation.in_deployment(self.config.resolve_deployment_id)
        await self._learn(operation.secrets)
        policy = tenacity_policy(
            repeatable=operation.repeatable,
            max_attempts=1 if effect.once else self.config.max_attempts,
            deadline=effect.deadline,
            clock=self.clock,
        )
        async for attempt in AsyncRetrying(**policy):
            with attempt:
                used = self.config
                try:
                    return await self._exchange(operation, effect.deadline)
                except PlatformAuthenticationError:
                    if not await self.reload_credentials(used):
                        raise
                    return await self._exchange(operation, effect.deadline)
                except PlatformNotFoundError:
                    if operation.method == "DELETE" and attempt.retry_state.attempt_number > 1:
                        return operation.done_before()
                    raise
        raise AssertionError("tenacity re-raises the last error")

    async def reload_credentials(self, refused: PlatformConfig) -> bool:
        """Read the credentials again; True where others than the refused ones are in use now. A
        connection that points elsewhere by now is not used."""
        if self._reload is None:
            return False
        async with self._reloading:
            if self.config.secrets != refused.secrets:
                return True  # another call has read them meanwhile
            fresh = await self._reload()
            if fresh.secrets == self.config.secrets or not fresh.same_places(self.config):
                return False
            self.config = fresh
            self.secrets.learn(fresh.secrets)
            return True

    async def send_chat(self, effect: SendChat) -> None:
        """Send an abort request. Raises PlatformError; returns only where it was confirmed."""
        await self._learn(secrets_in(effect.body))
        url = f"{self.config.require_chat_url()}{effect.path}"
        headers = {**self._chat_headers(), "Accept": "application/json"}
        status, got, body = await self._request(
            "POST",
            url,
            headers=headers,
            body=effect.body,
            limit=MAX_ERROR_BYTES,
            seconds=effect.timeout,
        )
        answers.read_abort(status, got, body, now=self.clock())

    async def open_stream(self, effect: OpenStream) -> Stream:
        """Send a chat request; the answer's head is checked, its body is still to be read."""
        await self._learn(secrets_in(effect.body))
        return await self._open(
            "chat stream: POST /stream-chat-state",
            f"{self.config.require_chat_url()}/stream-chat-state",
            headers=self._chat_headers(),
            body=effect.body,
            seconds=effect.timeout,
            check=answers.check_stream_start,
            repeatable=effect.repeatable,
        )

    async def open_data_stream(self, effect: OpenDataStream) -> Stream:
        """Send a query to the data API; its token stands in the header alone, without a scheme."""
        await self._learn([effect.token.get_secret_value()])
        return await self._open(
            "data query: POST /v1/cubesql",
            effect.url,
            headers={"Authorization": effect.token.get_secret_value()},
            body=effect.body,
            seconds=effect.timeout,
            check=answers.check_data_start,
        )

    async def _open(
        self,
        what: str,
        url: str,
        *,
        headers: dict[str, str],
        body: dict[str, Any],
        seconds: float,
        check: Callable[..., None],
        repeatable: bool = False,
    ) -> Stream:
        content = _body(what, body)
        async with _translated(what, seconds):
            exchange = await self.connections.send(
                self.config,
                "POST",
                url,
                content=content,
                headers={
                    **headers,
                    "Accept": "application/json",
                    "Content-Type": "application/json",
                },
                timeout=httpx.Timeout(None, connect=_connect_timeout(seconds)),
                repeatable=repeatable,
            )
            try:
                head = exchange.response
                unusual = head.status_code >= 300 or answers.is_html_type(head.headers)
                said = await _read(what, head, MAX_ERROR_BYTES, cut=True) if unusual else b""
                check(what, head.status_code, head.headers, said, now=self.clock())
            except BaseException:
                await exchange.aclose()
                raise
        return Stream(what, exchange)

    async def _exchange(self, operation: Operation[T], deadline: float | None) -> T:
        base, token = self.config.require_management_url(), self.config.management_token
        bearer = token.get_secret_value() if token else ""
        status, headers, body = await self._request(
            operation.method,
            operation.url(base),
            headers={
                "Authorization": f"Bearer {bearer}",
                "Accept": "*/*" if operation.binary else "application/json",
            },
            params=operation.query,
            body=operation.body,
            limit=MAX_DOWNLOAD_BYTES if operation.binary else MAX_RESPONSE_BYTES,
            what=str(operation),
            seconds=self._seconds_until(deadline),
            repeatable=operation.repeatable,
        )
        answer = answers.read_response(operation, status, headers, body, now=self.clock())
        if not operation.binary and may_hold_secrets(body):
            await self._learn(secrets_in(answer))
        return answer

    async def _learn(self, secrets: Iterable[str]) -> None:
        """Hide these secrets from now on, in errors and, where somebody masks logs, there."""
        new = self.secrets.learn(secrets)
        if new and self._mask is not None:
            await self._mask(new)

    async def _request(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: Any,
        limit: int,
        params: Mapping[str, Any] | None = None,
        what: str | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> tuple[int, httpx.Headers, bytes]:
        seconds = seconds or self.config.request_timeout
        named = what or f"{method} {urlsplit(url).path}"
        content = None if method == "GET" and body is None else _body(named, body)
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        elif content is not None:
            headers = {**headers, "Content-Length": "0"}  # some front ends answer 411 without
        async with _translated(named, seconds):
            exchange = await self.connections.send(
                self.config,
                method,
                url,
                params=_query(params),
                headers=headers,
                content=content,
                timeout=httpx.Timeout(seconds, connect=_connect_timeout(seconds)),
                repeatable=repeatable,
            )
            try:
                head = exchange.response
                answer = await _read(named, head, limit, cut=head.status_code >= 300)
            finally:
                await exchange.aclose()
            return head.status_code, head.headers, answer

    def _seconds_until(self, deadline: float | None) -> float:
        """What one request may take; the last one before a deadline has at least a second."""
        if deadline is None:
            return self.config.request_timeout
        return min(self.config.request_timeout, max(LEAST_SECONDS, deadline - self.clock()))

    def _chat_headers(self) -> dict[str, str]:
        config = self.config
        if config.chat_api_key is not None:
            return {"Authorization": f"Api-Key {config.chat_api_key.get_secret_value()}"}
        token = config.chat_service_token
        return {config.chat_service_header: token.get_secret_value()} if token else {}


@dataclass
class _Origin:
    """The HTTP clients of one address, and what tells how old their connections are.

    A connection that was idle may be closed by the service in the very moment in which a request
    is sent on it. A request that can be repeated is sent again then; one that cannot goes out on a
    connection that is new, or was in use a moment ago.
    """

    make: Callable[[float | None], httpx.AsyncClient]
    under_way: int = 0
    idle_since: float | None = None

    @cached_property
    def kept(self) -> httpx.AsyncClient:
        """Keeps connections as long as the service does."""
        return self.make(None)

    @cached_property
    def fresh(self) -> httpx.AsyncClient:
        """Keeps connections for a moment."""
        return self.make(FRESH_SECONDS)

    def client(self, *, repeatable: bool) -> httpx.AsyncClient:
        if repeatable or (self.idle_since is None and self.under_way == 0):
            return self.kept
        idle = time.monotonic() - (self.idle_since or 0.0)
        return self.kept if self.under_way == 0 and idle < FRESH_SECONDS else self.fresh

    async def aclose(self) -> None:
        for name in ("kept", "fresh"):
            client = vars(self).get(name)
            if client is not None:
                await client.aclose()


class Connections:
    """The connections of one client: kept as long as the service keeps them, each credential's
    address for itself."""

    def __init__(self) -> None:
        self._origins: dict[str, _Origin] = {}
        self.closed = False

    async def send(
        self, config: PlatformConfig, method: str, url: str, *, repeatable: bool, **request: Any
    ) -> Exchange:
        """Send a request; the answer's head has come. Raises httpx errors, PlatformClosedError."""
        origin = await self._origin(config, url)
        for left in reversed(range(1 + STALE_REPEATS)):
            path = _Path()
            client = origin.client(repeatable=repeatable)
            built = client.build_request(method, url, extensions={"trace": path.note}, **request)
            origin.under_way += 1
            try:
                response = await client.send(built, stream=True)
            except BaseException as error:
                origin.under_way -= 1
                stale = isinstance(error, _BROKEN) and not path.is_new
                if not (stale and repeatable and left):
                    raise
            else:
                return Exchange(self, origin, response)
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close every connection, now and for good."""
        self.closed = True
        origins, self._origins = list(self._origins.values()), {}
        for origin in origins:
            await origin.aclose()

    async def _origin(self, config: PlatformConfig, url: str) -> _Origin:
        parts = urlsplit(url)
        name = f"{parts.scheme}://{parts.netloc}"
        if name not in self._origins and not self.closed:
            await turn()
        if self.closed:
            raise PlatformClosedError("This client is closed: nothing was sent.")
        if name not in self._origins:
            make = partial(_client, config, parts.scheme, parts.hostname or "")
            self._origins[name] = _Origin(make)
        return self._origins[name]


class _Path:
    """Where a request went: over a connection that was made for it, or one that was there."""

    def __init__(self) -> None:
        self.is_new = False

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        """Hear what httpcore tells of the request."""
        self.is_new = self.is_new or event.startswith("connection.connect")


@dataclass
class Exchange:
    """A request that was sent, and the answer that comes."""

    connections: Connections
    origin: _Origin
    response: httpx.Response
    closed: bool = field(default=False, init=False)

    async def aclose(self) -> None:
        """Give the connection back, where the answer was read to its end, or close it."""
        if self.closed:
            return
        self.closed = True
        try:
            await self.response.aclose()
        finally:
            self.origin.under_way -= 1
            self.origin.idle_since = time.monotonic()


class Stream:
    """The open answer of a request, read piece by piece; bytes come decoded.

    A task of its own takes what arrives, so that a reader gets all of that at once.
    """

    def __init__(self, what: str, exchange: Exchange) -> None:
        self._what = what
        self._exchange = exchange
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._failure: PlatformError | None = None
        self._progress = asyncio.Event()
        self._room = asyncio.Event()
        self._arrivals = asyncio.create_task(self._receive())

    async def read(self, seconds: float) -> bytes | None:
        """The bytes that have arrived, b"" at the clean end, None after so many seconds without
        any (the connection is lost then). Raises PlatformTransportError where the answer broke
        off, PlatformClosedError where it was closed before its end."""
        if not self._progress.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._progress.wait()
            except TimeoutError:
                return None
        if self._exchange.connections.closed and not self._over:
            raise PlatformClosedError(f"{self._what}: the client was closed before its end.")
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._room.set()
            if not (self._ended or self._failure):
                self._progress.clear()
            return data
        if self._failure is not None:
            raise self._failure
        return b""

    async def drain(self) -> None:
        """Wait a moment for the end of an answer of which nothing more is wanted."""
        self._pieces.clear()
        self._room.set()
        await asyncio.wait({self._arrivals}, timeout=DRAIN_SECONDS)

    @property
    def _over(self) -> bool:
        """Whether all has been read, to the clean end."""
        return self._ended and not self._pieces

    async def aclose(self) -> None:
        """Give the connection back or close it."""
        self._failure = self._failure or PlatformClosedError(
            f"{self._what}: closed before its end."
        )
        self._progress.set()
        self._arrivals.cancel()
        try:
            await asyncio.wait({self._arrivals})
        finally:
            await self._exchange.aclose()

    async def _receive(self) -> None:
        try:
            async for piece in self._exchange.response.aiter_bytes():
                self._pieces.append(piece)
                self._size += len(piece)
                self._progress.set()
                if self._size > MAX_WAITING_BYTES:
                    self._room.clear()
                    await self._room.wait()
            self._ended = True
        except (httpx.HTTPError, httpx.StreamError) as error:
            self._failure = PlatformTransportError(
                f"{self._what}: the connection broke ({_reason(error)})."
            )
            self._failure.__cause__ = error
        finally:
            self._progress.set()


@asynccontextmanager
async def _translated(what: str, seconds: float) -> AsyncIterator[None]:
    """Turns time-outs and httpx errors inside the block into PlatformTransportError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise PlatformTransportError(
            f"{what}: no complete answer within {seconds:g} seconds."
        ) from None
    except _NEVER_SENT as error:
        raise PlatformTransportError(
            f"{what}: no connection could be made ({_reason(error)}). Check the address, the "
            "network and, for a certificate error, ca_bundle.",
            processed=False,
        ) from error
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise PlatformInputError(
            f"{what}: nothing was sent, the address cannot be used ({_reason(error)})."
        ) from error
    except httpx.HTTPError as error:
        raise PlatformTransportError(
            f"{what}: the connection broke before the answer was complete ({_reason(error)})."
        ) from error


def _connect_timeout(seconds: float) -> float:
    """A little less than the whole, so that a connection that was never made shows as that."""
    return min(CONNECT_TIMEOUT, seconds * 0.9)


def _reason(error: Exception) -> str:
    return quote_service(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


async def _read(what: str, response: httpx.Response, limit: int, *, cut: bool) -> bytes:
    """The body; with `cut` (errors, of which any part is good enough) as much of it as comes."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in response.aiter_bytes():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                if cut:
                    break
                raise PlatformProtocolError(
                    f"{what}: the answer exceeds {limit} bytes; it was not read on."
                )
    except httpx.HTTPError:
        if not cut:
            raise
    return b"".join(pieces)


def _body(what: str, value: Any) -> bytes:
    """A request's body, empty for None. Raises PlatformInputError for what JSON cannot carry."""
    if value is None:
        return b""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PlatformInputError(
            f"{what}: nothing was sent, the body cannot be written as JSON ({_reason(error)})."
        ) from None


def _query(params: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """Query parameters as pairs: lists repeat their name, None is absent, booleans are lower."""
    if not params:
        return None
    return [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in params.items()
        for one in (value if isinstance(value, list | tuple) else [value])
        if one is not None
    ]


def _client(
    config: PlatformConfig, scheme: str, host: str, keep: float | None
) -> httpx.AsyncClient:
    """An HTTP client for one address, which keeps idle connections for so many seconds; None as
    long as the service keeps them."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=keep)
    try:
        transport = httpx.AsyncHTTPTransport(
            verify=tls_context(config) if scheme == "https" else False,
            proxy=proxy_for(config, scheme, host),
            http2=False,
            limits=limits,
            socket_options=keep_alive_options(),
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy, of the connection or of the system, cannot be used: its address must begin "
            "with http:// or https://; socks5:// needs the package socksio.",
            field="proxy",
        ) from None
    return httpx.AsyncClient(
        transport=transport,
        follow_redirects=False,
        trust_env=False,
        headers={"User-Agent": "airflow-provider-platform"},
    )
