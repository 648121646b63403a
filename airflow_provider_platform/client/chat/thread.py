"""Threads: whether one is streaming, and how a run in it is stopped.

An abort knows threads only, and a stop may come late: a worker or a triggerer that stood still can
try to stop a run that ended long ago, while the thread answers somebody else's message. So every
stop reads the thread first and aborts only if its latest user record is ours. If that read fails,
a thread that the caller named is left alone; a thread that our own message made is aborted unread,
because otherwise nobody would stop its run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_platform.client.chat.lines import ChatLineParser, is_error, is_rpc_error
from airflow_provider_platform.client.chat.records import ChatRun, Verdict
from airflow_provider_platform.client.chat.request import ChatRequest, is_busy, says_busy
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    ChatStreamError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.client.formats.ndjson import LineReader
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.api_errors import rpc_error
from airflow_provider_platform.client.http.retry import is_transient
from airflow_provider_platform.client.operations.program import (
    Clock,
    CloseStream,
    OpenStream,
    Program,
    ReadStream,
    ReloadCredentials,
    SendChat,
    Sleep,
)
from airflow_provider_platform.client.settings.session_settings import SessionSettings

ABORT_SHARE = 1 / 3
"""How much of a stop's time is kept for the abort, whatever the read before takes."""
LEAST_SECONDS = 0.5
AFTERTHOUGHT = 0.5
"""Seconds in which a thread that seems to be ours may still tell of a later message."""
BETWEEN_READS = 0.2
STREAM = "chat stream: POST /stream-chat-state"


def abort(
    chat_id: str, settings: SessionSettings | None, *, timeout: float | None = None
) -> Program[None]:
    """Stop whatever streams in the thread. Returns when the service confirmed it (204).

    Raises PlatformNotFoundError for an unknown thread, PlatformPermissionError for one of another
    owner, ChatRpcError for a refused credential.
    """
    body: dict[str, Any] = {"chatId": chat_id}
    if settings is not None:
        body["sessionSettings"] = settings.identity
    try:
        yield SendChat("/abort", body, timeout)
    except (ChatRpcError, PlatformAuthenticationError):
        if not (yield ReloadCredentials()):
            raise
        yield SendChat("/abort", body, timeout)


def stop_run(run: ChatRun, request: ChatRequest, clock: Clock, *, seconds: float) -> Program[bool]:
    """Stop this run and no other, within `seconds`: read the thread, then abort it.

    Returns False, with nothing stopped, if the latest message of the thread is not ours. Raises
    what `abort` raises, and PlatformTransportError if a thread that the caller named could not be
    read: it is not known whose run streams there, so it is left alone.
    """
    if run.chat_id is None:
        return False
    until = clock() + seconds
    read_until = until - seconds * ABORT_SHARE
    try:
        latest = yield from _is_latest(run, request, clock, read_until)
    except PlatformError:
        if run.in_existing_thread:
            raise
        latest = True
    if not latest:
        return False
    left = max(LEAST_SECONDS, until - clock())
    yield from abort(run.chat_id, request.session_settings, timeout=left)
    return True


def _is_latest(run: ChatRun, request: ChatRequest, clock: Clock, until: float) -> Program[bool]:
    """Whether the thread's latest user record is this run's message; a read that breaks before
    that is told is repeated until then."""
    reloaded = False
    while True:
        failure: PlatformError | None = None
        reader = ChatRun(
            message_id=run.message_id,
            digest=run.digest,
            chat_id=run.chat_id,
            in_existing_thread=run.in_existing_thread,
        )
        try:
            latest = yield from _read_latest(reader, request, clock, until)
        except PlatformError as error:
            if is_busy(error):
                return False
            refused = isinstance(error, ChatRpcError | PlatformAuthenticationError)
            if refused and not reloaded and (yield ReloadCredentials()):
                reloaded = True
                continue
            if not is_transient(error):
                raise
            failure, latest = error, None
        if latest is not None:
            return latest
        if clock() + BETWEEN_READS >= until:
            raise PlatformTransportError(
                f"{run}: the thread could not be read, so it is not known whose run it streams. "
                "Nothing was stopped."
            ) from failure
        yield Sleep(BETWEEN_READS)


def _read_latest(
    reader: ChatRun, request: ChatRequest, clock: Clock, until: float
) -> Program[bool | None]:
    """What one reading of the thread tells; None where it broke too early to tell."""
    seconds = max(AFTERTHOUGHT, until - clock())
    yield OpenStream(request.follow(str(reader.chat_id)), timeout=seconds, repeatable=True)
    reader.connect(submits=False)
    broken = False
    try:
        while not reader.connection.ended and not reader.passed_by:
            wait = until - clock()
            data: bytes | None = (yield ReadStream(wait)) if wait > 0 else None
            if not data:
                broken = data is not None or not reader.connection.history_received
                break
            reader.feed(data, clock())
            if reader.connection.history_received:
                until = min(until, clock() + AFTERTHOUGHT)
    except PlatformTransportError:
        broken = True
    verdict = reader.disconnect(clean=False)
    yield CloseStream()
    if verdict is Verdict.REFUSED:
        raise rpc_error(str(reader), reader.connection.error)
    if verdict is Verdict.BUSY:
        return False
    return None if broken else reader.is_latest


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
            return (yield from _ask_state(chat_id, body, clock, timeout))
        except (ChatRpcError, PlatformAuthenticationError):
            if attempt or not (yield ReloadCredentials()):
                raise
        except PlatformApiError as error:
            if is_busy(error):
                return True
            raise
    raise AssertionError("the second attempt returns or raises")


def _ask_state(chat_id: str, body: dict[str, Any], clock: Clock, timeout: float) -> Program[bool]:
    record, _ = yield from first_record(
        body, lambda one: state_told(chat_id, one) is not None, clock, seconds=timeout
    )
    streaming = None if record is None else state_told(chat_id, record)
    if streaming is None:
        raise PlatformTransportError(
            f"chat {chat_id}: the answer ended before it said whether the thread is streaming."
        )
    return streaming


def first_record(
    body: dict[str, Any], wanted: Callable[[Any], bool], clock: Clock, *, seconds: float
) -> Program[tuple[Any, bool]]:
    """Send a request without `input` and read its records until one is wanted: that one, or None;
    and whether the response came to its clean end."""
    until = clock() + seconds
    yield OpenStream(body, timeout=seconds, repeatable=True)
    reader = LineReader()
    parser = ChatLineParser(STREAM)
    first = True
    while True:
        wait = until - clock()
        data: bytes | None = (yield ReadStream(wait)) if wait > 0 else None
        records = (
            (parser.read(line, number, first=first) for line, number in reader.feed(data))
            if data
            else (parser.read_rest(reader.rest(), reader.lines_seen + 1, first=first),)
        )
        for record in records:
            first = False
            if wanted(record):
                yield CloseStream()
                return record, False
        if not data:
            yield CloseStream()
            return None, data is not None


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
    streaming = state.get("isStreaming") if isinstance(state, dict) else None
    if isinstance(streaming, bool):
        return streaming
    return False if record["id"] == "__state__" else None


def _error_told(chat_id: str, record: dict[str, Any]) -> bool:
    error = record["error"]
    if says_busy(error):
        return True
    refused = is_rpc_error(record)
    failure: PlatformError = (
        rpc_error(f"chat {chat_id}", error)
        if refused
        else ChatStreamError(f"chat {chat_id}: the service said: {quote_service(error)}.")
    )
    raise failure
