"""The connections of one client: which connection a request uses, and how long connections live.

How a connection is made (TLS, proxy, TCP keep-alive) is in `tls_and_proxy`, and how long a request
may take to connect in `transport`.

A connection is used again only if that is safe: the previous response was read to its end, no byte
follows it, and no request was cancelled before its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

import httpx

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformClosedError, PlatformConfigError
from airflow_provider_platform.client.http.content_coding import (
    BrokenContentError,
    RefusedCodingError,
    gzip_reader,
    is_open_ended,
)
from airflow_provider_platform.client.http.fair_scheduling import yield_turn
from airflow_provider_platform.client.http.library_logs import hide_headers
from airflow_provider_platform.client.http.requests import HEADERS
from airflow_provider_platform.client.http.tls_and_proxy import (
    keep_alive_options,
    proxy_for,
    tls_context,
    unused_context,
)

FRESH_SECONDS = 2.0
"""A request that must not be sent twice uses only a connection that was idle for fewer seconds."""
STALE_REPEATS = 3
_BROKEN = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)


@dataclass(eq=False)
class _Pool:
    """The connections that one HTTP transport keeps, and how old they are."""

    transport: httpx.AsyncHTTPTransport
    under_way: int = 0
    idle_since: float | None = None
    overlapped: bool = False
    """Whether two requests were ever sent at the same time. If so, there may be several
    connections, and it is not known which of them a request uses."""
    given_up: bool = False

    @property
    def is_fresh(self) -> bool:
        """Return whether a request certainly uses a new connection, or one that was in use a moment
        ago."""
        if self.under_way or self.overlapped:
            return False
        return self.idle_since is None or time.monotonic() - self.idle_since < FRESH_SECONDS

    def begin(self) -> None:
        self.overlapped = self.overlapped or self.under_way > 0
        self.under_way += 1

    def end(self) -> None:
        self.under_way -= 1
        self.idle_since = time.monotonic()


@dataclass
class _Origin:
    """The HTTP transports of one address.

    The service may close an idle connection at the moment when a request is sent on it. A request
    that can be repeated is then sent again. A request that cannot be repeated uses only a
    connection that is new or was in use a moment ago.
    """

    make: Callable[[float | None], httpx.AsyncHTTPTransport]
    kept: _Pool | None = None
    """Keeps connections as long as the service keeps them open."""
    fresh: _Pool | None = None
    """Keeps each connection only for a moment."""
    cookies: httpx.Cookies | None = None

    def pool(self, *, repeatable: bool) -> _Pool:
        """Return the pool that a request uses."""
        if self.kept is None:
            self.kept = _Pool(self.make(None))
        if repeatable or self.kept.is_fresh:
            return self.kept
        if self.fresh is None:
            self.fresh = _Pool(self.make(FRESH_SECONDS))
        return self.fresh

    def give_up(self, pool: _Pool) -> None:
        """Use these connections for no further request."""
        pool.given_up = True
        if self.kept is pool:
            self.kept = None
        if self.fresh is pool:
            self.fresh = None

    def keep_cookies(self, response: httpx.Response) -> None:
        """Keep the cookies of a response and send them from now on, because load balancers need
        them."""
        if "set-cookie" in response.headers:
            self.cookies = self.cookies or httpx.Cookies()
            self.cookies.extract_cookies(response)


class Connections:
    """The connections of one client, separate for each credential's address, kept as long as the
    service keeps them open."""

    def __init__(self) -> None:
        hide_headers()
        self._origins: dict[str, _Origin] = {}
        self._closing: set[asyncio.Task[None]] = set()
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
        """Send a request and return when the head of its response has arrived. Raises httpx errors,
        PlatformClosedError."""
        timeout = {"connect": connect_timeout}
        request = httpx.Request(
            method, url, params=params, headers={**HEADERS, **headers}, content=content
        )
        origin = await self._origin(config, request.url)
        if origin.cookies is not None:
            origin.cookies.set_cookie_header(request)
        for left in reversed(range(1 + STALE_REPEATS)):
            pool = origin.pool(repeatable=repeatable)
            path = _Path()
            request.extensions = {"timeout": timeout, "trace": path.note}
            pool.begin()
            try:
                with _httpx_errors():
                    received = await pool.transport.handle_async_request(request)
            except BaseException as error:
                pool.end()
                if isinstance(error, asyncio.CancelledError):
                    self.give_up(origin, pool, path.opened)
                stale = isinstance(error, _BROKEN) and not path.is_new
                if not (stale and repeatable and left):
                    raise
            else:
                received.request = request
                origin.keep_cookies(received)
                return OpenResponse(self, origin, pool, received)
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close all connections for good."""
        self.closed = True
        origins, self._origins = list(self._origins.values()), {}
        for origin in origins:
            for pool in (origin.kept, origin.fresh):
                if pool is not None:
                    with suppress(Exception):
                        await pool.transport.aclose()
        if self._closing:
            await asyncio.wait(self._closing)

    def give_up(self, origin: _Origin, pool: _Pool, opened: list[Any]) -> None:
        """Close a pool, or leave that to its last request. A cancelled call can leave an incomplete
        connection or a response that was not read to its end, which nothing else would close.
        `opened` are network streams that may not be in the pool yet.
        """
        origin.give_up(pool)
        if opened or not pool.under_way:
            closing = asyncio.create_task(_close_pool(pool, opened))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _origin(self, config: PlatformConfig, url: httpx.URL) -> _Origin:
        name = f"{url.scheme}://{url.netloc.decode()}"
        if name not in self._origins and not self.closed:
            await yield_turn()
        if self.closed:
            raise PlatformClosedError("This client is closed: nothing was sent.")
        if name not in self._origins:
            self._origins[name] = _Origin(partial(_transport, config, url))
        return self._origins[name]


