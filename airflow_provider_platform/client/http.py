"""Sends one request over HTTP: its connection, its certificates and proxies, its open response.

This is the only module that imports httpx and httpcore.

`Connections` opens those of httpcore, the engine of httpx. Some are kept, for requests that can be
sent twice: the service may close an idle connection at the moment when a request is sent on it.
Requests that must not be sent twice get a new one each. A client of httpx around them would add to
the cost of each poll what this package does not use (redirects, authentication, requests and
responses of its own), and so would the pool of httpcore (limits, a queue). Both are used only with
a proxy.

A body is complete only if the protocol says so. Every other end, a TLS alert included, is a broken
connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import ssl
import zlib
from collections import defaultdict
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlencode
from urllib.request import getproxies

import certifi
import httpcore
import httpx

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import passwords_in
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.redaction import quote_service

CONNECT_TIMEOUT = 30.0
KEPT_SECONDS = 60.0
"""Seconds that an idle connection is kept. Networks drop those that are silent for minutes, without
a word to either end."""
DRAIN_SECONDS = 0.25
GATHER_SECONDS = 0.01
GATHER_BYTES = 64 * 1024
"""A read of a stream returns what arrives within these seconds, or so many bytes if they arrive
before."""
MAX_WAITING_BYTES = 1024 * 1024
"""The most bytes that a stream receives before its reader takes them, one piece more or less."""
_HEADERS = {"accept-encoding": "gzip", "user-agent": "airflow-provider-platform"}
_GZIP_WINDOW = 31
"""zlib's number for gzip with the largest window."""
_NEVER_SENT = (
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.ProxyError,
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ProxyError,
)
_DROPPED = (
    httpcore.ReadError,
    httpcore.RemoteProtocolError,
    httpcore.WriteError,
    httpx.ReadError,
    httpx.RemoteProtocolError,
    httpx.WriteError,
    ssl.SSLError,
)
"""The errors of a connection that the service closed while a request was sent on it."""
_BROKEN = (
    httpcore.ConnectionNotAvailable,  # the client was closed meanwhile
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpx.HTTPError,
    httpx.StreamError,
    OSError,
    zlib.error,
)
"""The errors of a connection. Those of TLS are OSErrors."""


class _RefusedCodingError(Exception):
    """The body has a coding that the request did not accept, or several codings."""


# -- Connections -------------------------------------------------------------------------------


class _Pool(Protocol):
    """Sends requests on connections of its own, as a pool of httpcore does."""

    async def handle_async_request(self, request: httpcore.Request, /) -> httpcore.Response:
        """Send the request and return when the head of its response has arrived."""

    async def aclose(self) -> None:
        """Close all connections."""


class Connections:
    """The connections of one client. Use them on one event loop."""

    def __init__(self) -> None:
        _hide_logged_headers()
        self.closed = False
        self._pools: dict[tuple[str, bool], _Pool] = {}
        self._in_use: set[_Pool] = set()
        """The pools that have had a response, so that they may keep a connection."""
        self._cookies = httpx.Cookies()
        """Load balancers need them. They go only to the host that set them."""

    async def send(
        self,
        config: PlatformConfig,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
        seconds: float,
        repeatable: bool,
    ) -> OpenResponse:
        """Send a request and return when the head of its response has arrived. `seconds` is the
        time that the caller gives the request; connecting may take a little less, so that a
        connection that was never made is reported as such. Raises errors of httpcore and httpx,
        OSError, PlatformClosedError, PlatformConfigError."""
        if self.closed:
            raise PlatformClosedError("This client is closed: nothing was sent.")
        address, host = _parsed(url)
        pool = self._pool(config, address.scheme.decode(), keep=repeatable)
        sent = {"Host": host, **_HEADERS, **headers}
        if content:
            sent["Content-Length"] = str(len(content))
        if self._cookies:
            asking = httpx.Request(method, url, cookies=self._cookies)
            sent |= {"Cookie": asking.headers["cookie"]} if "cookie" in asking.headers else {}
        request = httpcore.Request(
            method,
            address,
            headers=[(name.encode("ascii"), value.encode("ascii")) for name, value in sent.items()],
            content=content or b"",
            extensions={"timeout": {"connect": min(CONNECT_TIMEOUT, seconds * 0.9)}},
        )
        sent_twice = False
        try:
            response = await pool.handle_async_request(request)
        except _DROPPED:
            if not repeatable or pool not in self._in_use or self.closed:
                raise
            response = await pool.handle_async_request(request)
            sent_twice = True
        self._in_use.add(pool)
        answered = OpenResponse(self, response, sent_twice=sent_twice)
        # Another cookie could not be sent: the headers of a request are ASCII.
        if answered.headers.get("set-cookie", "\xff").isascii():
            self._cookies.extract_cookies(
                httpx.Response(
                    response.status, headers=response.headers, request=httpx.Request(method, url)
                )
            )
        return answered

    async def aclose(self) -> None:
        """Close all connections for good."""
        self.closed = True
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            with suppress(Exception):
                await pool.aclose()

    def _pool(self, config: PlatformConfig, scheme: str, *, keep: bool) -> _Pool:
        if (scheme, keep) not in self._pools:
            self._pools[scheme, keep] = _new_pool(config, scheme, keep=keep)
        return self._pools[scheme, keep]


