"""A thread as a whole: whether it is streaming, its turns, and how it is aborted.

Nothing here asks a question. A request names the thread and carries neither `input` nor a message
id, so it can neither start a run nor join one. The service answers with the history, the cutoff
record and the state:

    user record, assistant records ...   a turn; the next user record begins the next one
    __cutoff__                           says whether the thread is streaming
    __state__                            repeats the conversation as messages

If a service replays no history, the turns are read from the messages of `__state__`, with the
queries as far as their tool messages hold them. A final record that is still in process is an
answer only if those messages complete it, as in a run (see `chat_run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
from airflow_provider_platform.client.failed_calls import (
    CHAT_STREAM,
    is_transient,
    pause_after,
    rpc_error,
)
from airflow_provider_platform.client.json_text import db_safe, replace_surrogates
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.chat.request import (
    ChatRequest,
    check_max_rows,
)
from airflow_provider_platform.resources.chat.result import as_plain, without_details
from airflow_provider_platform.resources.chat.tool_calls import Query, Search
from airflow_provider_platform.resources.chat.turns import (
    MAX_TEXT,
    RecordFold,
    RecordReader,
    ThreadMessages,
    is_assistant,
    is_busy,
    is_error,
    is_rpc_error,
    last_answer,
    read_messages,
    says_busy,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api, Clock

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
    try:
        await api.send_chat("/abort", body, timeout=timeout, agent_id=agent_id)
    except (ChatRpcError, PlatformAuthenticationError):
        if not await api.reload_credentials():
            raise
        await api.send_chat("/abort", body, timeout=timeout, agent_id=agent_id)


async def thread_is_streaming(
    api: Api,
    chat_id: str,
    settings: SessionSettings | None,
    clock: Clock,
    *,
    timeout: float,
    agent_id: int | str | None = None,
) -> bool:
    """Return whether a thread is streaming. Starts nothing; takes at most `timeout` seconds.

    Raises PlatformNotFoundError for an unknown thread, ChatRpcError for a refused credential,
    PlatformTransportError if the answer ended before it said so.
    """
    body: dict[str, Any] = {"chatId": chat_id}
    if settings is not None:
        body["sessionSettings"] = settings.to_json()
    for attempt in range(2):
        try:
            return await _ask_state(api, chat_id, body, clock, timeout, agent_id)
        except (ChatRpcError, PlatformAuthenticationError):
            if attempt or not await api.reload_credentials():
                raise
        except PlatformApiError as error:
            if is_busy(error):
                return True
            raise
    raise AssertionError("the second attempt returns or raises")


async def _ask_state(
    api: Api,
    chat_id: str,
    body: dict[str, Any],
    clock: Clock,
    timeout: float,
    agent_id: int | str | None,
) -> bool:
    record, _ = await first_record(
        api,
        body,
        lambda record: read_streaming(chat_id, record) is not None,
        clock,
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
    clock: Clock,
    *,
    seconds: float,
    agent_id: int | str | None = None,
) -> tuple[Any, bool]:
    """Send a request without `input` and read its records. Return (the first wanted record or None,
    whether the response came to its clean end)."""
    until = clock() + seconds
    await api.open_stream(body, timeout=seconds, repeatable=True, agent_id=agent_id)
    reader = RecordReader(CHAT_STREAM.where)
    while True:
        wait = until - clock()
        data: bytes | None = await api.read_stream(wait) if wait > 0 else None
        for record in reader.feed(data) if data else (reader.rest(),):
            if wanted(record):
                await api.close_stream()
                return record, False
        if not data:
            await api.close_stream()
            return None, data is not None


def read_streaming(chat_id: str, record: Any) -> bool | None:
    """Return whether the thread is streaming, by one record of it; None if the record does not say.

    Records before `__cutoff__` are history and do not show it. Raises the error of an error object.
    """
    if not isinstance(record, dict):
        return None
    if is_error(record):
        return _read_error(chat_id, record)
    if record.get("id") not in ("__cutoff__", "__state__"):
        return None
    state = record.get("state")
    streaming = state.get("isStreaming") if isinstance(state, dict) else None
    if isinstance(streaming, bool):
        return streaming
    return False if record["id"] == "__state__" else None


def _read_error(chat_id: str, record: dict[str, Any]) -> bool:
    """Return True for the refusal of a busy thread; raise any other error."""
    error = record["error"]
    if says_busy(error):
        return True
    if is_rpc_error(record):
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
    is None unless the service reports it for this turn. Details: `searches` of the data model and
    what the agent thought (`thinking`), as far as the thread keeps them.
    """

    message_id: str
    prompt: str
    answer: str | None = None
    queries: list[Query] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    searches: list[Search] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)

    def to_json(self, *, details: bool = False) -> dict[str, Any]:
        """Plain JSON: `{"message_id", "prompt", "answer", "queries", "usage"}`; with `details` also
        `searches` and `thinking`, and `user_request`, `sent_rows` and `memory_id` of each
        query."""
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


