"""Sends one request over HTTP: two clients of httpx, their certificates and proxies.

`Connections` holds both clients. One keeps its connections, for requests that can be sent twice:
the service may close an idle connection at the moment when a request is sent on it. The other keeps
none, so that a request that must not be sent twice always gets a new connection.

`sending` gives a request its time, and turns what httpx raises into this package's errors. It knows
from httpx's `trace` extension whether a byte of the request was sent. Until then the request was
certainly not processed, whatever failed: the network, a proxy, or TLS.

Neither client follows a redirect or keeps a cookie, so nothing of one host reaches another.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import getproxies

import certifi
import httpx

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import passwords_in
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.responses import (
    BROKEN,
    OpenResponse,
    RefusedCodingError,
    broken_response,
    reason_of,
)

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 30.0
"""Seconds for everything before the first byte of a request: the name, the proxy, TLS."""
KEPT_SECONDS = 60.0
"""Seconds that an idle connection is kept. Networks drop connections that are silent for minutes,
and report it to neither end."""
DRAIN_SECONDS = 0.25
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The variables that name certificates for other clients. OpenSSL reads SSL_CERT_FILE and
SSL_CERT_DIR by itself."""
_HEADERS = {"accept-encoding": "gzip", "user-agent": "airflow-provider-platform"}
_CONNECTING = {"connect_tcp": "the TCP connection", "start_tls": "the TLS handshake"}
_THIS_MACHINE: dict[str, httpx.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}
"""The system's proxies never apply to the machine itself."""


# -- Connections -------------------------------------------------------------------------------


class Connections:
    """The two clients of httpx that one client of this package uses. Use them on one event loop."""

    def __init__(self) -> None:
        self.closed = False
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def send(
        self,
        config: PlatformConfig,
        method: str,
        url: str,
        progress: Progress,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
        repeatable: bool,
    ) -> OpenResponse:
        """Send a request inside `sending`, and return when the head of its response has arrived.
        The client that keeps connections sends it if it is `repeatable`."""
        if self.closed:
            raise PlatformClosedError("This client is closed: nothing was sent.")
        client = self._client(config, keep=repeatable)
        request = httpx.Request(
            method,
            url,
            headers={**_HEADERS, **headers},
            content=content,
            extensions={"trace": progress.trace},
        )
        default_port = 443 if request.url.scheme == "https" else 80
        progress.target = f"{request.url.raw_host.decode()}:{request.url.port or default_port}"
        response = await client.send(request, stream=True)
        response.headers.update(response.extensions.get("moved", {}))
        return OpenResponse(response)

    async def aclose(self) -> None:
        """Close all connections for good."""
        self.closed = True
        for client in self._clients.values():
            with suppress(Exception):  # how a connection ends says nothing
                await client.aclose()

    def _client(self, config: PlatformConfig, *, keep: bool) -> httpx.AsyncClient:
        if not config.verify_tls:
            _warn_of_unchecked_certificates(config.management_url, config.chat_url)
        if keep not in self._clients:
            self._clients[keep] = _new_client(config, keep=keep)
        return self._clients[keep]


@lru_cache
def _warn_of_unchecked_certificates(*_: str | None) -> None:
    """Warn once in a process: a sensor opens a client for each poke."""
    log.warning(
        "The certificates of the service are not checked, because Verify TLS certificates "
        "(verify_tls) is false: another server could read the credentials. Set CA bundle "
        "(ca_bundle) instead."
    )


def _new_client(config: PlatformConfig, *, keep: bool) -> httpx.AsyncClient:
    """Return a client of httpx, with the proxy of the connection, or those of the system."""
    context = tls_context(config)
    try:
        proxy, mounts = None, _THIS_MACHINE if getproxies() else None
        if config.proxy is not None:
            url = httpx.URL(config.proxy.get_secret_value())
            proxy = httpx.Proxy(url, ssl_context=context if url.scheme == "https" else None)
        return httpx.AsyncClient(
            verify=context,
            proxy=proxy,
            trust_env=proxy is None,
            mounts=mounts if proxy is None else None,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=None if keep else 0,
                keepalive_expiry=KEPT_SECONDS,
            ),
            timeout=None,  # noqa: S113 - `sending` limits the time
            event_hooks={"response": [_set_location_aside]},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        raise PlatformConfigError(
            "The proxy of the connection or of the system cannot be used. Its address must begin "
            "with http://, https:// or socks5://. For a socks5:// address, install the package "
            "socksio.",
            field="proxy",
        ) from None