@lru_cache(maxsize=4096)
def _parsed(url: str) -> tuple[httpcore.URL, str]:
    """Return a cached address and its host: a wait polls the same one again and again."""
    return _as_httpcore(httpx.URL(url)), httpx.URL(url).netloc.decode("ascii")


def _as_httpcore(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _new_pool(config: PlatformConfig, scheme: str, *, keep: bool) -> _Pool:
    """Return a pool for addresses of a scheme. It uses the proxy of the connection, otherwise those
    of the system, as httpx reads them."""
    context = tls_context(config) if scheme == "https" else None
    kept = None if keep else 0
    try:
        if config.proxy is None and getproxies().keys() - {"no"}:
            return _ThroughSystemProxies(context, kept)
        if config.proxy is None:
            return _Direct(context, keep=keep)
        return httpcore.AsyncConnectionPool(
            ssl_context=context,
            proxy=_proxy(config),
            max_connections=None,
            max_keepalive_connections=kept,
            keepalive_expiry=KEPT_SECONDS,
            socket_options=_keep_alive_options(),
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy of the connection or of the system cannot be used. Its address must begin "
            "with http://, https:// or socks5://. For a socks5:// address, install the package "
            "socksio.",
            field="proxy",
        ) from None


class _Direct:
    """Connections without a proxy. The pool of httpcore, with its limits and its queue, would make
    each poll of a deferred wait a sixth dearer."""

    def __init__(self, context: ssl.SSLContext | None, *, keep: bool) -> None:
        self._context = context
        self._keep = keep
        self._open: set[httpcore.AsyncHTTPConnection] = set()
        self._idle: list[httpcore.AsyncHTTPConnection] = []

    async def handle_async_request(self, request: httpcore.Request, /) -> httpcore.Response:
        expired = [one for one in self._idle if one.has_expired()]
        self._idle = [one for one in self._idle if one not in expired]
        connection = self._take(request.url.origin)
        try:
            for one in expired:
                await self._close(one)
            response = await connection.handle_async_request(request)
        except BaseException:
            for one in (*expired, connection):
                await self._close(one)
            raise
        body = cast("_HttpcoreBody", response.stream)
        response.stream = _Body(body, partial(self._give_back, connection))
        return response

    def _take(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        for one in reversed(self._idle):  # so that the others expire
            if one.can_handle_request(origin):
                self._idle.remove(one)
                return one
        opened = httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=self._context,
            keepalive_expiry=KEPT_SECONDS,
            socket_options=_keep_alive_options(),
        )
        self._open.add(opened)
        return opened

    async def _give_back(self, connection: httpcore.AsyncHTTPConnection) -> None:
        if self._keep and connection.is_idle():
            self._idle.append(connection)
        else:
            await self._close(connection)

    async def _close(self, connection: httpcore.AsyncHTTPConnection) -> None:
        self._open.discard(connection)
        with suppress(Exception):  # how a connection ends says nothing
            await connection.aclose()

    async def aclose(self) -> None:
        self._keep = False
        for connection in tuple(self._open):
            await self._close(connection)


class _HttpcoreBody(Protocol):
    """The body of a response of httpcore."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


@dataclass
class _Body:
    """The body of a response, which gives its connection back when it is closed."""

    body: _HttpcoreBody
    give_back: Callable[[], Awaitable[None]]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.body.__aiter__()

    async def aclose(self) -> None:
        try:
            await self.body.aclose()
        finally:
            await self.give_back()


_THIS_MACHINE: dict[str, httpx.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}
"""The system's proxies never apply to the machine itself."""


class _ThroughSystemProxies:
    """Uses the system's proxies: only a client of httpx knows which of them an address needs."""

    def __init__(self, context: ssl.SSLContext | None, kept: int | None) -> None:
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=kept, keepalive_expiry=KEPT_SECONDS
        )
        self._client = httpx.AsyncClient(
            verify=context or False, limits=limits, mounts=_THIS_MACHINE
        )

    async def handle_async_request(self, request: httpcore.Request, /) -> httpcore.Response:
        content = cast("AsyncIterable[bytes]", request.stream)
        asked = httpx.Request(
            request.method.decode("ascii"),
            httpx.URL(
                scheme=request.url.scheme.decode("ascii"),
                host=request.url.host.decode("ascii"),
                port=request.url.port,
                raw_path=request.url.target,
            ),
            headers=request.headers,
            content=b"".join([piece async for piece in content]),
            extensions=request.extensions,
        )
        response = await self._client.send(asked, stream=True)
        return httpcore.Response(
            response.status_code, headers=response.headers.raw, content=response.stream
        )

    async def aclose(self) -> None:
        await self._client.aclose()