@dataclass
class _RecordedTurn:
    """A turn as its records show it."""

    message_id: str
    prompt: str
    fold: RecordFold
    usage: dict[str, Any] | None = None


class ThreadReader:
    """Parses the response to one read of a thread. It is fed with bytes and does no I/O."""

    def __init__(self, chat_id: str, *, max_rows: int) -> None:
        self.chat_id = chat_id
        self.streaming: bool | None = None
        self.ended = False
        """Whether the state has arrived: only the usage may follow."""
        self.usage_received = False
        self._max_rows = max_rows
        self._turns: list[_RecordedTurn] = []
        self._messages: ThreadMessages | None = None
        self._reader = RecordReader(f"chat {quote_service(chat_id)}")
        self._cost = 0

    def feed(self, data: bytes) -> None:
        """Read some bytes of the response. Raises the error of an error object,
        PlatformProtocolError and PlatformAddressError."""
        for record in self._reader.feed(data):
            self._take(record)
        if self._turns:
            self._turns[-1].fold.count_bytes(len(data))

    def finish(self) -> None:
        """End the response. A last line without its line end counts if it is complete."""
        self._take(self._reader.rest())

    @property
    def complete(self) -> bool:
        """Whether the response has shown all turns that are over."""
        return self.ended or self.streaming is True

    def thread(self) -> ChatThread:
        """Return the thread as far as the response shows it."""
        streaming = self.streaming is True
        by_messages = list(_turns_of(self._messages, self._max_rows))
        turns = [self._turn(turn, by_messages) for turn in self._turns] or by_messages
        if streaming and turns and not self._turns:
            turns[-1].answer = None  # the messages do not say whether the turn is over
        return ChatThread(self.chat_id, streaming, turns)

    def _turn(self, turn: _RecordedTurn, by_messages: list[ThreadTurn]) -> ThreadTurn:
        final = turn.fold.final_answer()
        answer = None if final is None or final.in_process else final.content
        if answer is None and not (self.streaming and turn is self._turns[-1]):
            same = next((other for other in by_messages if _is_same(other, turn)), None)
            begun = "" if final is None else final.content
            if same is not None and same.answer and same.answer.startswith(begun):
                answer = same.answer
        return ThreadTurn(
            turn.message_id,
            turn.prompt,
            answer,
            turn.fold.queries(),
            turn.usage,
            turn.fold.searches(),
            turn.fold.thoughts(),
        )

    def _take(self, record: Any) -> None:
        if not isinstance(record, dict):
            return
        streaming = read_streaming(self.chat_id, record)  # raises for an error object
        record_id, role = record.get("id"), record.get("role")
        if is_error(record) or record_id == "__cutoff__":  # or the refusal of a busy thread
            self.streaming = streaming
        elif record_id == "__state__":
            state = record.get("state")
            self._messages = read_messages(state.get("messages") if isinstance(state, dict) else 0)
            self.streaming = streaming if self.streaming is None else self.streaming
            self.ended = True
        elif record_id == "__usage__":
            self._take_usage(record)
        elif role == "user":
            self._begin(record)
        elif self._turns and is_assistant(record):
            self._turns[-1].fold.add(record, known_up_to=None)

    def _begin(self, record: dict[str, Any]) -> None:
        """Begin a turn with a user record. If the record comes again, the turn begins again."""
        message_id = str(record.get("id") or "")
        self._cost += self._turns[-1].fold.cost if self._turns else 0
        if self._cost > MAX_TEXT:
            raise PlatformProtocolError(
                f"The thread contains more than {MAX_TEXT // 2**20} MB of text, so the task "
                "stopped reading.",
                where=f"chat {quote_service(self.chat_id)}",
            )
        content = record.get("content")
        prompt = str(replace_surrogates(content)) if isinstance(content, str) else ""
        turn = _RecordedTurn(message_id, prompt, RecordFold(self._max_rows, details=True))
        if message_id and self._turns and self._turns[-1].message_id == message_id:
            self._turns.pop()
        self._turns.append(turn)

    def _take_usage(self, record: dict[str, Any]) -> None:
        usage = record.get("usage")
        if isinstance(usage, dict) and self._turns:
            self._turns[-1].usage = usage
        self.usage_received = self.ended


