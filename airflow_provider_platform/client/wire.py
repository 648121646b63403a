"""HTTP as this package uses it: one request, its connection, and what its response means.

This is the only module that imports httpx and httpcore. Code that decides about order, repeats and
the end of a run is `async def` with an `Api` as its first argument, and calls the service through
it: `answer = await api.call(get_report(report_id=101))`. A test passes a fake `Api` and needs no
server.

`Steps` and `run_here` run such a function on the running event loop, for the clients.
`Transport` sends what an `Api` asks for: management calls, streams and the abort of a chat. It
repeats a management call under the policy of `failed_calls`. It follows no redirect, and sends each
credential to its own address only.

`Connections` opens those of httpcore, the engine of httpx. Some are kept, for requests that can be
sent twice: the service may close an idle connection at the moment when a request is sent on it.
Requests that must not be sent twice get a new one each. A client of httpx around them would add to
the cost of each poll what this package does not use (redirects, authentication, requests and
responses of its own), and so would the pool of httpcore (limits, a queue). Both are used only with
a proxy.

A body is complete only if the protocol says so. Every other end, a TLS alert included, is a broken
connection.

Pure functions over status, headers and body turn a response into a typed value, or into an error
that says what failed. The platform's web host answers unknown paths with 200 and an HTML page, so a
successful status alone proves nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import socket
import ssl
import time
import zlib
from collections import defaultdict
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies

import certifi
import httpcore
import httpx
from pydantic import SecretStr
from tenacity import AsyncRetrying

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import passwords_in
from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformAuthenticationError,
    PlatformClosedError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformInterruptedError,
    PlatformNotFoundError,
    PlatformProtocolError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.failed_calls import (
    CHAT_ABORT,
    CHAT_STREAM,
    DATA_QUERY,
    chat_error,
    data_call_error,
    data_error,
    is_html,
    is_html_type,
    management_error,
    own_error,
    rpc_error,
    service_message,
    tenacity_policy,
)
from airflow_provider_platform.client.json_text import CutJsonError, db_safe, read_json
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.pages import Page
from airflow_provider_platform.client.redaction import (
    KnownSecrets,
    may_hold_secrets,
    quote_service,
    secrets_in,
)

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


T = TypeVar("T")


@dataclass(frozen=True)
class DataRefusal:
    """The deployment's own answer that a request failed: its status (which can be 200), and its
    reason in one line."""

    status: int
    reason: str


ADDRESSES = frozenset({"deploymentUrl", "apiUrl"})
"""Fields that later calls use as their address. A password may be a word of a host's name."""
MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""The most bytes of a response that has a model and is not a list."""
MAX_LIST_BYTES = 16 * 1024 * 1024
"""The most bytes of a page of a list, and of a response without a model."""
MAX_DOWNLOAD_BYTES = 128 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
MAX_DESCRIBED_CONTAINERS = 200_000
MAX_CONTAINERS = 1_000_000
"""The most lists and objects of a response. Each is a few bytes of text, but takes a hundred bytes
of memory, and most of the time of parsing."""


def max_bytes(operation: Operation[Any]) -> int:
    """Return how many bytes a response of the operation may have after decoding."""
    if operation.binary:
        return MAX_DOWNLOAD_BYTES
    answer: Any = operation.answer
    is_list = isinstance(answer, type) and issubclass(answer, Page)
    return MAX_LIST_BYTES if is_list or not operation.described else MAX_RESPONSE_BYTES


def read_response(
    operation: Operation[T],
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    secrets: KnownSecrets | None = None,
    open_ended: bool = False,
) -> T:
    """Return the typed answer of a management call. Raises PlatformError. The `secrets` of the
    connection are removed from the answer, except from `ADDRESSES`. If the body is `open_ended`,
    only the end of the connection marks its end. Such a body counts only if its content shows that
    it is complete: a JSON object, array, string or word does, but a number, a file or an empty body
    does not.
    """
    name = operation.request_name
    refuse_redirect(name, status, headers)
    if status >= 400:
        raise management_error(operation, status, headers, body, now=now)
    if operation.binary:
        if is_html(headers, body):
            raise _wrong_address(name, "HTML", described=operation.described)
        if open_ended:
            raise _perhaps_cut(name)
        return cast("T", body)
    if not body.strip():
        return _read_nothing(operation, status, open_ended=open_ended)
    _refuse_too_many(operation, body)
    value = json_value(name, headers, body, described=operation.described)
    if open_ended and type(value) in (int, float):
        raise _perhaps_cut(name)
    if isinstance(value, dict) and value.get("error") and not set(value) - _ERROR_KEYS:
        raise PlatformProtocolError(
            f"{name.action}: the service answered {status} with an error: "
            f"{service_message(body) or 'no text'}.",
            where=name.where,
        )
    return operation.read(value if secrets is None else secrets.redact_data(value, keep=ADDRESSES))


def _read_nothing(operation: Operation[T], status: int, *, open_ended: bool) -> T:
    """Return the answer for an empty body. Raises PlatformError if a body is required, because it
    was cut."""
    name = operation.request_name
    if open_ended and operation.answer is not type(None):
        raise _perhaps_cut(name)
    try:
        return operation.read(None)
    except PlatformProtocolError:
        if status == 204:
            raise
        raise PlatformTransportError(
            f"{name.action}: the response is empty.", where=name.where
        ) from None


def _refuse_too_many(operation: Operation[Any], body: bytes) -> None:
    """Raise PlatformProtocolError if a JSON body has too many lists and objects to read it."""
    name = operation.request_name
    most = MAX_DESCRIBED_CONTAINERS if operation.described else MAX_CONTAINERS
    if len(body) > most and body.count(b"[") + body.count(b"{") > most:
        raise PlatformProtocolError(
            f"{name.action}: the response was not read, because it contains more than {most} "
            "lists and objects.",
            where=name.where,
        )


def _perhaps_cut(name: RequestName) -> PlatformTransportError:
    return PlatformTransportError(
        f"{name.action}: the response may be cut off, because the connection was closed and the "
        "response does not say how long it is. Check the proxies between Airflow and the service.",
        where=name.where,
    )


_ERROR_KEYS = {"error", "message", "code", "jsonrpc", "id", "requestId", "statusCode"}


def check_stream_start(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> None:
    """Raise the error that the head of a chat response reports. `body` is needed (and read) only if
    the status is not 200. The content type does not distinguish a stream from a web page, because
    the service's document names text/html for its stream too; the first bytes do."""
    refuse_redirect(name, status, headers)
    if status >= 400:
        raise chat_error(name, status, headers, body, now=now)