def _proxy(config: PlatformConfig) -> httpcore.Proxy | None:
    """Return the connection's proxy. The certificate of a proxy with TLS is checked like the
    service's."""
    if config.proxy is None:
        return None
    proxy = httpx.Proxy(httpx.URL(config.proxy.get_secret_value()))  # raises ValueError
    if proxy.url.scheme.startswith("socks"):
        import_module("socksio")  # httpcore would miss it at the first request
    return httpcore.Proxy(
        _as_httpcore(proxy.url),
        auth=proxy.raw_auth,
        ssl_context=tls_context(config) if proxy.url.scheme == "https" else None,
    )


def tls_context(config: PlatformConfig) -> ssl.SSLContext:
    """Return the TLS context of a configuration: system CAs, bundled CAs and the connection's own.
    Raises PlatformConfigError if `ca_bundle` has no certificates.
    """
    bundle = config.ca_bundle
    try:
        changed = bundle.stat().st_mtime_ns if bundle is not None else 0
        return _context(bundle, changed, config.verify_tls)
    except (OSError, ssl.SSLError):
        raise PlatformConfigError(
            "CA bundle (ca_bundle) contains no readable certificates.", field="ca_bundle"
        ) from None


@lru_cache(maxsize=8)
def _context(bundle: Path | None, _changed: int, verify: bool) -> ssl.SSLContext:
    """Return a cached TLS context: a new one takes 20 ms and a megabyte."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if bundle is not None and bundle.is_dir():
        context.load_verify_locations(capath=str(bundle))
    elif bundle is not None:
        context.load_verify_locations(cafile=str(bundle))
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """Return the socket options for long silent responses: networks drop silent connections."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), seconds))
    return options


def system_proxy_passwords() -> list[str]:
    """Return the passwords of the proxies that the environment names."""
    return [password for proxy in getproxies().values() for password in passwords_in(proxy)]


# -- Responses ---------------------------------------------------------------------------------


