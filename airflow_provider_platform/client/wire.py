"""HTTP as this package uses it: connections, certificates, proxies, and when a body is complete.

This is the only module that imports httpx. A client of this package has two `httpx.AsyncClient`s.
One keeps its connections, for requests that can be sent twice: the service may close an idle
connection at the moment when a request is sent on it. The other keeps none, for requests that must
not be sent twice.

A body is complete only if the protocol says so. An error of any kind, a TLS alert included, is a
broken connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import lru_cache
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, cast
from urllib.request import getproxies

import certifi
import httpx

from airflow_provider_platform.client.addresses import passwords_in
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.service_text import quote_service

CONNECT_TIMEOUT = 30.0
KEPT_SECONDS = 60.0
"""Seconds that an idle connection is kept. Networks drop those that are silent for minutes, without
a word to either end."""
DRAIN_SECONDS = 0.25
MAX_WAITING_BYTES = 1024 * 1024
"""The most bytes that a stream receives before its reader takes them, one piece more or less."""
_HEADERS = {"Accept-Encoding": "gzip", "User-Agent": "airflow-provider-platform"}
_GZIP_WINDOW = 31
"""zlib's number for gzip with the largest window."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_BROKEN = (httpx.HTTPError, httpx.StreamError, OSError, zlib.error)
"""The errors of a connection. httpx does not translate those of TLS, which are OSErrors."""


class _RefusedCodingError(Exception):
    """The body has a coding that the request did not accept, or several codings."""


# -- Connections -------------------------------------------------------------------------------


class Connections:
    """The connections of one client. Use them on one event loop."""

    def __init__(self) -> None:
        _hide_logged_headers()
        self.closed = False
        self._clients: dict[tuple[str, bool], httpx.AsyncClient] = {}
        self._in_use: set[httpx.AsyncClient] = set()
        """The clients that have had a response, so that they may keep a connection."""
        self._cookies = CookieJar()
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
        params: list[tuple[str, Any]] | None = None,
    ) -> OpenResponse:
        """Send a request and return when the head of its response has arrived. `seconds` is the
        time that the caller gives the request; connecting may take a little less, so that a
        connection that was never made is reported as such. Raises httpx errors, OSError,
        PlatformClosedError, PlatformConfigError."""
        if self.closed:
            raise PlatformClosedError("This client is closed: nothing was sent.")
        address = httpx.URL(url)
        client = self._client(config, address.scheme, keep=repeatable)
        request = client.build_request(
            method,
            address,
            params=params,
            headers=headers,
            content=content,
            timeout=httpx.Timeout(None, connect=min(CONNECT_TIMEOUT, seconds * 0.9)),
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, ssl.SSLError):
            if not repeatable or client not in self._in_use:
                raise
            response = await client.send(request, stream=True)
            return OpenResponse(self, response, sent_twice=True)
        self._in_use.add(client)
        return OpenResponse(self, response)

    async def aclose(self) -> None:
        """Close all connections for good."""
        self.closed = True
        clients, self._clients = self._clients, {}
        for client in clients.values():
            with suppress(Exception):
                await client.aclose()

    def _client(self, config: PlatformConfig, scheme: str, *, keep: bool) -> httpx.AsyncClient:
        if (scheme, keep) not in self._clients:
            self._clients[scheme, keep] = _http_client(config, scheme, self._cookies, keep=keep)
        return self._clients[scheme, keep]


def _http_client(
    config: PlatformConfig, scheme: str, cookies: CookieJar, *, keep: bool
) -> httpx.AsyncClient:
    """Return a client for addresses of a scheme. It uses the proxy of the connection, otherwise
    those of the system, as httpx reads them."""
    verify = tls_context(config) if scheme == "https" else _plain_context()
    limits = httpx.Limits(
        max_connections=None,
        max_keepalive_connections=None if keep else 0,
        keepalive_expiry=KEPT_SECONDS,
    )
    try:
        if config.proxy is None and getproxies():
            # httpx reads them only if it makes the transport itself.
            return httpx.AsyncClient(
                verify=verify,
                limits=limits,
                headers=_HEADERS,
                cookies=cookies,
                mounts=_THIS_MACHINE,
            )
        transport = httpx.AsyncHTTPTransport(
            verify=verify,
            limits=limits,
            proxy=_proxy(config),
            socket_options=_keep_alive_options(),
        )
        return httpx.AsyncClient(
            transport=transport, headers=_HEADERS, cookies=cookies, trust_env=False
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy of the connection or of the system cannot be used. Its address must begin "
            "with http://, https:// or socks5://. For a socks5:// address, install the package "
            "socksio.",
            field="proxy",
        ) from None


_THIS_MACHINE: dict[str, httpx.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}
"""The system's proxies never apply to the machine itself."""


def _proxy(config: PlatformConfig) -> httpx.Proxy | None:
    """Return the connection's proxy. The certificate of a proxy with TLS is checked like the
    service's."""
    if config.proxy is None:
        return None
    url = httpx.URL(config.proxy.get_secret_value())
    return httpx.Proxy(url, ssl_context=tls_context(config) if url.scheme == "https" else None)


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


@lru_cache(maxsize=1)
def _plain_context() -> ssl.SSLContext:
    """Return a TLS context for clients of plain http: httpx would create one for each."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


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
    """A response whose head has arrived. `sent_twice` says that the service may have carried out
    the request before."""

    def __init__(
        self, connections: Connections, response: httpx.Response, *, sent_twice: bool = False
    ) -> None:
        self.connections = connections
        self.sent_twice = sent_twice
        self.status: int = response.status_code
        self.headers: httpx.Headers = response.headers
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
        open-ended body ends with the connection. Raises httpx errors, OSError, zlib.error,
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
        raw = cast("AsyncGenerator[bytes]", self._response.aiter_raw())
        async with aclosing(raw) as arriving:
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


class Stream:
    """The open response of a request, read piece by piece and decoded.

    The caller says how long a read may wait: for a chat it is the setting `stream_idle_timeout`. A
    separate task receives what arrives, so that a read returns all of it at once: reading each
    record by itself would take twice the time of `httpx.stream`.
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
                return None
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
        try:
            async for piece in self._response.pieces():
                if piece:
                    self._pieces.append(piece)
                    self._size += len(piece)
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


def query_pairs(params: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """Return query parameters as pairs: a list repeats its name, None is left out, booleans are in
    lower case."""
    if not params:
        return None
    return [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, value in params.items()
        for item in (value if isinstance(value, list | tuple) else [value])
        if item is not None
    ]


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