def check_data_start(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> None:
    """Raise the error that the head of a data API response reports."""
    refuse_redirect(name, status, headers)
    if status >= 400:
        raise data_error(name, status, headers, body, now=now)
    if is_html_type(headers):
        raise _wrong_address(name, "HTML")


def read_data_document(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> Any | DataRefusal:
    """Return the JSON document of a data API response, or the deployment's own refusal (a body with
    `error`). Raises PlatformError for any other response."""
    refuse_redirect(name, status, headers)
    if status >= 400:
        said = own_error(status, body)
        if said is None:
            raise data_call_error(name, status, headers, body, now=now)
        return DataRefusal(status, said)
    try:
        document = json_value(name, headers, body)
    except PlatformAddressError as error:
        raise PlatformAddressError(
            f"{name.action}: the data API's address returned something else than JSON, "
            "probably a web page. Check Data API address (data_api_url) in the connection, or the "
            "deployment's address in the platform.",
            where=name.where,
        ) from error
    said = own_error(status, body) if isinstance(document, dict) else None
    return document if said is None else DataRefusal(status, said)


def read_abort(status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> None:
    """Raise PlatformError unless the response to an abort request confirms the stop: only 204
    does."""
    name = CHAT_ABORT
    refuse_redirect(name, status, headers)
    if status == 204:
        return
    if status >= 400:
        raise chat_error(name, status, headers, body, now=now, aborts=True)
    value = json_value(name, headers, body) if body.strip() else None
    if isinstance(value, dict) and value.get("error"):
        raise rpc_error(value["error"], name.where)
    raise PlatformProtocolError(
        f"{name.action}: the run may continue, because the service answered {status} and only 204 "
        "confirms the stop.",
        where=name.where,
    )


def refuse_redirect(name: RequestName, status: int, headers: Mapping[str, str]) -> None:
    """Raise PlatformAddressError for a 3xx. Redirects are never followed, so that a credential is
    sent only to its own host."""
    if not 300 <= status < 400:
        return
    location = headers.get("location", "")
    try:
        parts = urlsplit(location)
        target = f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
    except ValueError:
        target = location
    raise PlatformAddressError(
        f"{name.action}: the service answered {status}, a redirect to "
        f"{quote_service(target) or 'nowhere'}. The provider does not follow redirects, because "
        "they could send the credential to another host. Check the address in the connection.",
        where=name.where,
        status=status,
    )


def json_value(
    name: RequestName, headers: Mapping[str, str], body: bytes, *, described: bool = True
) -> Any:
    """Return the value of a JSON body. Raises PlatformError for HTML, for a cut document and for
    anything else."""
    if is_html(headers, body):
        raise _wrong_address(name, "HTML", described=described)
    try:
        return db_safe(read_json(body))
    except CutJsonError as error:
        raise PlatformTransportError(
            f"{name.action}: the response was cut off: it {error}.", where=name.where
        ) from None
    except ValueError:
        raise _wrong_address(name, "something else", described=described) from None


def _wrong_address(name: RequestName, got: str, *, described: bool = True) -> PlatformAddressError:
    """Return the error for a response that is not JSON. `described` says that the path is
    documented, so the address must be wrong."""
    if not described:
        return PlatformAddressError(
            f"{name.action}: the service returned {got} instead of JSON. The service does this if "
            "a path does not exist. Check the path. The address already ends in /api, so "
            "write /v1/deployments, not /api/v1/deployments. There is one exception: a path of the "
            "build API must begin with /build/api, for example "
            "/build/api/v1/deployments/{deploymentId}/branches. If the path is right, check the "
            "address in the connection.",
            where=name.where,
        )
    return PlatformAddressError(
        f"{name.action}: the address returned {got} instead of JSON. The response probably comes "
        "from the platform's web application or from a proxy. Check the address in the "
        "connection: Management API address (host) ends in /api, Chat address (chat_url) in "
        "/chat.",
        where=name.where,
    )


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


class Transport:
    """Sends requests for one configuration; create and use it on one event loop."""

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Reload | None = None,
        clock: Clock | None = None,
        mask: Mask | None = None,
    ) -> None:
        self.config = config
        # The error page of a proxy of the system may quote its password.
        self.secrets = KnownSecrets(config.secrets, learned=system_proxy_passwords())
        self.clock = clock or steady_clock()
        self.connections = Connections()
        self._reload = reload
        self._mask = mask
        self._reloading = asyncio.Lock()

    def anew(self) -> Transport:
        """Return a transport with the same configuration and secrets, and its own connections."""
        other = copy(self)
        other.connections = Connections()
        other._reloading = asyncio.Lock()  # noqa: SLF001 - of the same class
        return other

    async def aclose(self) -> None:
        """Close every connection."""
        await self.connections.aclose()

    async def call(self, operation: Operation[T], *, once: bool, deadline: float | None) -> T:
        """Run a management operation. Raises PlatformError (see `client.errors`)."""
        operation = operation.in_deployment(self.config.resolve_deployment_id)
        await self._learn(operation.secrets)
        try:
            # Nearly all calls succeed at once, so tenacity, which takes time, gets only failures.
            return await self._attempt(operation, deadline)
        except PlatformError as error:
            if once:
                raise
            failed: PlatformError | None = error
        policy = tenacity_policy(
            repeatable=operation.repeatable,
            max_attempts=self.config.max_attempts,
            deadline=deadline,
            clock=self.clock,
        )
        async for attempt in AsyncRetrying(**policy):
            with attempt:
                if failed is not None:  # the call above was the first attempt
                    try:
                        raise failed
                    finally:
                        failed = None
                number = attempt.retry_state.attempt_number
                return await self._attempt(operation, deadline, number)
        raise AssertionError("tenacity re-raises the last error")

    async def _attempt(self, operation: Operation[T], deadline: float | None, number: int = 1) -> T:
        used = self.config
        try:
            return await self._perform(operation, deadline)
        except PlatformAuthenticationError:
            if not await self.reload_credentials(used):
                raise
            return await self._perform(operation, deadline)
        except PlatformNotFoundError:
            if operation.method == "DELETE" and number > 1:
                return operation.done_before()
            raise

    async def reload_credentials(self, refused: PlatformConfig) -> bool:
        """Read the credentials again. Return True if they differ from the refused ones. If the
        connection now has another address, its credentials are not used."""
        if self._reload is None:
            return False
        async with self._reloading:
            if self.config.secrets != refused.secrets:
                return True  # another call has read them in the meantime
            fresh = await self._reload()
            if fresh.secrets == self.config.secrets or not fresh.same_endpoints(self.config):
                return False
            self.config = fresh
            self.secrets.learn(fresh.secrets)
            return True

    async def send_chat(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None,
        agent_id: int | str | None,
    ) -> None:
        """Send an abort request, and return if the service confirms it. Raises PlatformError."""
        await self._learn(list(secrets_in(body)))
        url = f"{self.config.require_chat_url(agent_id)}{path}"
        headers = {**self._chat_headers(), "Accept": "application/json"}
        answered = await self._request(
            "POST",
            url,
            headers=headers,
            body=body,
            limit=MAX_ERROR_BYTES,
            name=CHAT_ABORT,
            seconds=timeout,
        )
        read_abort(answered.status, answered.headers, answered.body, now=self.clock())

    async def open_stream(
        self,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool,
        agent_id: int | str | None = None,
    ) -> Stream:
        """Send a chat request and check the head of its response. The caller reads the body."""
        await self._learn(list(secrets_in(body)))
        return await self._open(
            CHAT_STREAM,
            f"{self.config.require_chat_url(agent_id)}/stream-chat-state",
            headers=self._chat_headers(),
            body=body,
            seconds=timeout,
            check=check_stream_start,
            repeatable=repeatable,
        )

    async def open_data_stream(
        self, url: str, token: SecretStr, body: dict[str, Any], *, timeout: float
    ) -> Stream:
        """Send a query to the data API. The header has only the token, without a scheme."""
        await self._learn([token.get_secret_value()])
        return await self._open(
            DATA_QUERY,
            url,
            headers={"Authorization": token.get_secret_value()},
            body=body,
            seconds=timeout,
            check=check_data_start,
        )

    async def call_data(
        self,
        name: RequestName,
        url: str,
        token: SecretStr,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool,
    ) -> Any:
        """Send a request to the data API and return the document of its response."""
        await self._learn([token.get_secret_value()])
        answered = await self._request(
            "POST",
            url,
            headers={
                "Authorization": token.get_secret_value(),
                "Accept": "application/json",
            },
            body=body,
            limit=MAX_LIST_BYTES,
            name=name,
            seconds=timeout,
            repeatable=repeatable,
        )
        return read_data_document(
            name, answered.status, answered.headers, answered.body, now=self.clock()
        )

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
        async with translated(name, url, seconds):
            response = await self._send(
                name,
                "POST",
                url,
                headers={**headers, "Accept": "application/json"},
                body=body,
                seconds=seconds,
                repeatable=repeatable,
            )
            try:
                failed = response.status >= 300
                said = await response.read(name, MAX_ERROR_BYTES) if failed else b""
                check(name, response.status, response.headers, said, now=self.clock())
            except BaseException:
                await response.aclose()
                raise
        return Stream(name, response)

    async def _perform(self, operation: Operation[T], deadline: float | None) -> T:
        base, token = self.config.require_management_url(), self.config.management_token
        bearer = token.get_secret_value() if token else ""
        accepted = "*/*" if operation.binary else "application/json"
        answered = await self._request(
            operation.method,
            operation.url(base),
            name=operation.request_name,
            headers={
                "accept": accepted,
                **operation.headers,
                "Authorization": f"Bearer {bearer}",
            },
            query=operation.query,
            body=operation.body,
            limit=max_bytes(operation),
            seconds=self._seconds_until(deadline),
            repeatable=operation.repeatable,
        )
        if operation.method == "DELETE" and answered.status == 404 and answered.sent_twice:
            return operation.done_before()
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
        name: RequestName,
        query: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> OpenResponse:
        seconds = seconds or self.config.request_timeout
        async with translated(name, url, seconds):
            response = await self._send(
                name,
                method,
                with_query(url, query) if query else url,
                headers=headers,
                body=body,
                seconds=seconds,
                repeatable=repeatable,
            )
            try:
                response.body = await response.read(name, limit)
            finally:
                await response.aclose()
        return response

    async def _send(
        self,
        name: RequestName,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: Any,
        seconds: float,
        repeatable: bool,
    ) -> OpenResponse:
        content = None if method == "GET" and body is None else json_body(name, body)
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        elif content is not None:  # some front ends answer 411 if it is missing
            headers = {**headers, "Content-Length": "0"}
        return await self.connections.send(
            self.config,
            method,
            url,
            headers=headers,
            content=content,
            seconds=seconds,
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


# What a function that calls the service gets.


P = ParamSpec("P")
A = TypeVar("A", bound="Api")
INTERRUPTED = "The task was stopped, so it sends no further request."


async def _ignore(event: object) -> None:
    """Ignore the event."""


def ignore_event(event: object) -> None:
    """Ignore the event."""


def not_interrupted() -> bool:
    """Return False: nothing stops this work."""
    return False


def _api_step(
    method: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[A, P], Coroutine[Any, Any, T]]:
    """Refuse what an interrupted task asks for, and hide secrets in the errors of the method."""

    @wraps(method)
    async def step(self: A, /, *args: P.args, **options: P.kwargs) -> T:
        if self.interrupted():
            raise PlatformInterruptedError(INTERRUPTED)
        try:
            return await self._interruptible(method(self, *args, **options))
        except PlatformError as error:
            self.secrets.hide_in(error)
            raise

    return step


class Api:
    """The calls, the stream, the clock and the listener of one run of work.

    It owns the stream that the work has open: at most one. Secrets are removed from the errors that
    its methods raise. What a method asks of the service is a task of its own. `interrupt` ends this
    task: the method raises PlatformInterruptedError, and the work decides what follows. If
    `interrupted` returns True, every later request raises it too.
    """

    def __init__(
        self,
        transport: Transport,
        hear: Callable[[object], Awaitable[None]] = _ignore,
        report: Callable[[object], None] = ignore_event,
        interrupted: Callable[[], bool] = not_interrupted,
    ) -> None:
        self._transport = transport
        self._hear = hear
        self.report = report
        """Report an event for the log. The work continues at once. The caller handles all events in
        order."""
        self.interrupted = interrupted
        """Whether the task was stopped."""
        self.clock = transport.clock
        """Unix time in seconds."""
        self.secrets = transport.secrets
        """All secrets that were sent or received."""
        self._streams: list[Stream] = []
        self._tasks: set[asyncio.Future[Any]] = set()
        self._config_used = transport.config

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._transport.config

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

    async def _interruptible(self, request: Awaitable[T]) -> T:
        """Return the result of the request. It is a task of its own if somebody can interrupt it.
        In a triggerer nobody can, and each poll is cheaper without."""
        if self.interrupted is not_interrupted:
            return await request
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
        return await self._transport.call(operation, once=once, deadline=deadline)

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
        self._config_used = self._transport.config
        opened = await self._transport.open_stream(
            body, timeout=timeout, repeatable=repeatable, agent_id=agent_id
        )
        self._streams.append(opened)

    @_api_step
    async def open_data_stream(
        self, url: str, token: SecretStr, body: dict[str, Any], *, timeout: float
    ) -> bool:
        """Send a query to the data API at `url` and open its response, as `open_stream` does.
        Returns whether the response is open-ended: only the end of the connection marks its end, so
        a response that was cut looks complete."""
        await self.aclose()
        opened = await self._transport.open_data_stream(url, token, body, timeout=timeout)
        self._streams.append(opened)
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
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool = False,
    ) -> Any:
        """Send a request to the data API at `url` whose response is one JSON document. Returns that
        document, or a `DataRefusal` if the deployment itself answers with an error.

        Errors call the request `name`. `timeout` is in seconds. With `repeatable`, the request may
        reach the service twice. It is attempted once. Raises PlatformError for HTML, a redirect, a
        refused token, a broken connection, or an error of a server in front of the deployment.
        """
        return await self._transport.call_data(
            name, url, token, body, timeout=timeout, repeatable=repeatable
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
        """Send a chat request whose response is not a stream (abort). `timeout` is in seconds; None
        means the configuration's. `agent_id` names another agent than the connection's. Raises
        PlatformError."""
        await self._transport.send_chat(path, body, timeout=timeout, agent_id=agent_id)

    @_api_step
    async def sleep(self, seconds: float, *, spread: float = 0.0) -> None:
        """Pause for `seconds`. With `spread` (0 to 1), the pause is at random up to that fraction
        shorter or longer, so that waits which began together do not all poll at the same time."""
        factor = random.uniform(1 - spread, 1 + spread)  # noqa: S311 - guards nothing
        await asyncio.sleep(max(0.0, seconds * factor))

    @_api_step
    async def reload_credentials(self) -> bool:
        """Read the credentials again from their source, and return whether they changed."""
        return await self._transport.reload_credentials(self._config_used)

    async def aclose(self) -> None:
        """Close the open stream, if any."""
        while self._streams:
            await self._streams.pop().aclose()


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


CLOSED = "The client was closed before the run was complete."


class Steps(Generic[T]):
    """Work on an event loop, for a caller in another thread.

    `events` has each event, with whether the work waits until the caller has handled it, and at
    last the work's outcome as a Future. `ended` has an item once the work `is_over`. It is no
    threading.Event: a signal handler that raises where the caller waits can leave the lock of an
    Event locked, and then the loop would wait for it forever. The loop must call the methods.
    """

    def __init__(
        self,
        work: Operation[T] | Work[T],
        transport: Transport,
        interrupted: Callable[[], bool],
        running: set[Steps[Any]],
    ) -> None:
        self.task: asyncio.Task[T] | None = None
        self.events: SimpleQueue[tuple[Any, bool]] = SimpleQueue()
        self.ended: SimpleQueue[None] = SimpleQueue()
        self.is_over = False
        self._api = Api(transport, self._offer, self._report, interrupted)
        self._work: Operation[T] | Work[T] | None = work
        self._running = running
        self._is_ending = False
        self._handled: asyncio.Future[None] | None = None
        self._offers = asyncio.Lock()

    def proceed(self) -> None:
        """Start the work; later say that the caller has handled the event."""
        if self._work is not None:
            self.task = asyncio.create_task(run_here(self._work, self._api))
            self.task.add_done_callback(self._finish)
            self._running.add(self)
            self._work = None  # it may refer to the client, whose deletion ends the loop
        elif self._handled is not None and not self._handled.done():
            self._handled.set_result(None)

    def interrupt(self) -> None:
        """End what is under way on the service, so that the work ends."""
        self._api.interrupt()

    def end(self) -> None:
        """Cancel the work. It hands over no further event."""
        self._is_ending = True
        if self._work is not None:  # a signal handler raised before the start
            self._work = None
            self._conclude()
        elif self.task is not None and not self.task.cancelling():
            self.task.cancel()  # a second cancel would end the clean-up

    async def _offer(self, event: object) -> None:
        """Hand the event to the caller, and wait until the caller has handled it."""
        if self._is_ending:
            raise asyncio.CancelledError
        async with self._offers:  # work may do several things at the same time
            self._handled = asyncio.get_running_loop().create_future()
            self.events.put((event, True))
            await self._handled

    def _report(self, event: object) -> None:
        """Hand the event to the caller."""
        self.events.put((event, False))

    def _finish(self, task: asyncio.Task[T]) -> None:
        self.task = None  # its error will hold the frames of the caller
        self._running.discard(self)
        outcome: Future[T] = Future()
        if task.cancelled():
            stopped = self._api.interrupted()
            outcome.set_exception(
                PlatformInterruptedError(INTERRUPTED) if stopped else PlatformClosedError(CLOSED)
            )
        elif (error := task.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())
        self.events.put((outcome, False))
        self._conclude()

    def _conclude(self) -> None:
        self.is_over = True
        self.ended.put(None)
