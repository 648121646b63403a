"""What a response means: where its body ends, its typed value, or an error that says what failed.

`OpenResponse` reads the raw body and decodes it. A body is complete only if the protocol says so.
Every other end, a TLS alert included, is a broken connection. httpx would return a compressed body
that ends too early as if it were complete.

The functions below are pure functions over status, headers and body. The platform's web host
answers unknown paths with 200 and an HTML page, so a successful status alone proves nothing.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import httpx

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.failed_calls import (
    CHAT_ABORT,
    chat_error,
    data_call_error,
    data_error,
    is_html,
    is_html_type,
    management_error,
    own_error,
    rpc_error,
    service_message,
)
from airflow_provider_platform.client.json_text import CutJsonError, db_safe, read_json
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.pages import Page
from airflow_provider_platform.client.redaction import KnownSecrets, quote_service

T = TypeVar("T")

ERROR_SECONDS = 5.0
MAX_DECODED_BYTES = 1024 * 1024
"""The most bytes that are decompressed at once: a few bytes can hold gigabytes."""
_GZIP_WINDOW = 31
"""zlib's number for gzip with the largest window."""
BROKEN = (httpx.HTTPError, httpx.StreamError, OSError, zlib.error)
"""The errors of a connection. httpx passes on those of TLS as they are: they are OSErrors."""


class RefusedCodingError(Exception):
    """The body has a coding that the request did not accept, or several codings."""


class OpenResponse:
    """A response whose head has arrived. `body` is empty until it has been read."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        """The case of the names makes no difference."""
        self.body = b""
        self._response = response

    @property
    def is_open_ended(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that it may have
        been cut (RFC 9112, section 6.3)."""
        if self.status in (204, 304):
            return False
        return "transfer-encoding" not in self.headers and "content-length" not in self.headers

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the content piece by piece as it arrives, and no empty piece. It ends where the
        protocol says so; an open-ended body ends with the connection. Raises the errors of
        `BROKEN`, RefusedCodingError."""
        named = self.headers.get("content-encoding", "").lower().split(",")
        codings = [coding for name in named if (coding := name.strip()) not in ("", "identity")]
        if codings not in ([], ["gzip"], ["x-gzip"]):
            raise RefusedCodingError(", ".join(codings))
        unpack = _Gunzip() if codings else None
        async with aclosing(cast("AsyncGenerator[bytes]", self._response.aiter_raw())) as arriving:
            async for piece in arriving:
                for content in unpack.decode(piece) if unpack else (piece,):
                    if content:
                        yield content
        if unpack is not None and unpack.is_cut:
            raise zlib.error("the body ends inside its compressed data")

    async def read(self, name: RequestName, limit: int) -> bytes:
        """Return the body. Of an error, return as much as arrives within `ERROR_SECONDS`: any part
        is good enough. Raises PlatformProtocolError if another body has more than `limit` bytes
        after decoding."""
        pieces: list[bytes] = []
        size = 0
        seconds = None if self.status < 300 else ERROR_SECONDS
        try:
            async with asyncio.timeout(seconds), aclosing(self.pieces()) as arriving:
                async for piece in arriving:
                    pieces.append(piece)
                    size += len(piece)
                    if size > limit:
                        break
        except (*BROKEN, RefusedCodingError):
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
        # In httpx a response and its stream refer to each other. Without this, only full
        # collections would free what thousands of polls leave, and each stops a triggerer.
        self._response.stream = httpx.ByteStream(b"")


class _Gunzip:
    """Decodes gzip of one or several members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._begun = False

    @property
    def is_cut(self) -> bool:
        """Whether what was decoded so far ends inside a member."""
        return self._begun and not self._member.eof

    def decode(self, packed: bytes) -> Iterator[bytes]:
        """Yield the content of the next bytes, in pieces of at most `MAX_DECODED_BYTES`. Raises
        zlib.error."""
        more = bool(packed)
        self._begun = self._begun or more
        while more:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            content = self._member.decompress(packed, MAX_DECODED_BYTES)
            yield content
            if self._member.eof:
                packed = self._member.unused_data
                more = bool(packed)
            else:
                packed = self._member.unconsumed_tail
                more = bool(packed) or len(content) == MAX_DECODED_BYTES


def broken_response(name: RequestName, error: Exception) -> PlatformError:
    """Return the error of a response that broke off."""
    if isinstance(error, RefusedCodingError):
        return PlatformProtocolError(
            f"{name.action}: the response was not read, because its content encoding is "
            f"{quote_service(str(error))!r}. The provider reads only responses that are not "
            "compressed, or compressed once with gzip. Check the proxies between Airflow and the "
            "service.",
            where=name.where,
        )
    return PlatformTransportError(
        f"{name.action}: the connection broke before the response was complete "
        f"({reason_of(error)}).",
        where=name.where,
    )


def reason_of(error: Exception) -> str:
    """Return an error of a library as one line."""
    return quote_service(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


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
            raise _wrong_address(name, is_html=True, described=operation.described)
        if open_ended:
            raise _perhaps_cut(name)
        _refuse_what_is_no_file(name, status, headers, body)
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


def _refuse_what_is_no_file(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes
) -> None:
    """Raise PlatformError if a download has no content, or a JSON document instead of the file."""
    if not body:
        raise PlatformTransportError(f"{name.action}: the response is empty.", where=name.where)
    says_json = "json" in headers.get("content-type", "").lower()
    if says_json or body[:200].lstrip().startswith(b"{"):
        raise PlatformProtocolError(
            f"{name.action}: the service answered {status} with JSON instead of the file: "
            f"{service_message(body[:MAX_ERROR_BYTES])}.",
            where=name.where,
        )


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
        raise _wrong_address(name, is_html=True)


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
        raise chat_error(name, status, headers, body, now=now)
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
        address = parts.netloc.rpartition("@")[2]
        target = f"{parts.scheme}://{address}{parts.path}" if address else parts.path
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
        raise _wrong_address(name, is_html=True, described=described)
    try:
        return db_safe(read_json(body))
    except CutJsonError as error:
        raise PlatformTransportError(
            f"{name.action}: the response was cut off: it {error}.", where=name.where
        ) from None
    except ValueError:
        raise _wrong_address(name, is_html=False, described=described) from None


def _wrong_address(
    name: RequestName, *, is_html: bool, described: bool = True
) -> PlatformAddressError:
    """Return the error for a response that is not JSON. `described` says that the path is
    documented, so the address must be wrong."""
    got = "HTML" if is_html else "something else"
    if not described:
        return PlatformAddressError(
            f"{name.action}: the service returned {got} instead of JSON. The service does this for "
            "a path that this tenant does not have. Check the path: it begins with /v1 or /api/v1, "
            "for example /v1/deployments, or with /build/api/v1, for example "
            "/build/api/v1/deployments/{deploymentId}/branches. If the path is right, check the "
            "address in the connection.",
            where=name.where,
            is_html=is_html,
        )
    return PlatformAddressError(
        f"{name.action}: the address returned {got} instead of JSON. The response probably comes "
        "from the platform's web application or from a proxy. Check the address in the "
        "connection: Management API address (host) ends in /api, Chat address (chat_url) in "
        "/chat. If other tasks work with this connection, this tenant does not have the operation.",
        where=name.where,
        is_html=is_html,
    )