def _is_same(by_messages: ThreadTurn, turn: _RecordedTurn) -> bool:
    if by_messages.message_id:
        return by_messages.message_id == turn.message_id
    return by_messages.prompt.strip() == turn.prompt.strip()


def _turns_of(messages: ThreadMessages | None, max_rows: int) -> Iterable[ThreadTurn]:
    """Yield the turns in the messages of `__state__`."""
    for turn in messages.turns() if messages is not None else ():
        fold = RecordFold(max_rows, details=True).of_messages(turn)
        yield ThreadTurn(
            turn.question.id,
            str(replace_surrogates(turn.question.text)),
            last_answer(turn.replies) or None,
            fold.queries(),
            searches=fold.searches(),
        )


async def read_thread(
    api: Api,
    chat_id: str | None,
    settings: SessionSettings | None,
    clock: Clock,
    *,
    seconds: float,
    max_rows: int,
    max_attempts: int,
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
    body = ChatRequest.build(chat_id=chat_id, session_settings=settings).to_json()
    until = clock() + seconds
    reloaded = False
    attempt = 0
    while True:
        attempt += 1
        failure: PlatformError | None = None
        reader = ThreadReader(chat_id, max_rows=max_rows)
        try:
            await _read(api, reader, body, clock, until, agent_id)
        except (ChatRpcError, PlatformAuthenticationError):
            if reloaded or not await api.reload_credentials():
                raise
            reloaded = True
            continue
        except PlatformError as error:
            if is_busy(error):
                return ChatThread(chat_id, streaming=True)
            if not is_transient(error):
                raise
            failure = error
        if failure is None and reader.complete:
            return reader.thread()
        pause = pause_after(failure, attempt)
        if attempt >= max_attempts or clock() + pause >= until:
            raise failure or _unread(chat_id)
        await api.sleep(pause)


async def _read(
    api: Api,
    reader: ThreadReader,
    body: dict[str, Any],
    clock: Clock,
    until: float,
    agent_id: int | str | None,
) -> None:
    """Read the thread once, as long as a useful record may follow."""
    timeout = max(until - clock(), LIVE_SECONDS)
    await api.open_stream(body, timeout=timeout, repeatable=True, agent_id=agent_id)
    is_live = has_ended = clean = False
    while not reader.usage_received:
        wait = until - clock()
        data: bytes | None = await api.read_stream(wait) if wait > 0 else None
        if not data:
            clean = data is not None
            reader.finish()
            break
        reader.feed(data)
        if reader.ended and not has_ended:
            has_ended = True
            until = min(until, clock() + USAGE_SECONDS)
        elif reader.streaming and not is_live:
            is_live = True
            until = min(until, clock() + LIVE_SECONDS)
    await api.close_stream(complete=clean or reader.usage_received)


def _unread(chat_id: str) -> PlatformTransportError:
    return PlatformTransportError(
        "The response ended before the thread was complete. Read the thread again.",
        where=f"chat {quote_service(chat_id)}",
    )
