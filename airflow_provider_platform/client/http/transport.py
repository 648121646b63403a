"""Carries out effects over HTTP: the one module that imports httpx.

`Transport` performs single effects of a program on an event loop: management calls under the
retry policy, the chat stream, the abort request. It holds one HTTP client per target host for its
whole life, follows no redirects and sends each credential to its own address only.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from tenacity import AsyncRetrying

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformConfigError,
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
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
MAX_DOWNLOAD_BYTES = 512 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024

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
        self._reload = reload
        self._mask = mask
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def aclose(self) -> None:
        """Close every connection."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()

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
                try:
                    return await self._exchange(operation, effect.deadline)
                except PlatformAuthenticationError:
                    if not await self.reload_credentials():
                        raise
                    return await self._exchange(operation, effect.deadline)
                except PlatformNotFoundError:
                    if operation.method == "DELETE" and attempt.retry_state.attempt_number > 1:
                        return operation.done_before()
                    raise
        raise AssertionError("tenacity re-raises the last error")

    async def reload_credentials(self) -> bool:
        """Read the credentials again; True where they changed and the addresses did not."""
        if self._reload is None:
            return False
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
    ) -> Stream:
        content = _body(what, body)
        stack = AsyncExitStack()
        try:
            async with _translated(what, seconds):
                response = await stack.enter_async_context(
                    self._client(url).stream(
                        "POST",
                        url,
                        content=content,
                        headers={
                            **headers,
                            "Accept": "application/json",
                            "Content-Type": "application/json",
                        },
                        timeout=httpx.Timeout(None, connect=_connect_timeout(seconds)),
                    )
                )
                unusual = response.status_code >= 300 or answers.is_html_type(response.headers)
                said = await _read(what, response, MAX_ERROR_BYTES, cut=True) if unusual else b""
                check(what, response.status_code, response.headers, said, now=self.clock())
        except BaseException:
            await stack.aclose()
            raise
        return Stream(what, response, stack)

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
    ) -> tuple[int, httpx.Headers, bytes]:
        seconds = seconds or self.config.request_timeout
        named = what or f"{method} {urlsplit(url).path}"
        content = None if method == "GET" and body is None else _body(named, body)
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        elif content is not None:
            headers = {**headers, "Content-Length": "0"}  # some front ends answer 411 without
        async with (
            _translated(named, seconds),
            self._client(url).stream(
                method,
                url,
                params=_query(params),
                headers=headers,
                content=content,
                timeout=httpx.Timeout(seconds, connect=_connect_timeout(seconds)),
            ) as response,
        ):
            answer = await _read(named, response, limit, cut=response.status_code >= 300)
            return response.status_code, response.headers, answer

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

    def _client(self, url: str) -> httpx.AsyncClient:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._clients:
            self._clients[origin] = httpx.AsyncClient(
                transport=_transport(self.config, parts.scheme, parts.hostname or ""),
                follow_redirects=False,
                trust_env=False,
                headers={"User-Agent": "airflow-provider-platform"},
            )
        return self._clients[origin]


class Stream:
    """The open answer of a request, read piece by piece; bytes come decoded."""

    def __init__(self, what: str, response: httpx.Response, stack: AsyncExitStack) -> None:
        self._what = what
        self._pieces: AsyncIterator[bytes] = response.aiter_bytes()
        self._stack = stack

    async def read(self, seconds: float) -> bytes | None:
        """The next bytes, b"" at the clean end, None after so many seconds without any (the
        connection is lost then)."""
        try:
            async with asyncio.timeout(seconds):
                return await anext(self._pieces, b"")
        except TimeoutError:
            return None
        except httpx.HTTPError as error:
            raise PlatformTransportError(
                f"{self._what}: the connection broke ({_reason(error)})."
            ) from error

    async def aclose(self) -> None:
        """Give the connection back or close it."""
        await self._stack.aclose()


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


def _transport(config: PlatformConfig, scheme: str, host: str) -> httpx.AsyncHTTPTransport:
    try:
        return httpx.AsyncHTTPTransport(
            verify=tls_context(config) if scheme == "https" else False,
            proxy=proxy_for(config, scheme, host),
            http2=False,
            socket_options=keep_alive_options(),
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy, of the connection or of the system, cannot be used: its address must begin "
            "with http:// or https://; socks5:// needs the package socksio.",
            field="proxy",
        ) from None
