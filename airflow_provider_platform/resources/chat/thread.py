"""A thread as a whole: whether it is streaming, its turns, how it is read again and aborted.

Nothing here asks a question. A request names the thread and carries no `input`, so it cannot start
a run. The service answers with the history, the cutoff record and the state; `TurnReader` reads
that as turns. If a service replays no history, the turns are read from the messages of `__state__`,
without their queries (`truncated`). A final record that is not complete is an answer only if those
messages complete it, as in a run (see `run_state`).

A reading takes seconds and is repeated as every other call is (`client.repeats`). `ChatCall` waits
for a run.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from tenacity import AsyncRetrying

from airflow_provider_platform.client.config import SessionSettings
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    ChatStreamError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import CHAT_STREAM, rpc_error
from airflow_provider_platform.client.json_text import db_safe, replace_surrogates
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.repeats import tenacity_policy
from airflow_provider_platform.resources.chat import record_fold
from airflow_provider_platform.resources.chat.record_fold import RecordFold, Records
from airflow_provider_platform.resources.chat.record_reader import (
    RecordReader,
    is_busy,
    is_error,
    is_rpc_error,
    says_busy,
)
from airflow_provider_platform.resources.chat.request import ChatRequest, check_max_rows
from airflow_provider_platform.resources.chat.result import as_plain, without_details
from airflow_provider_platform.resources.chat.tool_calls import Query, Search
from airflow_provider_platform.resources.chat.turns import End, Turn, TurnReader

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

T = TypeVar("T")

LIVE_SECONDS = 1.0
"""Seconds that the records of a streaming thread are read after its cutoff record: they may never
end."""
USAGE_SECONDS = 0.5
"""Seconds that the usage is waited for, after the state."""


# Requests about a thread that do not read its turns.


async def abort(
    api: Api,
    chat_id: str,
    settings: SessionSettings | None,
    *,
    timeout: float | None = None,
    agent_id: int | str | None = None,
) -> None:
    """Stop the run that streams in the thread. Returns when the service has confirmed it (204).
    Raises PlatformNotFoundError for an unknown thread, PlatformPermissionError for a thread of
    another owner, ChatRpcError for a refused credential.
    """
    body: dict[str, Any] = {"chatId": chat_id}
    if settings is not None:
        body["sessionSettings"] = settings.identity
    await with_new_credential(
        api, lambda: api.send_chat("/abort", body, timeout=timeout, agent_id=agent_id)
    )


async def thread_is_streaming(
    api: Api,
    chat_id: str,
    settings: SessionSettings | None,
    *,
    timeout: float,
    agent_id: int | str | None = None,
) -> bool:
    """Return whether a thread is streaming. Starts nothing; takes at most `timeout` seconds.

    Raises PlatformNotFoundError for an unknown thread, ChatRpcError for a refused credential,
    PlatformTransportError if the answer ended before it said so.
    """
    body = ChatRequest.build(chat_id=chat_id, session_settings=settings).to_json()
    try:
        return await with_new_credential(
            api, lambda: _ask_state(api, chat_id, body, timeout, agent_id)
        )
    except PlatformApiError as error:
        if is_busy(error):
            return True
        raise


async def with_new_credential(api: Api, request: Callable[[], Awaitable[T]]) -> T:
    """Return the answer to a request, which is sent again if a new credential replaces a refused
    one."""
    try:
        return await request()
    except (ChatRpcError, PlatformAuthenticationError):
        if not await api.reload_credentials():
            raise
        return await request()


async def _ask_state(
    api: Api,
    chat_id: str,
    body: dict[str, Any],
    timeout: float,
    agent_id: int | str | None,
) -> bool:
    record, _ = await first_record(
        api,
        body,
        lambda record: read_streaming(chat_id, record) is not None,
        seconds=timeout,
        agent_id=agent_id,
    )
    streaming = None if record is None else read_streaming(chat_id, record)
    if streaming is None:
        raise PlatformTransportError(
            "The service's response was cut off, so it is unknown whether the thread is still "
            "answering. A retry asks again.",
            where=f"chat {chat_id}",
        )
    return streaming


async def first_record(
    api: Api,
    body: dict[str, Any],
    wanted: Callable[[Any], bool],
    *,
    seconds: float,
    agent_id: int | str | None = None,
) -> tuple[Any, bool]:
    """Send a request without `input` and read its records. Return (the first wanted record or None,
    whether the response came to its clean end)."""
    reader = RecordReader(CHAT_STREAM.where)
    found: list[Any] = []
    until = api.clock() + seconds

    def feed(data: bytes) -> float | None:
        found.extend(filter(wanted, reader.feed(data)))
        return None if found else until

    clean = await read_answer(api, body, feed, seconds=seconds, agent_id=agent_id)
    if not found and wanted(rest := reader.rest()):
        found.append(rest)
    return (found[0], False) if found else (None, clean)


async def read_answer(
    api: Api,
    body: dict[str, Any],
    feed: Callable[[bytes], float | None],
    *,
    seconds: float,
    agent_id: int | str | None = None,
) -> bool:
    """Send a request without `input`, and feed the pieces of its answer. `feed` returns until when
    (Unix time) more is worth reading, None if nothing is. Return whether the answer came to its
    clean end."""
    until: float | None = api.clock() + seconds
    await api.open_stream(body, timeout=seconds, repeatable=True, agent_id=agent_id)
    data: bytes | None = b""
    while until is not None:
        wait = until - api.clock()
        data = await api.read_stream(wait) if wait > 0 else None
        if not data:
            break
        until = feed(data)
    await api.close_stream(complete=data == b"")
    return data == b""


async def repeat_until(
    api: Api, request: Callable[[], Awaitable[T]], *, deadline: float, repeatable: bool = True
) -> T:
    """Return the answer to a request. One that fails for a moment is repeated until the deadline
    (Unix time), and one that a new credential may help is repeated once. If it is not `repeatable`,
    it is repeated only if the service certainly did not process it. Raises the last error."""
    policy = tenacity_policy(
        repeatable=repeatable, max_attempts=sys.maxsize, deadline=deadline, clock=api.clock
    )
    return await AsyncRetrying(**policy, sleep=api.sleep)(with_new_credential, api, request)


def read_streaming(chat_id: str, record: Any) -> bool | None:
    """Return whether the thread is streaming, by one record of it; None if the record does not say.

    Records before `__cutoff__` are history and do not show it. Raises the error of an error object.
    """
    if not isinstance(record, dict):
        return None
    if is_error(record):
        end = End.RPC_ERROR if is_rpc_error(record) else End.ERROR
        return _read_error(chat_id, end, record["error"])
    if record.get("id") not in ("__cutoff__", "__state__"):
        return None
    state = record.get("state")
    streaming = state.get("isStreaming") if isinstance(state, dict) else None
    if isinstance(streaming, bool):
        return streaming
    return False if record["id"] == "__state__" else None


def _read_error(chat_id: str, end: End, error: Any) -> bool:
    """Return True for the refusal of a busy thread; raise any other error."""
    if says_busy(error):
        return True
    if end is End.RPC_ERROR:
        raise rpc_error(error, f"chat {chat_id}")
    raise ChatStreamError(
        f"The thread could not be read: {quote_service(error).removesuffix('.')}. A retry may "
        "succeed.",
        where=f"chat {chat_id}",
    )


# The content of a thread.


@dataclass
class ThreadTurn:
    """One question of a thread and its answer.

    `answer` is None while the turn is streaming, and if the thread holds no final answer. `usage`
    is None unless the service reports it for this turn. `truncated` says that its queries are not
    known. Details: `searches` of the data model and what the agent thought (`thinking`), as far as
    the thread keeps them.
    """

    message_id: str
    prompt: str
    answer: str | None = None
    queries: list[Query] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    searches: list[Search] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    truncated: bool = False

    def to_json(self, *, details: bool = False) -> dict[str, Any]:
        """Plain JSON: `{"message_id", "prompt", "answer", "queries", "usage"}`, and `truncated` if
        that is True; with `details` also `searches` and `thinking`, and `user_request`, `sent_rows`
        and `memory_id` of each query."""
        plain: dict[str, Any] = db_safe(without_details(as_plain(self), details=details))
        return plain


@dataclass
class ChatThread:
    """A thread as the service shows it: whether it is streaming, and its turns, oldest first."""

    chat_id: str
    streaming: bool
    turns: list[ThreadTurn] = field(default_factory=list)

    def to_json(self, *, details: bool = False) -> dict[str, Any]:
        """Plain JSON: `{"chat_id", "streaming", "turns": [...]}` (see `ThreadTurn.to_json`)."""
        turns = [turn.to_json(details=details) for turn in self.turns]
        return {"chat_id": self.chat_id, "streaming": self.streaming, "turns": turns}


class ThreadReader(TurnReader):
    """Parses the response to one read of a thread: every turn is kept."""

    def __init__(self, chat_id: str, *, max_rows: int) -> None:
        super().__init__(f"chat {quote_service(chat_id)}")
        self.chat_id: str = chat_id
        self._max_rows = max_rows
        self._turns: list[Turn] = []
        self._cost = 0

    def begin(self, record: dict[str, Any]) -> Turn:
        """Begin a turn with a user record. If the record comes again, the turn begins again."""
        message_id = str(record.get("id") or "")
        content = record.get("content")
        prompt = str(replace_surrogates(content)) if isinstance(content, str) else ""
        self._cost += self._turns[-1].fold.cost if self._turns else 0
        self._cost += record_fold.RECORD_COST + len(message_id) + len(prompt)
        if self._cost > record_fold.MAX_TEXT:
            raise PlatformProtocolError(
                f"The thread contains more than {record_fold.MAX_TEXT // 2**20} MB of text, so the "
                "task stopped reading.",
                where=f"chat {quote_service(self.chat_id)}",
            )
        if message_id and self._turns and self._turns[-1].message_id == message_id:
            self._turns.pop()
        self._turns.append(Turn(message_id, prompt, RecordFold(self._max_rows, details=True)))
        if self.end is End.ABORTED:  # only of the turn before
            self.end = None
        return self._turns[-1]

    @property
    def is_live(self) -> bool:
        """Whether the thread is streaming, so that its records may never end."""
        busy = self.end is End.ERROR and says_busy(self.error)
        shown = self.streaming if self.streaming is not None else self.streaming_at_end
        return busy or shown is True

    @property
    def has_all(self) -> bool:
        """Whether the response has shown all turns that are over."""
        return self.ended or self.is_live

    def check(self) -> None:
        """Raise the error that the response ended with, if it is none of a busy thread."""
        if self.end in (End.ERROR, End.RPC_ERROR):
            _read_error(self.chat_id, self.end, self.error)

    def thread(self) -> ChatThread:
        """Return the thread as far as the response shows it."""
        by_messages = [
            ThreadTurn(
                question.id, str(replace_surrogates(question.text)), answer or None, truncated=True
            )
            for question, answer in (self.messages.turns() if self.messages is not None else ())
        ]
        shown = [self._turn(turn, by_messages) for turn in self._turns] or by_messages
        if self.is_live and shown and not self._turns:
            shown[-1].answer = None  # the messages do not say whether the turn is over
        return ChatThread(self.chat_id, self.is_live, shown)

    def _turn(self, turn: Turn, by_messages: list[ThreadTurn]) -> ThreadTurn:
        records = Records(turn.fold.records.values())
        final = records.final_answer()
        answer = None if final is None or not final.is_complete else final.content
        if answer is None and not (self.is_live and turn is self._turns[-1]):
            same = next((other for other in by_messages if _is_same(other, turn)), None)
            begun = "" if final is None else final.content
            if same is not None and same.answer and same.answer.startswith(begun):
                answer = same.answer
        return ThreadTurn(
            turn.message_id,
            turn.prompt,
            answer,
            records.queries(),
            turn.usage,
            records.searches(),
            records.thoughts(),
        )


def _is_same(by_messages: ThreadTurn, turn: Turn) -> bool:
    if by_messages.message_id:
        return by_messages.message_id == turn.message_id
    return by_messages.prompt.strip() == turn.prompt.strip()


async def read_thread(
    api: Api,
    chat_id: str | None,
    settings: SessionSettings | None,
    *,
    seconds: float,
    max_rows: int,
    agent_id: int | str | None = None,
) -> ChatThread:
    """Read a thread, within so many seconds. An answer that breaks off is requested again.

    Raises PlatformInputError for a bad `chat_id` or `max_rows`, PlatformNotFoundError for an
    unknown thread, PlatformPermissionError for one of another user, ChatRpcError for a refused
    credential, ChatStreamError for another error of the service, PlatformTransportError if the
    thread could not be read in that time.
    """
    check_max_rows(max_rows)
    if not (isinstance(chat_id, str) and chat_id.strip()):
        raise PlatformInputError(
            f"Nothing was sent: chat_id must be the id of a thread, got {chat_id!r}. Use "
            "the chat_id in the result of an earlier chat.",
            field="chat_id",
        )
    thread_id: str = chat_id
    body = ChatRequest.build(chat_id=chat_id, session_settings=settings).to_json()
    deadline = api.clock() + seconds

    async def read() -> ChatThread:
        reader = ThreadReader(thread_id, max_rows=max_rows)
        try:
            await _read(api, reader, body, deadline, agent_id)
        except PlatformError as error:
            if is_busy(error):
                return ChatThread(thread_id, streaming=True)
            raise
        reader.check()
        if not reader.has_all:
            raise _unread(thread_id)
        return reader.thread()

    return await repeat_until(api, read, deadline=deadline)


async def _read(
    api: Api,
    reader: ThreadReader,
    body: dict[str, Any],
    deadline: float,
    agent_id: int | str | None,
) -> None:
    """Read the thread once, as long as a useful record may follow."""
    until = deadline

    def feed(data: bytes) -> float | None:
        nonlocal until
        reader.feed(data)
        if reader.ended:
            until = min(until, api.clock() + USAGE_SECONDS)
        elif reader.is_live:
            until = min(until, api.clock() + LIVE_SECONDS)
        return None if reader.complete else until

    seconds = max(deadline - api.clock(), LIVE_SECONDS)
    await read_answer(api, body, feed, seconds=seconds, agent_id=agent_id)
    reader.finish()


def _unread(chat_id: str) -> PlatformTransportError:
    return PlatformTransportError(
        "The response ended before the thread was complete. Read the thread again.",
        where=f"chat {quote_service(chat_id)}",
    )
