"""The connections of one client: which of them carries a request, and how long they live."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from importlib import import_module
from typing import Any

import httpcore
import httpx

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformClosedError, PlatformConfigError
from airflow_provider_platform.client.network.sockets import Network, connected
from airflow_provider_platform.client.network.tls_and_proxy import (
    keep_alive_options,
    proxy_for,
    tls_context,
    unused_context,
)
from airflow_provider_platform.client.network.turns import turn

FRESH_SECONDS = 2.0
"""Seconds that a connection may have been idle that carries what must not be sent twice."""
STALE_REPEATS = 3
_NETWORK = Network()
_BROKEN = (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError)


@dataclass
class _Origin:
    """The connection pools of one address, and what tells how old their connections are.

    A connection that was idle may be closed by the service in the very moment in which a request
    is sent on it. A request that can be repeated is sent again then; one that cannot goes out on a
    connection that is new, or was in use a moment ago.
    """

    make: Callable[[float | None], httpcore.AsyncConnectionPool]
    under_way: int = 0
    idle_since: float | None = None
    cookies: httpx.Cookies | None = None

    @cached_property
    def kept(self) -> httpcore.AsyncConnectionPool:
        """Keeps connections as long as the service does."""
        return self.make(None)

    @cached_property
    def fresh(self) -> httpcore.AsyncConnectionPool:
        """Keeps connections for a moment."""
        return self.make(FRESH_SECONDS)

    def pool(self, *, repeatable: bool) -> httpcore.AsyncConnectionPool:
        if repeatable or (self.idle_since is None and self.under_way == 0):
            return self.kept
        idle = time.monotonic() - (self.idle_since or 0.0)
        return self.kept if self.under_way == 0 and idle < FRESH_SECONDS else self.fresh

    def keep_cookies(self, request: httpx.Request, headers: httpx.Headers) -> None:
        """Send from now on what a response sets, as what balances the service's load wants."""
        if "set-cookie" in headers:
            self.cookies = self.cookies or httpx.Cookies()
            self.cookies.extract_cookies(httpx.Response(200, headers=headers, request=request))

    async def aclose(self) -> None:
        for name in ("kept", "fresh"):
            pool = vars(self).get(name)
            if pool is not None:
                await pool.aclose()


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
        """Send a request; the head of its response has come. Raises httpcore errors,
        httpx.InvalidURL, PlatformClosedError."""
        request = httpx.Request(
            method, url, params=params, headers={**_headers(), **headers}, content=content
        )
        origin = await self._origin(config, request.url)
        if origin.cookies is not None:
            origin.cookies.set_cookie_header(request)
        for left in reversed(range(1 + STALE_REPEATS)):
            pool = origin.pool(repeatable=repeatable)
            origin.under_way += 1
            connected.set(False)
            try:
                received = await pool.handle_async_request(
                    httpcore.Request(
                        request.method,
                        _address(request.url),
                        headers=request.headers.raw,
                        content=content,
                        extensions={"timeout": {"connect": connect_timeout}},
                    )
                )
            except BaseException as error:
                origin.under_way -= 1
                stale = isinstance(error, _BROKEN) and not connected.get()
                if not (stale and repeatable and left):
                    raise
            else:
                response = OpenResponse(self, origin, received)
                origin.keep_cookies(request, response.headers)
                return response
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
            self._origins[name] = _Origin(partial(_pool, config, url.scheme, url.host))
        return self._origins[name]


@dataclass
class OpenResponse:
    """The response to a request, of which the head has come."""

    connections: Connections
    origin: _Origin
    received: httpcore.Response
    closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.status = self.received.status
        self.headers = httpx.Headers(self.received.headers)

    def pieces(self) -> AsyncIterator[bytes]:
        """The body, decoded, piece by piece as it arrives. Raises httpcore errors,
        httpx.DecodingError."""
        if "content-encoding" not in self.headers:
            return self.received.aiter_stream()
        return httpx.Response(
            self.status, headers=self.headers, stream=_Encoded(self)
        ).aiter_bytes()

    async def aclose(self) -> None:
        """Give the connection back, where the body was read to its end, or close it."""
        if self.closed:
            return
        self.closed = True
        try:
            await self.received.aclose()
        finally:
            self.origin.under_way -= 1
            self.origin.idle_since = time.monotonic()


class _Encoded(httpx.AsyncByteStream):
    """A body as it arrives, for what decodes it."""

    def __init__(self, response: OpenResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.received.aiter_stream()


@lru_cache(maxsize=1)
def _headers() -> dict[str, str]:
    """What every request says beside its own; of encodings, those that httpx can decode."""
    decodes = httpx.AsyncClient(transport=httpx.AsyncBaseTransport()).headers["Accept-Encoding"]
    return {
        "Accept-Encoding": decodes,
        "Connection": "keep-alive",
        "User-Agent": "airflow-provider-platform",
    }


def _pool(
    config: PlatformConfig, scheme: str, host: str, keep: float | None
) -> httpcore.AsyncConnectionPool:
    """A connection pool for one address, which keeps idle connections for so many seconds; None as
    long as the service keeps them."""
    return httpcore.AsyncConnectionPool(
        ssl_context=tls_context(config) if scheme == "https" else unused_context(),
        proxy=_proxy(proxy_for(config, scheme, host)),
        max_keepalive_connections=20,
        keepalive_expiry=keep,
        max_connections=None,
        socket_options=keep_alive_options(),
        network_backend=_NETWORK,
    )


def _proxy(address: str | None) -> httpcore.Proxy | None:
    if address is None:
        return None
    try:
        given = httpx.Proxy(address)
        if given.url.scheme.startswith("socks"):
            import_module("socksio")
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy, of the connection or of the system, cannot be used: its address must begin "
            "with http:// or https://; socks5:// needs the package socksio.",
            field="proxy",
        ) from None
    return httpcore.Proxy(_address(given.url), auth=given.raw_auth, headers=given.headers.raw)


def _address(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )
