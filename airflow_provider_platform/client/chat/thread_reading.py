"""Reading a thread: its turns as the service replays them, and whether it is streaming.

Reading asks nothing. The request names the thread and carries neither `input` nor a message id, so
it can neither start a run nor join one. The service answers with the history, the mark
(`__cutoff__`) and the state:

    user record, assistant records ...   a turn; the next user record begins the next one
    __cutoff__                           says whether the thread is streaming
    __state__                            the conversation once more, as serialized messages

A service that replays no history still has the messages of `__state__`: the turns are read from
them, with the queries as far as their tool messages hold them. A final record that says that it is
in process is an answer only if those messages complete it, as in a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_platform.client.chat.lines import ChatLineParser, is_error
from airflow_provider_platform.client.chat.records import MAX_TEXT, RecordFold, is_assistant
from airflow_provider_platform.client.chat.request import (
    ChatRequest,
    check_max_rows,
    is_busy,
)
from airflow_provider_platform.client.chat.result import without_details
from airflow_provider_platform.client.chat.state_messages import (
    ThreadMessages,
    last_words,
    read_messages,
)
from airflow_provider_platform.client.chat.thread import state_told
from airflow_provider_platform.client.chat.tool_calls import Query, Search
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.formats.json_text import storable, whole_characters
from airflow_provider_platform.client.formats.ndjson import LineReader
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.retry import is_transient, pause_after
from airflow_provider_platform.client.operations.program import (
    Clock,
    CloseStream,
    OpenStream,
    Program,
    ReadStream,
    ReloadCredentials,
    Sleep,
)
from airflow_provider_platform.client.settings.session_settings import SessionSettings

LIVE_SECONDS = 1.0
"""How long records of a streaming thread are waited for after its mark: they go on for ever."""
USAGE_SECONDS = 0.5
"""The same for the usage, after the state."""


@dataclass
class ThreadTurn:
    """One question of a thread and what came of it.

    `answer` is None while the turn is streaming, and where the thread holds no final answer.
    `usage` is None unless the service says it of this turn. Details: `searches` in the data model
    and what the agent thought (`thinking`), as far as the thread keeps them.
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
        `searches` and `thinking`, and `user_request` and `sent_rows` of each query."""
        plain: dict[str, Any] = storable(without_details(asdict(self), details=details))
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
    """A turn as its records tell it."""

    message_id: str
    prompt: str
    fold: RecordFold
    usage: dict[str, Any] | None = None


class ThreadReader:
    """What the answer to one reading has told so far; fed with bytes, no I/O."""

    def __init__(self, chat_id: str, *, max_rows: int) -> None:
        self.chat_id = chat_id
        self.streaming: bool | None = None
        self.ended = False
        """Whether the state has come: nothing but the usage follows."""
        self.usage_seen = False
        self._max_rows = max_rows
        self._turns: list[_RecordedTurn] = []
        self._messages: ThreadMessages | None = None
        self._lines = LineReader()
        self._parser = ChatLineParser(f"chat {quote_service(chat_id)}")
        self._first = True
        self._cost = 0

    def feed(self, data: bytes) -> None:
        """Take a piece of the answer. Raises the error that an error object amounts to, and
        PlatformProtocolError, PlatformAddressError."""
        for line, number in self._lines.feed(data):
            self._take(self._parser.read(line, number, first=self._first))
            self._first = False
        if self._turns:
            self._turns[-1].fold.count_bytes(len(data))

    def finish(self) -> None:
        """The answer is over; what came last without its line end counts if it is whole."""
        rest, number = self._lines.rest(), self._lines.lines_seen + 1
        self._take(self._parser.read_rest(rest, number, first=self._first))

    @property
    def told(self) -> bool:
        """Whether the answer has said what the thread holds, as far as it is over."""
        return self.ended or self.streaming is True

    def thread(self) -> ChatThread:
        """The thread by what was told."""
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
            said = next((one for one in by_messages if _is_same(one, turn)), None)
            begun = "" if final is None else final.content
            if said is not None and said.answer and said.answer.startswith(begun):
                answer = said.answer
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
        streaming = state_told(self.chat_id, record)  # raises for an error object
        record_id, role = record.get("id"), record.get("role")
        if is_error(record) or record_id == "__cutoff__":  # the words of a busy thread
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
        """A user record begins a turn; one that comes again begins it again."""
        message_id = str(record.get("id") or "")
        self._cost += self._turns[-1].fold.cost if self._turns else 0
        if self._cost > MAX_TEXT:
            raise PlatformProtocolError(
                f"chat {quote_service(self.chat_id)}: the thread holds more than "
                f"{MAX_TEXT // 2**20} MB of text; it was not read on."
            )
        content = record.get("content")
        prompt = str(whole_characters(content)) if isinstance(content, str) else ""
        turn = _RecordedTurn(message_id, prompt, RecordFold(self._max_rows, details=True))
        if message_id and self._turns and self._turns[-1].message_id == message_id:
            self._turns.pop()
        self._turns.append(turn)

    def _take_usage(self, record: dict[str, Any]) -> None:
        usage = record.get("usage")
        if isinstance(usage, dict) and self._turns:
            self._turns[-1].usage = usage
        self.usage_seen = self.ended


def _is_same(by_messages: ThreadTurn, turn: _RecordedTurn) -> bool:
    if by_messages.message_id:
        return by_messages.message_id == turn.message_id
    return by_messages.prompt.strip() == turn.prompt.strip()


def _turns_of(told: ThreadMessages | None, max_rows: int) -> Iterable[ThreadTurn]:
    """The turns that the messages of a state hold."""
    for turn in told.turns() if told is not None else ():
        fold = RecordFold(max_rows, details=True).of_messages(turn)
        yield ThreadTurn(
            turn.question.id,
            str(whole_characters(turn.question.text)),
            last_words(turn.replies) or None,
            fold.queries(),
            searches=fold.searches(),
        )


def read_thread(
    chat_id: str | None,
    settings: SessionSettings | None,
    clock: Clock,
    *,
    seconds: float,
    max_rows: int,
    max_attempts: int,
) -> Program[ChatThread]:
    """Read a thread, within so many seconds; an answer that breaks off is asked for again.

    Raises PlatformInputError for a bad `chat_id` or `max_rows`, PlatformNotFoundError for an
    unknown thread, PlatformPermissionError for one of another user, ChatRpcError for a refused
    credential, ChatStreamError for another error of the service, PlatformTransportError where the
    thread could not be read in that time.
    """
    check_max_rows(max_rows)
    if not (isinstance(chat_id, str) and chat_id.strip()):
        raise PlatformInputError(
            f"Nothing was sent: chat_id must be the id of a thread, got {chat_id!r}. A chat's "
            "result has it as chat_id.",
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
            yield from _read(reader, body, clock, until)
        except (ChatRpcError, PlatformAuthenticationError):
            if reloaded or not (yield ReloadCredentials()):
                raise
            reloaded = True
            continue
        except PlatformError as error:
            if is_busy(error):
                return ChatThread(chat_id, streaming=True)
            if not is_transient(error):
                raise
            failure = error
        if failure is None and reader.told:
            return reader.thread()
        pause = pause_after(failure, attempt)
        if attempt >= max_attempts or clock() + pause >= until:
            raise failure or _unread(chat_id)
        yield Sleep(pause)


def _read(reader: ThreadReader, body: dict[str, Any], clock: Clock, until: float) -> Program[None]:
    """One reading, to the end of what it is worth waiting for."""
    yield OpenStream(body, timeout=max(until - clock(), LIVE_SECONDS), repeatable=True)
    is_live = has_ended = clean = False
    while not reader.usage_seen:
        wait = until - clock()
        data: bytes | None = (yield ReadStream(wait)) if wait > 0 else None
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
    yield CloseStream(complete=clean or reader.usage_seen)


def _unread(chat_id: str) -> PlatformTransportError:
    return PlatformTransportError(
        f"chat {quote_service(chat_id)}: the answer ended before it said what the thread holds. "
        "Read it again."
    )
