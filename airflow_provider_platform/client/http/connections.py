"""The connections of one client: which of them carries a request, and how long they live."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlsplit

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
    ) -> OpenResponse:
        """Send a request; the head of its response has come. Raises httpx errors,
        PlatformClosedError."""
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
                return OpenResponse(self, origin, response)
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
class OpenResponse:
    """The response to a request, of which the head has come."""

    connections: Connections
    origin: _Origin
    head: httpx.Response
    closed: bool = field(default=False, init=False)

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


def _client(
    config: PlatformConfig, scheme: str, host: str, keep: float | None
) -> httpx.AsyncClient:
    """An HTTP client for one address, which keeps idle connections for so many seconds; None as
    long as the service keeps them."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=keep)
    try:
        transport = httpx.AsyncHTTPTransport(
            verify=tls_context(config) if scheme == "https" else unused_context(),
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
