"""The response to one chat request: which records of the thread, in which order, until when."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

from airflow_provider_platform.sandbox.chat import runs as chat_runs
from airflow_provider_platform.sandbox.chat.agent import (
    Record,
    aborted_record,
)
from airflow_provider_platform.sandbox.chat.requests import StreamRequest, new_message_id
from airflow_provider_platform.sandbox.chat.threads import (
    Run,
    Subscription,
    Thread,
    Threads,
    fold,
)
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.state.journal import MessageEntry, SubscriptionEntry
from airflow_provider_platform.sandbox.state.server_state import ServerState

BUSY = "Streaming for thread is in progress"
_OVERLAP = 3
"""Records that are repeated after ``__cutoff__`` with ``replay`` set to ``overlap``."""


class ChatStream:
    """The records of one response. Its creator must ``close`` it."""

    def __init__(
        self,
        head: Sequence[Record | bytes],
        *,
        subscription: Subscription | None = None,
        tail: list[Record] | None = None,
        opens: bool = False,
    ) -> None:
        self._head = head
        self._subscription = subscription
        self._tail = tail or []
        self._opens = opens

    async def records(self) -> AsyncIterator[Record | bytes]:
        """Yield the records; bytes are sent unchanged."""
        for record in self._head:
            yield record
        self._open()
        if self._subscription is not None:
            async for record in _follow(self._subscription):
                yield record
        for record in self._tail:
            yield record

    def close(self) -> None:
        self._open()
        if self._subscription is not None:
            self._subscription.run.unsubscribe(self._subscription)

    def _open(self) -> None:
        if self._opens and self._subscription is not None:
            self._subscription.run.opened.set()


async def _follow(subscription: Subscription) -> AsyncIterator[Record]:
    run, suspended = subscription.run, False
    while True:
        while subscription.sent < len(run.log):
            record = run.log[subscription.sent]
            yield record
            subscription.sent += 1
            suspended = suspended or record.get("id") == "__suspended__"
            if suspended and not _usage_follows(run, subscription.sent):
                run.served()
                return
        run.served()
        if not run.active:
            return
        await run.changed()


def _usage_follows(run: Run, place: int) -> bool:
    return place < len(run.log) and run.log[place].get("id") == "__usage__"


def open_stream(server: ServerState, request: StreamRequest) -> ChatStream:
    """Apply the request to the thread and return the response. Raises ``ApiError``."""
    threads = server.store(Threads)
    if request.chat_id is None:
        thread = threads.create(request.identity, request.agent)
    else:
        found = threads.of_agent(request.chat_id, request.agent)
        if found is None or found.owner != request.identity:
            raise ApiError(404, f"Chat thread {request.chat_id} not found")
        thread = found
    if request.input is None:
        return _look(server, thread, request.message_id)
    return _submit(server, thread, request)


def _submit(server: ServerState, thread: Thread, request: StreamRequest) -> ChatStream:
    text = request.input or ""
    message_id = request.message_id or new_message_id()
    current = thread.current
    if current is None or current.message_id != message_id:
        outcome = "busy" if thread.streaming else "started"
    elif current.active:
        outcome = "resubscribed"
    else:
        outcome = "resumed" if _resumable(server, current) else "started"
    server.journal.state.messages.append(
        MessageEntry(
            time.time(),
            thread.chat_id,
            message_id,
            text,
            thread.owner,
            outcome,
            request.session_settings,
        )
    )
    server.journal.changed()
    if current is not None and outcome == "resubscribed":
        return _join(server, thread, current, "input")
    if current is not None and outcome == "resumed":
        return _resume(server, thread, current)
    if outcome == "busy":
        return ChatStream([thread.cutoff(True), {"error": BUSY}])
    if current is not None:
        chat_runs.give_up(server, current)
    history = _history(server, thread.runs)
    run = chat_runs.start(
        server,
        thread,
        message_id=message_id,
        text=text,
        branch=request.branch,
        is_default_branch=request.is_default_branch,
    )
    _note(server, run, "submit")
    head = [*history, thread.cutoff(False)]
    return ChatStream(head, subscription=run.subscribe(0), opens=True)


def _look(server: ServerState, thread: Thread, message_id: str | None) -> ChatStream:
    """Answer a request without input. It never starts a run."""
    current = thread.current
    mine = current is not None and current.message_id == message_id
    if current is not None and mine and server.settings.follow_up == "subscribe":
        if current.active:
            return _join(server, thread, current, "follow_up")
        if current.resume_on == "follow_up" and _resumable(server, current):
            return _resume(server, thread, current)
    head = [*_history(server, thread.runs), thread.cutoff(thread.streaming)]
    if current is not None and mine and _resumable(server, current):
        return ChatStream(head, tail=[{"id": "__suspended__", "role": "assistant"}])
    return ChatStream(head, tail=_end(server, thread))


def _end(server: ServerState, thread: Thread) -> list[Record]:
    """Return the last records of the response to a read of a thread."""
    stopped = bool(thread.runs) and thread.runs[-1].status == "aborted"
    if not stopped or server.settings.stopped_thread == "state":
        return [thread.state()]
    return [aborted_record()] if server.settings.stopped_thread == "aborted" else []


def _resumable(server: ServerState, run: Run) -> bool:
    return run.status == "suspended" and server.clock.now() < run.resume_until


def _resume(server: ServerState, thread: Thread, run: Run) -> ChatStream:
    run.become("streaming")
    run.resumed.set()
    server.journal.changed()
    return _join(server, thread, run, "resume")


def _join(server: ServerState, thread: Thread, run: Run, reason: str) -> ChatStream:
    """Follow an active run. The settings say where its earlier records come."""
    _note(server, run, reason)
    settings = server.settings
    earlier = _history(server, thread.runs[:-1])
    seen = run.replayable()
    own = fold(seen)
    cutoff = thread.cutoff(True)
    placed = {
        "before_cutoff": [*earlier, *own, cutoff],
        "after_cutoff": [*earlier, cutoff, *own],
        "overlap": [*earlier, cutoff, *seen[1:][-_OVERLAP:]],
        "none": [*earlier, cutoff],
    }
    return ChatStream(placed[settings.replay], subscription=run.subscribe(len(run.log)))


def _history(server: ServerState, runs: list[Run]) -> list[Record]:
    if server.settings.replay == "none":
        return []
    return [record for run in runs for record in fold(run.replayable())]


def _note(server: ServerState, run: Run, reason: str) -> None:
    entry = SubscriptionEntry(time.time(), run.thread.chat_id, run.message_id, reason)
    server.journal.state.subscriptions.append(entry)
    server.journal.changed()
