"""Stopping a chat run: aborts know threads only, so a shared thread is read first.

In a thread that the run made itself, aborting the thread aborts the run. In a thread that was
given, another turn may be streaming by now: it is stopped only if its latest user record is ours.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.chat import ChatRequest
from airflow_provider_platform.client.chat_run import ChatRun
from airflow_provider_platform.client.errors import PlatformTransportError
from airflow_provider_platform.client.program import (
    Clock,
    CloseStream,
    OpenStream,
    Program,
    ReadStream,
    SendChat,
)
from airflow_provider_platform.client.session_settings import SessionSettings


def abort(chat_id: str, settings: SessionSettings | None) -> Program[None]:
    """Stop whatever streams in the thread. Returns when the service confirmed it (204).

    Raises PlatformNotFoundError for an unknown thread, PlatformPermissionError for one of another
    owner, ChatRpcError for a refused credential.
    """
    body: dict[str, Any] = {"chatId": chat_id}
    if settings is not None:
        body["sessionSettings"] = settings.identity
    yield SendChat("/abort", body)


def stop_run(run: ChatRun, request: ChatRequest, clock: Clock, *, seconds: float) -> Program[bool]:
    """Stop this run and no other, within about so many seconds for each of two requests.

    Returns False where the thread was given and its latest message is not ours, so that nothing
    was stopped. Raises what `abort` raises.
    """
    if run.chat_id is None:
        return False
    if run.thread_given and not (yield from _is_latest(run, request, clock, seconds)):
        return False
    yield from abort(run.chat_id, request.session_settings)
    return True


def _is_latest(run: ChatRun, request: ChatRequest, clock: Clock, seconds: float) -> Program[bool]:
    """Whether the thread's latest user record is this run's message."""
    reader = ChatRun(
        message_id=run.message_id, digest=run.digest, chat_id=run.chat_id, thread_given=True
    )
    until = clock() + seconds
    yield OpenStream(request.follow(str(run.chat_id)), timeout=seconds)
    reader.connect(submits=False)
    try:
        while not reader.told_end and not reader.told_latest:
            wait = until - clock()
            data: bytes | None = (yield ReadStream(wait)) if wait > 0 else None
            if not data:
                break
            reader.feed(data, clock())
    except PlatformTransportError:
        pass  # what was read until then decides
    yield CloseStream()
    reader.disconnect(clean=False)
    return reader.is_latest
