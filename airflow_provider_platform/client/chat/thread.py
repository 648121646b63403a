"""Whether a chat thread is streaming: one request without `input`, read until it says so."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.chat.connection import is_error
from airflow_provider_platform.client.chat.request import is_busy, says_busy
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    ChatStreamError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformTransportError,
    quote_service,
)
from airflow_provider_platform.client.formats.ndjson import LineReader, parse_line
from airflow_provider_platform.client.http.responses import rpc_message
from airflow_provider_platform.client.operations.program import (
    Clock,
    CloseStream,
    OpenStream,
    Program,
    ReadStream,
    ReloadCredentials,
)
from airflow_provider_platform.client.session_settings import SessionSettings


def thread_is_streaming(
    chat_id: str, settings: SessionSettings | None, clock: Clock, *, timeout: float
) -> Program[bool]:
    """Ask a thread for its state; starts nothing. `timeout` in seconds, for the whole look.

    Raises PlatformNotFoundError for an unknown thread, ChatRpcError for a refused credential,
    PlatformTransportError where the answer did not come to the state.
    """
    body: dict[str, Any] = {"chatId": chat_id}
    if settings is not None:
        body["sessionSettings"] = settings.to_json()
    for attempt in range(2):
        try:
            return (yield from _read(chat_id, body, clock, timeout))
        except (ChatRpcError, PlatformAuthenticationError):
            if attempt or not (yield ReloadCredentials()):
                raise
        except PlatformApiError as error:
            if is_busy(error):
                return True
            raise
    raise AssertionError("the second attempt returns or raises")


def _read(chat_id: str, body: dict[str, Any], clock: Clock, timeout: float) -> Program[bool]:
    until = clock() + timeout
    yield OpenStream(body, timeout=timeout, repeatable=True)
    reader = LineReader()
    while True:
        wait = until - clock()
        data: bytes | None = (yield ReadStream(wait)) if wait > 0 else None
        lines = reader.feed(data) if data else _last_line(reader)
        for line, number in lines:
            streaming = state_told(chat_id, parse_line(line, number))
            if streaming is not None:
                yield CloseStream()
                return streaming
        if not data:
            break
    yield CloseStream()
    raise PlatformTransportError(
        f"chat {chat_id}: the answer ended before it said whether the thread is streaming."
    )


def _last_line(reader: LineReader) -> list[tuple[bytes, int]]:
    """What came after the last line end, where that is a whole line: a cut one tells nothing."""
    rest = reader.rest()
    return [(rest, reader.lines_seen + 1)] if rest.endswith(b"}") else []


def state_told(chat_id: str, record: Any) -> bool | None:
    """Whether the thread is streaming, by one record of it; None where the record does not tell.

    What comes before `__cutoff__` is history and tells nothing. Raises the error that an error
    record amounts to.
    """
    if not isinstance(record, dict):
        return None
    if is_error(record):
        return _error_told(chat_id, record)
    if record.get("id") not in ("__cutoff__", "__state__"):
        return None
    state = record.get("state")
    told = state.get("isStreaming") if isinstance(state, dict) else None
    if isinstance(told, bool):
        return told
    return False if record["id"] == "__state__" else None


def _error_told(chat_id: str, record: dict[str, Any]) -> bool:
    error = record["error"]
    if says_busy(error):
        return True
    refused = (isinstance(error, dict) and "code" in error) or "jsonrpc" in record
    failure: PlatformError = (
        ChatRpcError(rpc_message(f"chat {chat_id}", error))
        if refused
        else ChatStreamError(f"chat {chat_id}: the service said: {quote_service(error)}.")
    )
    raise failure