class OpenResponse:
    """A response whose head has arrived. `body` is empty until it has been read. `sent_twice` says
    that the service may have carried out the request before."""

    def __init__(
        self, connections: Connections, response: httpcore.Response, *, sent_twice: bool = False
    ) -> None:
        self.connections = connections
        self.sent_twice = sent_twice
        self.body = b""
        self.status = response.status
        self.headers: Mapping[str, str] = _texts(response.headers)
        """The names are in lower case."""
        self._response = response

    @property
    def is_open_ended(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that it may have
        been cut (RFC 9112, section 6.3)."""
        if self.status in (204, 304):
            return False
        return "transfer-encoding" not in self.headers and "content-length" not in self.headers

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the content piece by piece as it arrives. It ends where the protocol says so; an
        open-ended body ends with the connection. Raises the errors of `_BROKEN`,
        _RefusedCodingError.

        zlib reports the end of the compressed data. httpx does not: it returns a body that ends too
        early, and one that continues after its end, as if they were complete.
        """
        named = self.headers.get("content-encoding", "").lower().split(",")
        codings = [coding for name in named if (coding := name.strip()) not in ("", "identity")]
        if codings not in ([], ["gzip"], ["x-gzip"]):
            raise _RefusedCodingError(", ".join(codings))
        unpack = zlib.decompressobj(_GZIP_WINDOW) if codings else None
        packed = 0
        raw = cast("AsyncIterable[bytes]", self._response.stream).__aiter__()
        async with aclosing(cast("AsyncGenerator[bytes]", raw)) as arriving:
            async for piece in arriving:
                packed += len(piece)
                yield unpack.decompress(piece) if unpack else piece
                if unpack and unpack.unused_data:
                    raise zlib.error("the body continues after its compressed data")
        if unpack and packed and not unpack.eof:
            raise zlib.error("the body ends inside its compressed data")

    async def read(self, name: RequestName, limit: int) -> bytes:
        """Return the body. Of an error, return as much as arrives: any part is good enough. Raises
        PlatformProtocolError if another body has more than `limit` bytes after decoding."""
        pieces: list[bytes] = []
        size = 0
        try:
            async with aclosing(self.pieces()) as arriving:
                async for piece in arriving:
                    pieces.append(piece)
                    size += len(piece)
                    if size > limit:
                        break
        except (*_BROKEN, _RefusedCodingError):
            if self.status < 300:
                raise
        if size > limit and self.status < 300:
            raise PlatformProtocolError(
                f"{name.action}: the response is larger than {limit} bytes, so reading stopped.",
                where=name.where,
            )
        return b"".join(pieces)

    async def aclose(self) -> None:
        """Give the connection back if the body was read to its end, otherwise close it."""
        with suppress(Exception):  # the answer is there: how the connection ends says nothing
            await self._response.aclose()


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers as texts. Several with one name become one, as HTTP allows."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in headers:
        found[name.decode("latin-1").lower()].append(value.decode("utf-8", "replace"))
    return {name: ", ".join(values) for name, values in found.items()}


class Stream:
    """The open response of a request, read piece by piece and decoded.

    The caller says how long a read may wait: for a chat it is the setting `stream_idle_timeout`. A
    separate task receives what arrives, and a read returns all that comes within a moment: an agent
    sends its answer word by word, and waking all that waits for it with each word would take twice
    the time of `httpx.stream`.
    """

    def __init__(self, name: RequestName, response: OpenResponse) -> None:
        self._name = name
        self._response = response
        self._pieces: list[bytes] = []
        self._size = 0
        self._failure: PlatformError | None = None
        self._progress = asyncio.Event()
        self._room = asyncio.Event()
        self._receiving = asyncio.create_task(self._receive())

    @property
    def is_open_ended(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that it may have
        been cut."""
        return self._response.is_open_ended

    async def read(self, seconds: float) -> bytes | None:
        """Return the bytes that have arrived: b"" at the end of the body, None after `seconds`
        without bytes (the connection is then lost). Raises PlatformTransportError if the response
        broke off, PlatformProtocolError if its coding cannot be decoded, PlatformClosedError if the
        stream or its client was closed before its end."""
        if not self._progress.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._progress.wait()
            except TimeoutError:
                if not self._pieces:
                    return None
                await self._progress.wait()
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._room.set()
            if not self._receiving.done():
                self._progress.clear()
            return data
        if self._failure is not None:
            raise self._failure
        self._receiving.result()  # another error, as a lack of memory, is no end either
        return b""

    async def drain(self) -> None:
        """Wait a moment for the end of a response whose content is no longer needed."""
        self._pieces.clear()
        self._room.set()
        await asyncio.wait({self._receiving}, timeout=DRAIN_SECONDS)

    async def aclose(self) -> None:
        """Give the connection back if the body was read to its end, otherwise close it."""
        self._receiving.cancel()
        try:
            await asyncio.wait({self._receiving})
        finally:
            await self._response.aclose()

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for piece in self._response.pieces():
                if not piece:
                    continue
                if not self._pieces:
                    gathered = loop.call_later(GATHER_SECONDS, self._progress.set)
                self._pieces.append(piece)
                self._size += len(piece)
                if self._size >= GATHER_BYTES:
                    gathered.cancel()
                    self._progress.set()
                if self._size > MAX_WAITING_BYTES:
                    self._room.clear()
                    await self._room.wait()
        except asyncio.CancelledError:
            self._failure = self._closed("stream")
            raise
        except (*_BROKEN, _RefusedCodingError) as error:
            closed = self._response.connections.closed
            self._failure = self._closed("client") if closed else _broken_answer(self._name, error)
            self._failure.__cause__ = error
        finally:
            self._progress.set()

    def _closed(self, what: str) -> PlatformError:
        return PlatformClosedError(
            f"{self._name.action}: the {what} was closed before the response was complete.",
            where=self._name.where,
        )


# -- Errors ------------------------------------------------------------------------------------


@asynccontextmanager
async def translated(name: RequestName, url: str, seconds: float) -> AsyncIterator[None]:
    """Turn time-outs and connection errors of a request to ``url`` into PlatformErrors."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise PlatformTransportError(
            f"{name.action}: no complete response within {seconds:g} seconds.", where=name.where
        ) from None
    except _NEVER_SENT as error:
        raise PlatformTransportError(
            f"{name.action}: no connection could be made to {_server(url)} ({_reason(error)}). "
            "Check the address and the network. For a certificate error, check CA bundle "
            "(ca_bundle).",
            where=name.where,
            processed=False,
        ) from error
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise PlatformInputError(
            f"{name.action}: nothing was sent, because the address is not valid "
            f"({_reason(error)}).",
            where=name.where,
        ) from error
    except (*_BROKEN, _RefusedCodingError) as error:
        raise _broken_answer(name, error) from error


def _broken_answer(name: RequestName, error: Exception) -> PlatformError:
    """Return the error of a response that broke off."""
    if isinstance(error, _RefusedCodingError):
        return PlatformProtocolError(
            f"{name.action}: the response was not read, because its content encoding is "
            f"{quote_service(str(error))!r}. The provider reads only responses that are not "
            "compressed, or compressed once with gzip. Check the proxies between Airflow and the "
            "service.",
            where=name.where,
        )
    return PlatformTransportError(
        f"{name.action}: the connection broke before the response was complete ({_reason(error)}).",
        where=name.where,
    )


def _server(url: str) -> str:
    """Return only scheme, host and port of an address."""
    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


def _reason(error: Exception) -> str:
    return quote_service(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


# -- Requests ----------------------------------------------------------------------------------


def json_body(name: RequestName, value: Any) -> bytes:
    """Return a request's body; empty for None. Raises PlatformInputError for values that JSON does
    not have."""
    if value is None:
        return b""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PlatformInputError(
            f"{name.action}: nothing was sent, because the request body cannot be written as JSON "
            f"({_reason(error)}).",
            where=name.where,
        ) from None


def with_query(url: str, params: Mapping[str, Any]) -> str:
    """Return the address with query parameters: a list repeats its name, None is left out, booleans
    are in lower case."""
    pairs = [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, value in params.items()
        for item in (value if isinstance(value, list | tuple) else [value])
        if item is not None
    ]
    return f"{url}?{urlencode(pairs)}" if pairs else url


# -- Logs --------------------------------------------------------------------------------------

_SHOWN_HEADERS = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "date", "retry-after"}
    | {"server", "transfer-encoding", "vary"}
)
_TEXT = r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\""""
_HEADER = re.compile(rf"\((b'([^'\s]+)'), (?:{_TEXT})\)")


def _hide_headers(record: logging.LogRecord) -> bool:
    """Hide the values of headers in a line of httpcore's debug log, which has cookies and tokens
    of responses. The logger formats them itself, so this rewrites the finished line."""
    if "headers" in (line := record.getMessage()):
        record.msg, record.args = _HEADER.sub(_shown, line), ()
    return True


def _shown(header: re.Match[str]) -> str:
    return header[0] if header[2].lower() in _SHOWN_HEADERS else f"({header[1]}, '***')"


def _hide_logged_headers() -> None:
    """Hide header values in httpcore's log from now on, for all users of the library in this
    process. A second call changes nothing: a logger holds a filter once."""
    logging.getLogger("httpcore.http11").addFilter(_hide_headers)