async def _set_location_aside(response: httpx.Response) -> None:
    """Hide the target of a redirect from httpx. It parses a target that it does not follow, and
    raises errors of a broken connection or of a bad address if the target is not a URL."""
    if "location" in response.headers:
        response.extensions["moved"] = {"location": response.headers.pop("location")}


def tls_context(config: PlatformConfig) -> ssl.SSLContext:
    """Return the TLS context of a configuration: system CAs, bundled CAs, those that the
    environment names, and the connection's own. Raises PlatformConfigError if `ca_bundle` has no
    certificates.
    """
    named = [Path(path) for name in CA_VARIABLES if (path := os.environ.get(name))]
    bundles = [path for path in named if path.exists()]
    if config.ca_bundle is not None:
        bundles.append(config.ca_bundle)
    try:
        changed = tuple((path, path.stat().st_mtime_ns) for path in bundles)
        return _context(changed, config.verify_tls)
    except (OSError, ssl.SSLError):
        raise PlatformConfigError(
            "CA bundle (ca_bundle) contains no readable certificates.", field="ca_bundle"
        ) from None


@lru_cache(maxsize=8)
def _context(bundles: tuple[tuple[Path, int], ...], verify: bool) -> ssl.SSLContext:
    """Return a cached TLS context: a new one takes 20 ms and a megabyte."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    for path, _ in bundles:
        if path.is_dir():
            context.load_verify_locations(capath=str(path))
        else:
            context.load_verify_locations(cafile=str(path))
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _keep_alive(connected: Any) -> None:
    """Let the system probe a silent connection: networks drop silent connections."""
    raw = connected.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)


def system_proxy_passwords() -> list[str]:
    """Return the passwords of the proxies that the environment names."""
    return [password for proxy in getproxies().values() for password in passwords_in(proxy)]


# -- Sending -----------------------------------------------------------------------------------


class Progress:
    """How far one request has come, from httpx's `trace` extension."""

    def __init__(self, limit: asyncio.Timeout, ends: float) -> None:
        self.sent = False
        """Whether the service may have received a byte of the request."""
        self.target = ""
        """Host and port of the service."""
        self._limit = limit
        self._ends = ends
        self._step = ""
        self._connects_to = ""
        self._connected: Any = None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note an event of the connection, such as `connection.connect_tcp.started`."""
        step, _, state = event.partition(".")[2].rpartition(".")
        if step == "connect_tcp":
            if state == "started":
                self._connects_to = f"{info['host']}:{info['port']}"
            elif state == "complete":
                self._connected = info["return_value"]
                _keep_alive(self._connected)
        elif (step, state) == ("send_request_headers", "started"):
            self.sent = info["request"].method != b"CONNECT"
            if self.sent:
                self._limit.reschedule(self._ends)
        if state == "started":
            self._step = step

    @property
    def proxy(self) -> str:
        """The proxy that the connection was made to, as ` through the proxy host:port`, or ""."""
        proxied = self._connects_to not in ("", self.target)
        return f" through the proxy {self._connects_to}" if proxied else ""

    @property
    def is_connecting(self) -> bool:
        """Whether a connection was begun, and nothing sent on it."""
        return self._connects_to != "" and not self.sent

    @property
    def waited_for(self) -> str:
        """What did not come in time."""
        return _CONNECTING.get(self._step, "the answer of the proxy")

    async def disconnect(self) -> None:
        """Close a connection on which nothing was sent: httpx leaves it open if it was cancelled
        in a handshake."""
        if not self.sent and self._connected is not None:
            with suppress(Exception):
                await self._connected.aclose()


@asynccontextmanager
async def sending(name: RequestName, url: str, seconds: float) -> AsyncIterator[Progress]:
    """Give a request to ``url`` its time, and turn its failures into PlatformErrors.

    Connecting may take a little less time than the whole, so that a connection that was never made
    is reported as such.
    """
    began = asyncio.get_running_loop().time()
    connecting = min(CONNECT_TIMEOUT, seconds * 0.9)
    limit = asyncio.timeout_at(began + connecting)
    progress = Progress(limit, began + seconds)
    try:
        async with limit:
            try:
                yield progress
            except BaseException:
                await progress.disconnect()
                raise
    except PlatformError:
        raise
    except TimeoutError:
        if not progress.sent:
            reason = f"no end of {progress.waited_for} within {connecting:g} seconds"
            raise _never_sent(name, url, progress, reason) from None
        raise PlatformTransportError(
            f"{name.action}: no complete response within {seconds:g} seconds.", where=name.where
        ) from None
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise PlatformInputError(
            f"{name.action}: nothing was sent, because the address is not valid "
            f"({reason_of(error)}).",
            where=name.where,
        ) from error
    except Exception as error:
        # httpx passes on what the library for SOCKS raises at a proxy's nonsense.
        if progress.is_connecting:
            raise _never_sent(name, url, progress, reason_of(error)) from error
        if isinstance(error, (*BROKEN, RefusedCodingError)):
            raise broken_response(name, error) from error
        raise


def _never_sent(
    name: RequestName, url: str, progress: Progress, reason: str
) -> PlatformTransportError:
    parsed = httpx.URL(url)
    server = f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"
    return PlatformTransportError(
        f"{name.action}: no connection could be made to {server}{progress.proxy} ({reason}). "
        "Check the address and the network. For a certificate error, check CA bundle (ca_bundle).",
        where=name.where,
        processed=False,
    )


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
            f"({reason_of(error)}).",
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


# -- Streams -----------------------------------------------------------------------------------


class Stream:
    """The open response of a request, read piece by piece and decoded.

    The caller says how long a read may wait: for a chat it is the setting `stream_idle_timeout`.
    """

    def __init__(self, name: RequestName, response: OpenResponse, connections: Connections) -> None:
        self._name = name
        self._response = response
        self._connections = connections
        self._pieces = response.pieces()
        self._over: PlatformError | None = None
        """Why no more can be read, although the body has not ended."""

    @property
    def is_open_ended(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that it may have
        been cut."""
        return self._response.is_open_ended

    async def read(self, seconds: float) -> bytes | None:
        """Return the next bytes: b"" at the end of the body, None after `seconds` without bytes
        (the connection is then lost). Raises PlatformTransportError if the response broke off,
        PlatformProtocolError if its coding cannot be decoded, PlatformClosedError if the stream or
        its client was closed before its end."""
        if self._over is not None:
            raise self._over
        self._over = self._closed("stream")  # unless this read ends well
        try:
            async with asyncio.timeout(seconds):
                data = await anext(self._pieces, b"")
        except TimeoutError:
            return None
        except (*BROKEN, RefusedCodingError) as error:
            closed = self._connections.closed
            self._over = self._closed("client") if closed else broken_response(self._name, error)
            raise self._over from error
        self._over = None
        return data

    async def drain(self) -> None:
        """Wait a moment for the end of a response whose content is no longer needed."""
        with suppress(TimeoutError, PlatformError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await self.read(DRAIN_SECONDS):
                    pass

    async def aclose(self) -> None:
        """Give the connection back if the body was read to its end, otherwise close it."""
        self._over = self._over or self._closed("stream")
        try:
            await self._pieces.aclose()
        finally:
            await self._response.aclose()

    def _closed(self, what: str) -> PlatformError:
        return PlatformClosedError(
            f"{self._name.action}: the {what} was closed before the response was complete.",
            where=self._name.where,
        )
