"""Turns connection errors into this package's errors: no connection, too slow, or broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformTransportError,
    RequestName,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.content_coding import (
    ACCEPTED,
    BrokenContentError,
    RefusedCodingError,
)

BROKEN = (httpx.HTTPError, httpx.StreamError, BrokenContentError, RefusedCodingError)
"""The errors that reading a body raises if the body breaks off."""
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
    """Return the error of a response that broke off (one of `BROKEN`)."""
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


def _server(url: str) -> str:
    """Return only scheme, host and port of an address."""
    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


def reason(error: Exception) -> str:
    return quote_service(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
