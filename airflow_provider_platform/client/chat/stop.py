"""Stopping a chat run: aborts know threads only, so a shared thread is read first.

In a thread that the run made itself, aborting the thread aborts the run. In a thread that was
given, another turn may be streaming by now: it is stopped only if its latest user record is ours.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.chat.request import ChatRequest, is_busy
from airflow_provider_platform.client.chat.run import ChatRun, Verdict
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.client.http.responses import rpc_message
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
from airflow_provider_platform.client.session_settings import SessionSettings

ABORT_SHARE = 1 / 3
"""How much of a stop's time is kept for the abort, whatever the read before takes."""
LEAST_SECONDS = 0.5
AFTERTHOUGHT = 0.5
"""Seconds in which a thread that seems to be ours may still tell of a later message."""
BETWEEN_READS = 0.2


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
    """Stop this run and no other, within so many seconds: a read of the thread, where it was
    given, and the abort.

    Returns False where the thread was given and its latest message is not ours, so that nothing
    was stopped. Raises what `abort` raises, and PlatformTransportError where a given thread could
    not be read: whose run streams there is not known then, and it is left alone.
    """
    if run.chat_id is None:
        return False
    until = clock() + seconds
    read_until = until - seconds * ABORT_SHARE
    if run.thread_given and not (yield from _is_latest(run, request, clock, read_until)):
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
            message_id=run.message_id, digest=run.digest, chat_id=run.chat_id, thread_given=True
        )
        try:
            latest = yield from _read(reader, request, clock, until)
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


def _read(
    reader: ChatRun, request: ChatRequest, clock: Clock, until: float
) -> Program[bool | None]:
    """What one reading of the thread tells; None where it broke too early to tell."""
    seconds = max(AFTERTHOUGHT, until - clock())
    yield OpenStream(request.follow(str(reader.chat_id)), timeout=seconds, repeatable=True)
    reader.connect(submits=False)
    broken = False
    try:
        while not reader.ended and not reader.passed_by:
            wait = until - clock()
            data: bytes | None = (yield ReadStream(wait)) if wait > 0 else None
            if not data:
                broken = data is not None or not reader.history_received
                break
            reader.feed(data, clock())
            if reader.history_received:
                until = min(until, clock() + AFTERTHOUGHT)
    except PlatformTransportError:
        broken = True
    verdict = reader.disconnect(clean=False)
    yield CloseStream()
    if verdict is Verdict.REFUSED:
        raise ChatRpcError(rpc_message(str(reader), reader.failed_with))
    if verdict is Verdict.BUSY:
        return False
    return None if broken else reader.is_latest