async def _close_pool(pool: _Pool, opened: list[Any]) -> None:
    """Close network streams. Also close the pool if no request uses it any more."""
    for stream in opened:
        with suppress(Exception):
            await stream.aclose()
    if not pool.under_way:
        with suppress(Exception):
            await pool.transport.aclose()


class _Path:
    """The connection that a request used: a new one, or one that was open already."""

    def __init__(self) -> None:
        self.is_new = False
        self.opened: list[Any] = []
        """The network streams that were opened for the request."""

    async def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Record an event that httpcore reports about the request."""
        self.is_new = self.is_new or event.startswith("connection.connect")
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self.opened.append(info["return_value"])


@dataclass
class OpenResponse:
    """A response whose head has arrived."""

    connections: Connections
    origin: _Origin
    pool: _Pool
    head: httpx.Response
    closed: bool = field(default=False, init=False)
    _is_read: bool = field(default=False, init=False)

    @property
    def is_open_ended(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that it may have
        been cut."""
        return is_open_ended(self.head.status_code, self.head.headers)

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the content piece by piece as it arrives. It ends where the protocol says so; an
        open-ended body ends with the connection. Raises httpx errors, BrokenContentError,
        RefusedCodingError."""
        reader = gzip_reader(self.head.headers)
        stream = self.head.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("a response of an asynchronous transport is read asynchronously")
        try:
            with _httpx_errors():
                async for piece in stream:
                    if reader is None:
                        yield piece
                        continue
                    for number, step in enumerate(reader.feed(piece)):
                        if number:
                            await asyncio.sleep(0)  # let other tasks run between two steps
                        if step:
                            yield step
        except asyncio.CancelledError:
            self.origin.give_up(self.pool)
            raise
        if reader is not None:
            reader.finish()
        self._is_read = True

    async def aclose(self) -> None:
        """Give the connection back if the body was read to its end and no byte follows it;
        otherwise close it."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._is_read and _bytes_follow(self.head):
                await self.head.extensions["network_stream"].aclose()
            await self.head.aclose()
        except Exception:  # noqa: BLE001 - the answer is there: how the connection ends says nothing
            self.origin.give_up(self.pool)
        except asyncio.CancelledError:
            self.origin.give_up(self.pool)
            raise
        finally:
            self.pool.end()
            if self.pool.given_up:
                self.connections.give_up(self.origin, self.pool, [])


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Turn errors that httpx does not translate (a TLS alert, a bad TLS record, errors of the
    operating system) into broken connections."""
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeEncodeError):
        raise
    except (BrokenContentError, RefusedCodingError):
        raise
    except Exception as error:
        raise httpx.ReadError(str(error) or type(error).__name__) from error


_CONNECTION = attrgetter("stream._httpcore_stream._stream._connection")
_AFTER_BODY = attrgetter("_h11_state.trailing_data")
_NETWORK = attrgetter("_network_stream._stream")
_UNREAD_BYTES = attrgetter("_protocol.read_queue")
_UNREAD_RECORDS = attrgetter("_read_bio.pending")


def _bytes_follow(response: httpx.Response) -> bool:
    """Return whether bytes follow the body. The next request on the connection would read them as
    its response. The bytes may be in the buffers of h11, of TLS or of the event loop's transport;
    httpcore itself checks the socket. Return True also if this cannot be checked, because the
    libraries have no public way to ask."""
    try:
        connection = _CONNECTION(response)
        waiting = [_AFTER_BODY(connection)[0]]
        layer = _NETWORK(connection)
        while hasattr(layer, "transport_stream"):
            waiting.append(_UNREAD_RECORDS(layer))
            layer = layer.transport_stream
        return any((*waiting, _UNREAD_BYTES(layer)))
    except AttributeError:
        return True


def _transport(
    config: PlatformConfig, url: httpx.URL, keep: float | None
) -> httpx.AsyncHTTPTransport:
    """Return the HTTP transport for one address. It keeps idle connections for `keep` seconds; None
    means as long as the service keeps them."""
    try:
        return httpx.AsyncHTTPTransport(
            verify=tls_context(config) if url.scheme == "https" else unused_context(),
            proxy=_proxy(config, url),
            http2=False,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=20, keepalive_expiry=keep
            ),
            socket_options=keep_alive_options(),
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy of the connection or of the system cannot be used. Its address must begin "
            "with http://, https:// or socks5://. For a socks5:// address, install the package "
            "socksio.",
            field="proxy",
        ) from None


def _proxy(config: PlatformConfig, url: httpx.URL) -> httpx.Proxy | None:
    """Return the proxy for an address. The certificate of a proxy with TLS is checked like the
    service's."""
    proxy = proxy_for(config, url.scheme, url.host, url.port)
    if proxy is None:
        return None
    by_tls = httpx.URL(proxy).scheme == "https"
    return httpx.Proxy(proxy, ssl_context=tls_context(config) if by_tls else None)
