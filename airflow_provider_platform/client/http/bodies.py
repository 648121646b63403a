"""Bodies of requests and responses as bytes, limits of their size, and httpx errors as ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.connections import OpenResponse
from airflow_provider_platform.client.http.content_coding import (
    ACCEPTED,
    BrokenContentError,
    RefusedCodingError,
)
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.paging import Page

BROKEN = (httpx.HTTPError, httpx.StreamError, BrokenContentError, RefusedCodingError)
"""What reading a body raises where it does not come to its end."""
MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""The limit of a response that a model describes and that is not a list."""
MAX_LIST_BYTES = 16 * 1024 * 1024
"""The limit of a page of a list, and of a response that no model describes."""
MAX_DOWNLOAD_BYTES = 128 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


@asynccontextmanager
async def translated(name: RequestName, url: str, seconds: float) -> AsyncIterator[None]:
    """Turns time-outs and httpx errors of a request to ``url`` into PlatformTransportError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise PlatformTransportError(
            f"{name.action}: no complete response within {seconds:g} seconds.", where=name.where
        ) from None
    except _NEVER_SENT as error:
        raise PlatformTransportError(
            f"{name.action}: no connection could be made to {_server(url)} ({reason(error)}). "
            "Check the address and the network. For a certificate error, check CA bundle "
            "(ca_bundle).",
            where=name.where,
            processed=False,
        ) from error
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise PlatformInputError(
            f"{name.action}: nothing was sent, because the address is not valid ({reason(error)}).",
            where=name.where,
        ) from error
    except BROKEN as error:
        raise broken_answer(name, error) from error


def broken_answer(name: RequestName, error: Exception) -> PlatformError:
    """The error of an answer that did not come to its end (one of `BROKEN`)."""
    if isinstance(error, RefusedCodingError):
        return PlatformProtocolError(
            f"{name.action}: the response was not read, because its content encoding is "
            f"{quote_service(str(error))!r}. The provider reads only responses that are not "
            f"compressed, or compressed once with {ACCEPTED}. Check the proxies between Airflow "
            "and the service.",
            where=name.where,
        )
    return PlatformTransportError(
        f"{name.action}: the connection broke before the response was complete ({reason(error)}).",
        where=name.where,
    )


def max_bytes(operation: Operation[Any]) -> int:
    """The most bytes that a response of the operation may have, decoded."""
    if operation.binary:
        return MAX_DOWNLOAD_BYTES
    answer: Any = operation.answer
    is_list = isinstance(answer, type) and issubclass(answer, Page)
    return MAX_LIST_BYTES if is_list or not operation.described else MAX_RESPONSE_BYTES


async def read_body(name: RequestName, response: OpenResponse, limit: int, *, cut: bool) -> bytes:
    """The body; with `cut` (errors, of which any part is good enough) as much of it as comes."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.pieces()) as arriving:
            async for piece in arriving:
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    if cut:
                        break
                    raise PlatformProtocolError(
                        f"{name.action}: the response is larger than {limit} bytes, so reading "
                        "stopped.",
                        where=name.where,
                    )
    except BROKEN:
        if not cut:
            raise
    return b"".join(pieces)


def json_body(name: RequestName, value: Any) -> bytes:
    """A request's body, empty for None. Raises PlatformInputError for what JSON cannot carry."""
    if value is None:
        return b""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PlatformInputError(
            f"{name.action}: nothing was sent, because the request body cannot be written as JSON "
            f"({reason(error)}).",
            where=name.where,
        ) from None


def query_pairs(params: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """Query parameters as pairs: lists repeat their name, None is absent, booleans are lower."""
    if not params:
        return None
    return [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in params.items()
        for one in (value if isinstance(value, list | tuple) else [value])
        if one is not None
    ]


def _server(url: str) -> str:
    """Scheme, host and port of an address, without the rest of it."""
    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


def reason(error: Exception) -> str:
    return quote_service(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
