"""The connections of one client: which of them carries a request, and how long they live."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import httpx

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformClosedError, PlatformConfigError
from airflow_provider_platform.client.http.tls_and_proxy import (
    keep_alive_options,
    proxy_for,
    tls_context,
    unused_context,
)
from airflow_provider_platform.client.http.turns import turn

FRESH_SECONDS = 2.0
"""Seconds that a connection may have been idle that carries what must not be sent twice."""
STALE_REPEATS = 3
_BROKEN = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)


@dataclass
class _Origin:
    """The HTTP transports of one address, and what tells how old their connections are.

    A connection that was idle may be closed by the service in the very moment in which a request
    is sent on it. A request that can be repeated is sent again then; one that cannot goes out on a
    connection that is new, or was in use a moment ago.
    """

    make: Callable[[float | None], httpx.AsyncHTTPTransport]
    under_way: int = 0
    idle_since: float | None = None
    cookies: httpx.Cookies | None = None

    @cached_property
    def kept(self) -> httpx.AsyncHTTPTransport:
        """Keeps connections as long as the service does."""
        return self.make(None)

    @cached_property
    def fresh(self) -> httpx.AsyncHTTPTransport:
        """Keeps connections for a moment."""
        return self.make(FRESH_SECONDS)

    def transport(self, *, repeatable: bool) -> httpx.AsyncHTTPTransport:
        if repeatable or (self.idle_since is None and self.under_way == 0):
            return self.kept
        idle = time.monotonic() - (self.idle_since or 0.0)
        return self.kept if self.under_way == 0 and idle < FRESH_SECONDS else self.fresh

    def keep_cookies(self, response: httpx.Response) -> None:
        """Send from now on what a response sets, as what balances the service's load wants."""
        if "set-cookie" in response.headers:
            self.cookies = self.cookies or httpx.Cookies()
            self.cookies.extract_cookies(response)

    async def aclose(self) -> None:
        for name in ("kept", "fresh"):
            transport = vars(self).get(name)
            if transport is not None:
                await transport.aclose()


class Connections:
    """The connections of one client: kept as long as the service keeps them, each credential's
    address for itself."""

    def __init__(self) -> None:
        self._origins: dict[str, _Origin] = {}
        self.closed = False

    async def send(
        self,
        config: PlatformConfig,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
        connect_timeout: float,
        repeatable: bool,
        params: list[tuple[str, Any]] | None = None,
    ) -> OpenResponse:
        """Send a request; the head of its response has come. Raises httpx errors,
        PlatformClosedError."""
        timeout = {"connect": connect_timeout}
        request = httpx.Request(
            method, url, params=params, headers={**_headers(), **headers}, content=content
        )
        origin = await self._origin(config, request.url)
        if origin.cookies is not None:
            origin.cookies.set_cookie_header(request)
        for left in reversed(range(1 + STALE_REPEATS)):
            transport = origin.transport(repeatable=repeatable)
            origin.under_way += 1
            path = _Path()
            request.extensions = {"timeout": timeout, "trace": path.note}
            try:
                received = await transport.handle_async_request(request)
            except BaseException as error:
                origin.under_way -= 1
                stale = isinstance(error, _BROKEN) and not path.is_new
                if not (stale and repeatable and left):
                    raise
            else:
                received.request = request
                origin.keep_cookies(received)
                return OpenResponse(self, origin, received)
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close every connection, now and for good."""
        self.closed = True
        origins, self._origins = list(self._origins.values()), {}
        for origin in origins:
            await origin.aclose()

    async def _origin(self, config: PlatformConfig, url: httpx.URL) -> _Origin:
        name = f"{url.scheme}://{url.netloc.decode()}"
        if name not in self._origins and not self.closed:
            await turn()
        if self.closed:
            raise PlatformClosedError("This client is closed: nothing was sent.")
        if name not in self._origins:
            self._origins[name] = _Origin(partial(_transport, config, url.scheme, url.host))
        return self._origins[name]


class _Path:
    """Where a request went: over a connection that was made for it, or one that was there."""

    def __init__(self) -> None:
        self.is_new = False

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        """Hear what httpcore tells of the request."""
        self.is_new = self.is_new or event.startswith("connection.connect")


@dataclass
class OpenResponse:
    """The response to a request, of which the head has come."""

    connections: Connections
    origin: _Origin
    head: httpx.Response
    closed: bool = field(default=False, init=False)

    def pieces(self) -> AsyncIterator[bytes]:
        """The body, decoded, piece by piece as it arrives. Raises httpx errors."""
        stream = self.head.stream
        if "content-encoding" in self.head.headers or not isinstance(stream, httpx.AsyncByteStream):
            return self.head.aiter_bytes()
        return aiter(stream)

    async def aclose(self) -> None:
        """Give the connection back, where the body was read to its end, or close it."""
        if self.closed:
            return
        self.closed = True
        try:
            await self.head.aclose()
        finally:
            self.origin.under_way -= 1
            self.origin.idle_since = time.monotonic()


@lru_cache(maxsize=1)
def _headers() -> dict[str, str]:
    """What every request says beside its own; of encodings, those that httpx can decode."""
    decodes = httpx.AsyncClient(transport=httpx.AsyncBaseTransport()).headers["Accept-Encoding"]
    return {
        "Accept-Encoding": decodes,
        "Connection": "keep-alive",
        "User-Agent": "airflow-provider-platform",
    }


def _transport(
    config: PlatformConfig, scheme: str, host: str, keep: float | None
) -> httpx.AsyncHTTPTransport:
    """What sends requests to one address, and keeps idle connections for so many seconds; None as
    long as the service keeps them."""
    try:
        return httpx.AsyncHTTPTransport(
            verify=tls_context(config) if scheme == "https" else unused_context(),
            proxy=proxy_for(config, scheme, host),
            http2=False,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=20, keepalive_expiry=keep
            ),
            socket_options=keep_alive_options(),
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy, of the connection or of the system, cannot be used: its address must begin "
            "with http:// or https://; socks5:// needs the package socksio.",
            field="proxy",
        ) from None
