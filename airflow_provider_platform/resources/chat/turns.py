"""What the records of a chat mean: from the bytes of its streams to the events, state and result.

`ChatRun` is the state machine of one message. The bytes of one connection after the other go in
(`connect`, `feed`, `disconnect`). Events come out while a connection lasts, a `Verdict` when it
ends, and the result when the run is over. There is no I/O and no clock here. `program` reads the
verdicts and decides what to send next.

Theory of operation
===================

The service answers every request with a stream of JSON records, one per line:

    earlier turns ...   the history, replayed
    __cutoff__          ends the history; names the thread and says whether it is streaming
    user echo           our message, under the id that we chose
    assistant records   thoughts, tool calls, text
    __state__           the end; it repeats the conversation as messages
    __usage__           the tokens used; sometimes, after the end

Each record changes what is known of the run:

    user record         our message: the fold restarts; another message: our turn is over
    assistant record    in our turn: folded in; a delta appends, a full record replaces
    __cutoff__          the history is complete; without an echo so far, what follows is ours
    __state__           ends the stream; its messages stand in for records that were lost
    __aborted__         ends the stream if our turn was aborted
    __suspended__       our turn pauses until one of its records comes again
    __usage__           is kept with the result, or with the error that ended the run
    error object        ends the stream: an error of the run, or a refused credential (JSON-RPC)
    anything else       is ignored

A follow-up request may replay our turn before the cutoff record, after it, or not at all. Hence:

- A record is the run's if it follows the user record with our message id, up to the next user
  record. If no such echo comes, a record is the run's if it follows the cutoff record.
- Our echo restarts the fold: the run follows from its beginning, so a replay changes nothing. If
  that connection breaks before it has sent as much as was known, the fold from before stays.
- On a connection without an echo, deltas up to the highest sequence number known before it are
  repeats, unless that connection has replaced their record. Within one connection no delta is ever
  dropped.
- Only the service ends a run: by `__state__`, `__aborted__` or an error object. A connection that
  ends without one of these is broken, even if the service closed it in order.
- The message counts as accepted once the service has shown that it processes it: by its echo, by a
  record of its run, or by its id in the messages of `__state__`.

The service answers 200 before it knows how a request ends. So a refusal comes in the body, in the
format of the component that wrote it: a JSON-RPC error object may span several lines, and
"Streaming for thread is in progress" (the thread is still answering another message) may be plain
text or a JSON string. A web page is recognized by its first bytes. The content type proves nothing,
because the service's document names text/html for its stream too.

Nearly all records of a stream are deltas that append text. They take a short way through
`ChatRun._take_plain` and `RecordFold.append`, which must do what the long way does. Without the
short way a long answer costs half as much processor time again, as a benchmark measures.

The messages of `__state__`
===========================

The service does not document the format of the serialized conversation. Agent frameworks use four
shapes, each of them also as a JSON string, and the text may be a list of parts:

    {"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {"content": ...}}
    {"type": "human", "data": {"content": ...}}
    {"type": "human", "content": ...}
    {"role": "user", "content": ...}

A message of another shape cannot be read. It shows that the conversation is not known completely.

Events
======

An event reports to the caller what happens while the run lasts. `str(event)` is its line in the
log. Text of the service in it is one line of at most 500 characters without control characters.
`runs.run_kind.EventLog` writes the lines and folds the details.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from io import StringIO
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeGuard

from airflow_provider_platform.client.choices import MAX_ROWS
from airflow_provider_platform.client.errors import (
    ChatNoAnswerError,
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.json_text import (
    CutJsonError,
    CutStringError,
    LineReader,
    db_safe,
    parse_line,
    read_json,
    read_plain_lines,
    replace_surrogates,
)
from airflow_provider_platform.client.redaction import MAX_SERVICE_TEXT, quote_service
from airflow_provider_platform.resources.chat.request import input_digest, is_message_id
from airflow_provider_platform.resources.chat.result import (
    ChatResult,
    count_received,
)
from airflow_provider_platform.resources.chat.tool_calls import (
    Query,
    Search,
    ToolCall,
    ToolCallEnded,
    read_tool_call,
)

# Lines as records.


_STREAM_IN_PROGRESS = "Streaming for thread is in progress"


def says_busy(text: object) -> bool:
    """Return whether the text of an error means that the thread is answering another message."""
    return _STREAM_IN_PROGRESS.lower() in str(text).lower()


def is_busy(error: PlatformError) -> bool:
    """Return whether the service refused a request because its thread is answering another
    message."""
    return isinstance(error, PlatformApiError) and says_busy(error.service_message)


MAX_ERROR_BYTES = 64 * 1024
MAX_ERROR_LINES = 200
"""The maximum size of an error object that spans several lines."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MESSAGES = ("message", "detail", "details")


MAX_RECORD_CONTAINERS = 250_000
"""The most lists and objects of a record. An event loop reads them within half a second, and the
chat sends far fewer rows."""


def record_lines() -> LineReader:
    """Return a reader of the lines of one answer."""
    return LineReader(max_containers=MAX_RECORD_CONTAINERS)


class ChatLineParser:
    """Reads the whole lines of one answer. `where` ends the message of its errors."""

    def __init__(self, where: object) -> None:
        self._where = where
        self.held: list[bytes] = []
        """The lines so far of an error object that continues in the next line. The list stays the
        same object."""
        self._held_from = 0

    def read(self, line: bytes, number: int, *, first: bool, plain: Any = None) -> Any:
        """Return the record of a line, None if the line is part of a record. `first` says that it
        is the first line of the answer, `plain` what `read_plain_json` gives for it, if that is
        known. A byte order mark at the start of the line is dropped.
        Raises PlatformProtocolError with the line's number if the line is not JSON, and
        PlatformAddressError for a web page."""
        if self.held:
            return self._read_continued(line)
        line = line.removeprefix(_BYTE_ORDER_MARK).lstrip(b" \t\r")
        if not line:
            return None
        try:
            return _as_record(read_json(line, plain=plain))
        except ValueError as error:
            if _is_busy_text(line):
                return {"error": quote_service(line.decode("utf-8", "replace"))}
            if first and _is_web_page(line):
                raise self._wrong_address() from None
            if _continues(line, error):
                self.held.append(line)
                self._held_from = number
                return None
        return parse_line(line, number)

    def read_rest(self, rest: bytes, number: int, *, first: bool) -> Any:
        """Return the record of a last line without its line end, None if it may be cut. Raises
        PlatformAddressError for a web page."""
        if not rest:
            return None
        try:
            record = self.read(rest, number, first=first)
        except PlatformProtocolError:
            return None
        self.held.clear()
        return record

    def _read_continued(self, line: bytes) -> Any:
        self.held.append(line)
        text = b"\n".join(self.held)
        small = len(text) <= MAX_ERROR_BYTES and len(self.held) <= MAX_ERROR_LINES
        try:
            value = read_json(text) if small else None
        except ValueError as error:
            if _continues(text, error):
                return None
            value = None
        start = self.held[0]
        self.held.clear()
        if isinstance(value, dict) and is_error(value):
            return value
        return parse_line(start, self._held_from)  # raises: a record never spans lines

    def _wrong_address(self) -> PlatformAddressError:
        return PlatformAddressError(
            "The chat address returned HTML instead of JSON. The page probably belongs to the "
            "platform's web application or to a proxy. Check Chat address (chat_url) in the "
            "connection.",
            where=self._where,
        )


class RecordReader:
    """The records of one answer, from its bytes. `where` ends the message of its errors."""

    def __init__(self, where: object) -> None:
        self._lines = record_lines()
        self._parser = ChatLineParser(where)
        self._first = True

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the record of each whole line, None for a line that is part of a record. Raises the
        errors of `ChatLineParser.read`."""
        for line, number in self._lines.feed(data):
            record = self._parser.read(line, number, first=self._first)
            self._first = False
            yield record

    def rest(self) -> Any:
        """Return the record of a last line without its line end, None if it may be cut."""
        rest = self._lines.rest()
        return self._parser.read_rest(rest, self._lines.lines_seen + 1, first=self._first)


def is_error(record: dict[str, Any]) -> bool:
    """Return whether a record is an error object: `{"error": ...}`, or a JSON-RPC error."""
    if record.get("error") is None:
        return False
    record_id = record.get("id")
    is_message = isinstance(record_id, str) and ("role" in record or record_id.startswith("__"))
    return "jsonrpc" in record or not is_message


def is_rpc_error(record: dict[str, Any]) -> bool:
    """Return whether an error object is a JSON-RPC error: the service refused the credential."""
    error = record["error"]
    return "jsonrpc" in record or (isinstance(error, dict) and "code" in error)


def is_internal_error(record: dict[str, Any]) -> bool:
    """Return whether a JSON-RPC error has the code of a failure inside the service. In a run that
    the service has accepted, this is no refused credential."""
    error = record["error"]
    return isinstance(error, dict) and error.get("code") == -32603


def _as_record(value: Any) -> Any:
    """Return the refusal of a busy thread as an error object, in whatever form it came. Return
    anything else unchanged."""
    if isinstance(value, str):
        return {"error": value} if says_busy(value) else value
    if isinstance(value, dict) and not value.keys() & {"id", "role", "error"}:
        refusal = next((value[name] for name in _MESSAGES if says_busy(value.get(name))), None)
        return value if refusal is None else {"error": refusal}
    return value


def _is_busy_text(line: bytes) -> bool:
    """Return whether a line that is not JSON says that the thread is busy. A cut record, which may
    quote these words, does not count."""
    plain = len(line) <= MAX_ERROR_BYTES and not line.startswith((b"{", b"[", b'"'))
    return plain and says_busy(line.decode("utf-8", "replace"))


def _is_web_page(line: bytes) -> bool:
    return line.startswith(b"<")


def _continues(start: bytes, error: ValueError) -> bool:
    """Return whether the text is the start of an object that was cut between two tokens, where a
    line may end."""
    between = isinstance(error, CutJsonError) and not isinstance(error, CutStringError)
    return between and start.startswith(b"{") and len(start) <= MAX_ERROR_BYTES


# Events.


SHOWN_STAGES = 100
"""Changes of stage that make an event each. Later changes are counted only."""


@dataclass(frozen=True)
class ThreadNamed:
    """The service has named the thread that it made. It has not accepted the message yet."""

    chat_id: str
    message_id: str

    def __str__(self) -> str:
        return f"The agent's thread: chat {quote_service(self.chat_id)}"


@dataclass(frozen=True)
class Accepted:
    """The service has accepted the message. From now on the run can be followed and stopped."""

    chat_id: str
    message_id: str

    def __str__(self) -> str:
        chat = quote_service(self.chat_id)
        return f"The agent accepted the prompt: chat {chat}, message {self.message_id}"


@dataclass(frozen=True)
class StageChanged:
    """The agent has moved to another part of its graph."""

    stage: str

    def __str__(self) -> str:
        return f"Stage: {quote_service(self.stage)}"


@dataclass(frozen=True)
class StagesNotShown:
    """The run has ended. `count` changes of stage made no event of their own."""

    count: int

    def __str__(self) -> str:
        changes = "change of the agent is" if self.count == 1 else "changes of the agent are"
        return f"{self.count:,} more stage {changes} not logged"


@dataclass(frozen=True)
class Thought:
    """What the agent thinks, for the log at debug level. Not every service sends it."""

    text: str
    is_detail: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"Thinking: {quote_service(self.text)}"


@dataclass(frozen=True)
class Waiting:
    """The message was not processed because its thread is busy. It is sent again later."""

    seconds: float

    def __str__(self) -> str:
        pause = f"{self.seconds:g} s"
        return f"The thread is answering another message; this message is sent again in {pause}"


ChatEvent = ThreadNamed | Accepted | StageChanged | StagesNotShown | ToolCallEnded | Thought
"""The events of a run. (`Waiting` comes before the service has started one.)"""


Speaker = Literal["human", "ai", "tool", "other", "unknown"]

_SPEAKERS: dict[str, Speaker] = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "model": "ai",
    "tool": "tool",
    "function": "tool",
    "system": "other",
    "developer": "other",
    "remove": "other",
}
_WRAPPERS = ("kwargs", "data")
_CALL_PARTS = frozenset({"tool_use", "tool_call"})
_RESULT_PARTS = frozenset({"tool_result"})


@dataclass(frozen=True)
class StateMessage:
    """One message: its speaker, id ("" if it has none) and text. `calls` are the tool calls that it
    requests; `call_id` names the call that a tool's message answers."""

    speaker: Speaker
    id: str = ""
    text: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class MessageTurn:
    """One human message, and the messages that follow it up to the next one."""

    question: StateMessage
    replies: tuple[StateMessage, ...] = ()

    def call_records(self) -> Iterator[dict[str, Any]]:
        """Yield the tool calls of the turn, each with its result if there is one, in the shape of
        the records of a stream."""
        results = {
            reply.call_id: reply.text
            for reply in self.replies
            if reply.speaker == "tool" and reply.call_id
        }
        for at, message in enumerate(self.replies):
            for number, call in enumerate(message.calls):
                function = call.get("function")
                source = function if isinstance(function, dict) else call
                arguments = source.get("args", source.get("arguments", source.get("input")))
                result = results.get(str(call.get("id") or ""))
                tool_call = {"name": source.get("name"), "input": arguments, "result": result}
                yield {"id": f"{at}-{number}", "toolCall": tool_call}


@dataclass(frozen=True)
class ThreadMessages:
    """The messages of `__state__`: the human messages as pairs (id or "", text), the assistant's
    last answer or "", and all `messages` in order. `unread` says that a message has an unknown
    shape."""

    humans: tuple[tuple[str, str], ...] = ()
    answer: str = ""
    unread: bool = False
    messages: tuple[StateMessage, ...] = ()

    def turns(self) -> list[MessageTurn]:
        """The turns of the conversation, oldest first."""
        starts = [at for at, message in enumerate(self.messages) if message.speaker == "human"]
        return [
            MessageTurn(self.messages[start], self.messages[start + 1 : end])
            for start, end in pairwise([*starts, len(self.messages)])
        ]


def read_messages(messages: Any) -> ThreadMessages | None:
    """Parse a serialized conversation. Return None if it is not a list of messages."""
    listed = _value(messages)
    if not isinstance(listed, list):
        return None
    read = tuple(map(_read_message, listed))
    return ThreadMessages(
        humans=tuple((message.id, message.text) for message in read if message.speaker == "human"),
        answer=last_answer(read),
        unread=any(message.speaker == "unknown" for message in read),
        messages=read,
    )


def last_answer(messages: tuple[StateMessage, ...]) -> str:
    """Return the assistant's last text in these messages, "" if a question or a tool came after
    it."""
    answer = ""
    for message in messages:
        if message.speaker in ("human", "tool") or message.calls:
            answer = ""
        elif message.speaker == "ai":
            text = str(replace_surrogates(message.text))
            answer = text if text.strip() else answer
    return answer


def text_of(content: Any) -> str:
    """Return the text of a record or a message, which is a string or a list of parts with texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else text_of(part.get("text"))
            for part in content
            if isinstance(part, str | dict)
        )
    return ""


def _read_message(message: Any) -> StateMessage:
    message = _value(message)
    if not isinstance(message, dict):
        return StateMessage("unknown")
    wrapped = (_value(message.get(name)) for name in _WRAPPERS)
    fields = next((inner for inner in wrapped if isinstance(inner, dict)), message)
    content = fields.get("content")
    speaker = _speaker(message, fields)
    if speaker == "human" and _holds_only(content, _RESULT_PARTS):
        speaker = "tool"
    return StateMessage(
        speaker,
        id=next(filter(_is_name, (fields.get("id"), message.get("id"))), ""),
        text=text_of(content),
        calls=_calls(fields) if speaker == "ai" else (),
        call_id=str(fields.get("tool_call_id") or ""),
    )


def _speaker(message: dict[str, Any], fields: dict[str, Any]) -> Speaker:
    path = message.get("id")
    names = (
        path[-1] if isinstance(path, list) and path else None,
        *(part.get(name) for part in (message, fields) for name in ("type", "role")),
    )
    for name in filter(_is_name, names):
        plain = name.lower().removesuffix("chunk").removesuffix("message")
        if plain in _SPEAKERS:
            return _SPEAKERS[plain]
    return "unknown"


def _calls(fields: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    more = fields.get("additional_kwargs")
    listed = fields.get("tool_calls") or (isinstance(more, dict) and more.get("tool_calls"))
    parts = fields.get("content")
    if not listed and isinstance(parts, list):
        listed = [part for part in parts if _is_part(part, _CALL_PARTS)]
    if not listed:
        return ()
    calls = listed if isinstance(listed, list) else [listed]
    return tuple(call if isinstance(call, dict) else {} for call in calls)


def _holds_only(content: Any, kinds: frozenset[str]) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(_is_part(part, kinds) for part in content)
    )


def _is_part(part: Any, kinds: frozenset[str]) -> bool:
    return isinstance(part, dict) and _is_name(part.get("type")) and part["type"] in kinds


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _value(value: Any) -> Any:
    """Return the value of a JSON string; anything else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


MAX_TEXT = 64 * 1024 * 1024
"""Characters that the records of a run may hold in all: a chat that never ends must end."""
RECORD_COST = 256
"""Characters that a record counts beside its text, so that countless empty records count too."""

_FINAL = "final"
_MAX_EXACT_INT = 2**53
"""A float holds whole numbers up to here exactly."""
_LOGGED_THOUGHT = MAX_SERVICE_TEXT + 1
"""Characters of a thought that a log shows."""
_COST_OF_BYTE = 9
"""Characters that one byte of a stream can cost at most: in an empty record."""


class Verdict(Enum):
    """What a connection that has ended says of the run."""

    OVER = "the run is over"
    ABORTED = "the run was stopped"
    FAILED = "the run failed with an error"
    REFUSED = "the service refused the credential"
    BUSY = "the thread is answering another message"
    SUSPENDED = "the run is suspended"
    STREAMING = "the thread is still streaming, but not to this connection"
    ABSENT = "the thread does not contain our message"
    UNCLEAR = "the thread may contain our message"
    BROKEN = "the connection broke before the run ended"


class End(Enum):
    """How the service ended a stream."""

    STATE = "state"
    ABORTED = "aborted"
    ERROR = "error"
    RPC_ERROR = "rpc error"


# The assistant records of one turn.


@dataclass
class AssistantRecord:
    """One assistant record as folded so far. `received` is the position of its latest part among
    all parts received."""

    id: str
    text: StringIO = field(default_factory=StringIO)
    is_blank: bool = True
    closed_without_text: bool = False
    """Whether the full record that closed the message repeated none of its text."""
    thinking: StringIO | None = None
    graph_path: list[str] = field(default_factory=list)
    in_process: bool = False
    sort: float | None = None
    tool_call: ToolCall | None = None
    received: int = 0

    @property
    def content(self) -> str:
        """The text so far."""
        return str(replace_surrogates(self.text.getvalue()))

    @property
    def thought(self) -> str:
        """What the agent thought, "" if the service sent nothing."""
        thought = "" if self.thinking is None else self.thinking.getvalue().strip()
        return str(replace_surrogates(thought))

    @property
    def is_final(self) -> bool:
        """Whether this is a final answer by its place in the agent's graph."""
        return (
            self.tool_call is None
            and 1 <= len(self.graph_path) <= 2
            and self.graph_path[0] == _FINAL
            and not self.is_blank
        )

    @property
    def cost(self) -> int:
        """About how many characters the record keeps in memory."""
        size = RECORD_COST + len(self.id) + self.text.tell()
        if self.thinking is not None:
            size += self.thinking.tell()
        return size if self.tool_call is None else size + self.tool_call.cost

    @property
    def size(self) -> int:
        """A measure that grows with what is known: it distinguishes progress from repetition."""
        done = self.tool_call is not None and self.tool_call.result is not None
        return 1 + self.text.tell() + 2 * done + (not self.in_process)


class RecordFold:
    """The assistant records of one turn, by id, in the order in which they first came. With
    `details` the agent's thoughts and its searches of the data model are kept too."""

    def __init__(self, max_rows: int, *, details: bool = False) -> None:
        self._max_rows = max_rows
        self._details = details
        self._records: dict[str, AssistantRecord] = {}
        self._received = 0
        self._unchecked_bytes = 0
        self._check_after = MAX_TEXT // _COST_OF_BYTE

    def empty(self) -> RecordFold:
        """Return an empty fold with the same limits."""
        return RecordFold(self._max_rows, details=self._details)

    def of_messages(self, turn: MessageTurn) -> RecordFold:
        """Return a fold with the same limits that holds the tool calls of a turn's messages.
        Raises PlatformProtocolError if they hold too much text."""
        fold = self.empty()
        for record in turn.call_records():
            fold.add(record, known_up_to=None)
        fold.check_cost()
        return fold

    def __iter__(self) -> Iterator[AssistantRecord]:
        return iter(self._records.values())

    @property
    def cost(self) -> int:
        """About how many characters the records keep in memory."""
        return sum(record.cost for record in self)

    def count_bytes(self, count: int) -> None:
        """Note that so many bytes of the stream were folded in. Raises PlatformProtocolError if
        the records hold too much. They are checked only once so many bytes can cost that much."""
        self._unchecked_bytes += count
        if self._unchecked_bytes > self._check_after:
            self.check_cost()

    def check_cost(self) -> None:
        """Raise PlatformProtocolError if the records hold too much text."""
        cost = self.cost
        if cost > MAX_TEXT:
            raise PlatformProtocolError(
                f"The chat sent more than {MAX_TEXT // 2**20} MB of text. The run does not seem "
                "to end, so the task stopped reading."
            )
        self._unchecked_bytes = 0
        self._check_after = max((MAX_TEXT - cost) // _COST_OF_BYTE, MAX_TEXT // 64)

    @property
    def size(self) -> int:
        """How much is known (see AssistantRecord.size)."""
        return sum(record.size for record in self)

    @property
    def highest_sort(self) -> float | None:
        """The highest sequence number seen."""
        sorts = [record.sort for record in self if record.sort is not None]
        return max(sorts, default=None)

    def add(self, record: dict[str, Any], *, known_up_to: float | None) -> AssistantRecord | None:
        """Fold in one assistant record (its `id` is a string); return the folded record.

        A delta whose `sort` is not above `known_up_to` repeats what an earlier connection sent. It
        changes nothing, and the result is None.
        """
        record_id: str = record["id"]
        known = self._records.get(record_id)
        sort = _number(record.get("sort"))
        tool_call = record.get("toolCall")
        if is_delta(record):
            if known_up_to is not None and sort is not None and sort <= known_up_to:
                return None
            folded = known or AssistantRecord(record_id)
        else:
            folded = AssistantRecord(record_id)
            if isinstance(tool_call, dict):
                before = known.tool_call if known else None
                folded.tool_call = read_tool_call(
                    tool_call, before, self._max_rows, details=self._details
                )
        thinking = record.get("thinking")
        if thinking or (known is not None and known.thinking is not None):
            self._add_thought(folded, thinking, known)
        text = text_of(record.get("content"))
        folded.closed_without_text = False
        if known is not None and folded is not known and record.get("content") is None:
            folded.closed_without_text, text = not known.is_blank, known.text.getvalue()
        folded.text.write(text)
        folded.is_blank = folded.is_blank and not text.strip()
        if isinstance(record.get("graphPath"), list):
            folded.graph_path = [str(node) for node in record["graphPath"]]
        folded.in_process = record.get("isInProcess") is True
        folded.sort = sort if sort is not None else folded.sort
        self._received += 1
        folded.received = self._received
        self._records[record_id] = folded
        return folded

    def append(self, record: dict[str, Any]) -> bool:
        """Fold in one more delta of a known record at the same place in the graph: nearly every
        record of a stream. Does what `add` does and returns True. For any other record it does
        nothing and returns False."""
        try:
            known = self._records[record["id"]]
            content = record["content"]
            if (
                record["isDelta"] is not True
                or record["role"] != "assistant"
                or record["graphPath"] != known.graph_path
                or type(content) is not str
                or "toolCall" in record
                or "error" in record
            ):
                return False
        except (KeyError, TypeError):
            return False
        thinking = record.get("thinking")
        if thinking and not self._append_thought(known, thinking):
            return False
        sort = record.get("sort")
        if type(sort) is not int or not -_MAX_EXACT_INT <= sort <= _MAX_EXACT_INT:
            sort = _number(sort)
        if sort is not None:
            known.sort = sort
        known.text.write(content)
        if known.is_blank:
            known.is_blank = not content.strip()
        known.in_process = record.get("isInProcess") is True
        known.received = self._received = self._received + 1
        return True

    def _add_thought(
        self, folded: AssistantRecord, thinking: Any, known: AssistantRecord | None
    ) -> None:
        """Deltas append to a record's thought. A full record replaces it, unless it has none."""
        if not isinstance(thinking, str) or not thinking:
            folded.thinking = known.thinking if known else None
            return
        if folded is not known or folded.thinking is None:
            folded.thinking = StringIO()
        folded.thinking.write(thinking if self._details else thinking[:_LOGGED_THOUGHT])

    def _append_thought(self, known: AssistantRecord, thinking: Any) -> bool:
        """Append to a thought that has begun; return False for anything else."""
        if known.thinking is None or type(thinking) is not str:
            return False
        if self._details or known.thinking.tell() <= _LOGGED_THOUGHT:
            known.thinking.write(thinking)
        return True

    def final_answer(self) -> AssistantRecord | None:
        """The final record that was received last. (`sort` orders the thread, it does not say what
        is final.)"""
        finals = [record for record in self if record.is_final]
        return max(finals, key=lambda record: record.received, default=None)

    @property
    def has_answer(self) -> bool:
        """Whether there is a final answer that is complete."""
        final = self.final_answer()
        return final is not None and not final.in_process

    @property
    def ends_with_answer(self) -> bool:
        """Whether the known records are those of a run that is over: a complete final answer, no
        record after it and none in process."""
        final = self.final_answer()
        return final is not None and not any(
            record.in_process or record.received > final.received for record in self
        )

    def last_text(self) -> str:
        """The text of the last record that has one, final or not."""
        texts = [record.content for record in self if record.content.strip()]
        return texts[-1] if texts else ""

    def queries(self) -> list[Query]:
        """Every SQL call, in order."""
        return [call.query() for call in self._tool_calls() if call.is_query]

    def searches(self) -> list[Search]:
        """Every search of the data model, in order."""
        return [call.search() for call in self._tool_calls() if call.is_search]

    def thoughts(self) -> list[str]:
        """What the agent thought, one string per record."""
        return [thought for record in self if (thought := record.thought)]

    def tool_errors(self) -> list[str]:
        """The errors of all tool calls."""
        errors = [call.error for call in self._tool_calls()]
        return [error for error in errors if error is not None]

    def _tool_calls(self) -> list[ToolCall]:
        return [record.tool_call for record in self if record.tool_call is not None]


def is_delta(record: dict[str, Any]) -> bool:
    """Whether an assistant record adds to what is known of it. Any other record replaces that."""
    return record.get("isDelta") is True and not isinstance(record.get("toolCall"), dict)


def is_assistant(record: dict[str, Any]) -> bool:
    """Whether a record is a message of the assistant, and none of the service's own marks."""
    record_id = record.get("id")
    return (
        record.get("role") == "assistant"
        and isinstance(record_id, str)
        and not record_id.startswith("__")
    )


def _has_plain_fields(record: dict[str, Any]) -> bool:
    """Whether all fields of a record that are read are strings, except for `sort`."""
    path, call = record.get("graphPath"), record.get("toolCall")
    if type(record.get("content", "")) is not str:
        return False
    if path is not None and not (type(path) is list and all(type(node) is str for node in path)):
        return False
    return call is None or (
        type(call) is dict
        and all(type(call.get(name, "")) is str for name in ("name", "input", "result"))
    )


def _number(value: Any) -> float | None:
    if type(value) is not int and type(value) is not float:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if -math.inf < number < math.inf else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


# What is worth reporting while the run goes on.


class ProgressEvents:
    """Collects the events of a run, each once, however many connections repeat it. `now` is the
    time (Unix) of the bytes that are being read."""

    def __init__(self, *, thread_known: bool, accepted: bool) -> None:
        self.now = 0.0
        self._events: list[ChatEvent] = []
        self._thread_reported = thread_known
        self._accepted_reported = accepted
        self._stage: str | None = None
        self._records_with_stage: set[str] = set()
        self._stages = 0
        self._calls_began: dict[str, float] = {}
        self._calls_reported: set[str] = set()
        self.open_thought: AssistantRecord | None = None
        """The record whose thought continues. The next record, or its own end, reports it."""
        self._thoughts_reported: set[str] = set()

    def drain(self) -> list[ChatEvent]:
        """Return the events collected since the last call."""
        events, self._events = self._events, []
        return events

    def add_thread(self, chat_id: str, message_id: str, *, accepted: bool) -> None:
        """The thread has an id. Acceptance is reported before everything that came with it."""
        if self._accepted_reported:
            return
        if accepted:
            self._accepted_reported = True
            self._events.insert(0, Accepted(chat_id, message_id))
        elif not self._thread_reported:
            self._events.append(ThreadNamed(chat_id, message_id))
        self._thread_reported = True

    def forget_thread(self) -> None:
        """The thread is gone. The next one will be reported."""
        self._thread_reported = False

    def add_record(self, record: AssistantRecord) -> None:
        """A record of the run has come, or more of it."""
        if self.open_thought is not None and record is not self.open_thought:
            self._add_thought()
        stage = record.graph_path[0] if record.graph_path else None
        if stage is not None and record.id not in self._records_with_stage:
            self._records_with_stage.add(record.id)
            if stage != self._stage:
                self._stage = stage
                self._stages += 1
                if self._stages <= SHOWN_STAGES:
                    self._events.append(StageChanged(stage))
        if record.thinking is not None:
            # A thought comes in pieces: it is reported once its record is complete.
            self.open_thought = record
            if not record.in_process:
                self._add_thought()
        if record.tool_call is not None:
            self._add_tool_call(record.id, record.tool_call)

    def add_end(self) -> None:
        """The run has ended."""
        hidden = self._stages - SHOWN_STAGES
        if hidden > 0:
            self._stages = SHOWN_STAGES
            self._events.append(StagesNotShown(hidden))

    def _add_thought(self) -> None:
        record, self.open_thought = self.open_thought, None
        if record is None or record.id in self._thoughts_reported:
            return
        if thought := record.thought:
            self._thoughts_reported.add(record.id)
            self._events.append(Thought(thought))

    def _add_tool_call(self, record_id: str, call: ToolCall) -> None:
        began = self._calls_began.setdefault(record_id, self.now)
        if call.result is None or record_id in self._calls_reported:
            return
        self._calls_reported.add(record_id)
        self._events.append(ToolCallEnded(call, self.now - began))


# The run of one message, over all its connections.


@dataclass
class Connection:
    """What one connection has said so far: facts only, which `ChatRun` writes and judges.

    `submits`: the request carried `input`. `first`: nothing was known of the run before.
    `known_up_to`: the highest sequence number known before, None after our echo. `complete`:
    nothing more is worth reading. `error`: what the service said with an error.
    """

    submits: bool
    first: bool
    known_up_to: float | None
    parser: ChatLineParser
    reader: LineReader = field(default_factory=record_lines)

    history_received: bool = False
    """The cutoff record has come."""
    streaming: bool | None = None
    """What the cutoff record said of the thread."""
    end: End | None = None
    """None until the service ends the stream."""
    error: Any = None
    streaming_at_end: bool | None = None
    """Whether the thread was streaming, according to `__state__`."""
    messages: ThreadMessages | None = None
    usage_received: bool = False
    complete: bool = False
    closed_clean: bool = False
    """Whether the service properly closed the stream."""
    grew: bool = False
    """Whether the connection has sent something new; known after its end."""

    in_our_turn: bool = False
    """Whether the assistant records that arrive now belong to the run."""
    echo_received: bool = False
    record_received: bool = False
    """Whether a record of the run has arrived."""
    replaced: set[str] = field(default_factory=set)
    """Ids of records that a full record has replaced."""
    suspended: bool = False
    in_part: bool = False
    """Whether records of the run arrived without its beginning."""
    stray_abort: bool = False
    """Whether an abort arrived before any record showed to which turn it belongs."""
    may_hold_ours: bool = False
    """Whether a message of an existing thread has our text, but not our id."""
    records: int = 0
    user_records: int = 0
    first_user_id: str | None = None
    last_user_id: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the service has ended the stream."""
        return self.end is not None

    @property
    def received_data(self) -> bool:
        """Whether the last bytes held more than blank lines."""
        return self.reader.active

    @property
    def refused_at_once(self) -> bool:
        """Whether only the refusal of the request arrived."""
        return self.records <= 1

    @property
    def is_bare(self) -> bool:
        """Whether no record has shown to which turn the stream belongs."""
        return not self.history_received and not self.user_records

    def add_record_of_run(self) -> None:
        """Note that a record of the run has arrived."""
        self.suspended = False
        self.record_received = True
        self.in_part = not (self.first or self.echo_received)


@dataclass(kw_only=True, eq=False)
class ChatRun:
    """The run of one message, as successive connections report it.

    `digest` is the prompt's `input_digest`. `in_existing_thread` says that the caller named the
    thread, so that it may hold other turns. `accepted` becomes True when the service has shown that
    it processes the message. `max_rows` is how many rows of a query are kept; with `details`
    thoughts and searches are kept too.
    """

    message_id: str
    digest: str
    chat_id: str | None = None
    in_existing_thread: bool = False
    accepted: bool = False
    max_rows: int = MAX_ROWS
    details: bool = False

    def __post_init__(self) -> None:
        self.echo_id: str | None = None
        """The service's id of our message, when it is known."""
        self.usage: dict[str, Any] | None = None
        self.may_lack_records = False
        """Records may have been lost between two connections, because one sent the run from its
        middle. Reading the thread may bring the run from its beginning."""
        self._fold = RecordFold(self.max_rows, details=self.details)
        self._fold_before_echo: RecordFold | None = None
        self._best_size = 0
        self._received_whole = False
        self._messages: ThreadMessages | None = None
        self._connection: Connection | None = None
        self._progress = ProgressEvents(
            thread_known=self.chat_id is not None, accepted=self.accepted
        )

    def __str__(self) -> str:
        thread = f"chat {quote_service(self.chat_id)}" if self.chat_id else "no chat id yet"
        return f"{thread}, message {self.message_id}"

    # The stream's bytes are fed in.

    def connect(self, *, submits: bool) -> None:
        """A request was sent, with `input` or without. Its answer comes next."""
        self._fold_before_echo = None
        self._connection = Connection(
            submits=submits,
            first=submits and not self.accepted,
            known_up_to=self._fold.highest_sort,
            parser=ChatLineParser(self),
        )

    def feed(self, data: bytes, now: float) -> list[ChatEvent]:
        """Read some bytes of the stream, and return the events in them. Raises
        PlatformProtocolError for a line that is not JSON or too long, or for too much text in all,
        PlatformAddressError for a web page."""
        self._progress.now = now
        connection = self.connection
        held = connection.parser.held
        for line, number, plain in read_plain_lines(connection.reader.feed(data)):
            if held or not self._take_plain(connection, plain):
                self._take_line(connection, line, number, plain)
        self._fold.count_bytes(len(data))
        if self.chat_id is not None:
            self._progress.add_thread(self.chat_id, self.message_id, accepted=self.accepted)
        if connection.end is not None:
            self._progress.add_end()
        return self._progress.drain()

    def disconnect(self, *, clean: bool) -> Verdict:
        """The connection ended; `clean` if the service closed it in order."""
        connection = self.connection
        if connection.end is None:
            self._take_rest(connection)
        connection.closed_clean = clean
        if connection.stray_abort and clean and connection.end is None and connection.is_bare:
            connection.end = End.ABORTED
        self._accept_by_messages(connection)
        size = self._fold.size
        connection.grew = size > self._best_size
        self._best_size = max(size, self._best_size)
        before = self._fold_before_echo
        if before is not None and self._replay_is_poorer(connection, before):
            self._fold = before
        elif connection.echo_received:
            self.may_lack_records = False
        self.may_lack_records = self.may_lack_records or connection.in_part
        self._messages = connection.messages or self._messages
        verdict = self._verdict(connection)
        if verdict is Verdict.OVER and connection.echo_received:
            replayed = before is None or size >= before.size
            self._received_whole = self._received_whole or replayed
        return verdict

    def forget_messages(self) -> None:
        """Forget the messages of `__state__`: from now on only later messages can confirm an
        answer."""
        self._messages = None

    def forget_thread(self) -> None:
        """Forget the thread that the service made for our message: it no longer exists, and neither
        does the message."""
        self.chat_id = None
        self.echo_id = None
        self._progress.forget_thread()

    # What is known about the run.

    @property
    def connection(self) -> Connection:
        """The latest connection. Raises RuntimeError before the first `connect`."""
        if self._connection is None:
            raise RuntimeError("connect() comes before feed() and disconnect()")
        return self._connection

    @property
    def can_be_followed(self) -> bool:
        """Whether the message is accepted and its thread known."""
        return self.accepted and self.chat_id is not None

    @property
    def answer_in_process(self) -> bool:
        """Whether the final record says that it is not complete. It is an answer only if reading
        the thread confirms it."""
        final = self._fold.final_answer()
        return final is not None and final.in_process

    @property
    def is_confirmed(self) -> bool:
        """Whether the latest connection itself shows that the message is processed, however much
        was known before: by its echo, or by a record of its run. A connection that repeats the
        message must have sent the history too, which may hold both from before."""
        connection = self.connection
        shown = connection.echo_received or connection.record_received
        repeats = connection.submits and not connection.first
        return shown and self.can_be_followed and (connection.history_received or not repeats)

    @property
    def passed_by(self) -> bool:
        """Whether the latest connection has sent a later turn than ours."""
        connection = self.connection
        return connection.echo_received and connection.last_user_id != self.message_id

    @property
    def is_latest(self) -> bool:
        """Whether our message is the latest user message of the thread.

        The first message of a thread that our message made is ours, whatever id the service gives
        it. If the service shows no user message, there is no later one.
        """
        connection = self.connection
        if connection.last_user_id is not None:
            first = connection.last_user_id == connection.first_user_id
            made_by_ours = first and not self.in_existing_thread
            return made_by_ours or connection.last_user_id == self.message_id
        messages = connection.messages
        humans = messages.humans if messages is not None else []
        if len(humans) < 2 and not self.in_existing_thread:
            return True
        return messages is not None and self._ends_with_our_prompt(messages)

    @property
    def reported_streaming(self) -> bool:
        """Whether the latest connection said that the thread is streaming, and sent no later turn
        that this could be about."""
        return self.connection.streaming is True and not self.passed_by

    @property
    def reported_idle(self) -> bool:
        """Whether the latest connection showed a thread that is not streaming, and no end."""
        connection = self.connection
        if connection.end is not None or not connection.history_received:
            return False
        if connection.streaming is None:
            return connection.closed_clean
        return not connection.streaming or self.passed_by

    def result(self) -> ChatResult:
        """Return the result of a run that is over, even if its tool calls failed (see
        `check_tools`). Raises ChatNoAnswerError for a run without a final answer."""
        last_message = self._answer_by_messages()
        answer = self._answer(last_message)
        if answer is None:
            text = quote_service(self._fold.last_text() or last_message) or "nothing"
            raise ChatNoAnswerError(
                f"The run ended without a final answer. The agent last said: "
                f"{text.removesuffix('.')}.",
                where=self,
                usage=self.usage,
            )
        calls = self._fold
        if (by_messages := self._calls_by_messages()) is not None:
            calls = max(calls, by_messages, key=_known_queries)
        return ChatResult(
            answer=answer,
            chat_id=self.chat_id or "",
            message_id=self.message_id,
            queries=calls.queries(),
            usage=self.usage,
            tool_errors=calls.tool_errors(),
            searches=calls.searches() if self.details else [],
            thinking=self._fold.thoughts() if self.details else [],
        ).sanitized()

    # From lines to records.

    def _take_line(self, connection: Connection, line: bytes, number: int, plain: Any) -> None:
        first = connection.records == 0
        try:
            record = connection.parser.read(line, number, first=first, plain=plain)
        except PlatformProtocolError:
            if connection.end is not None:
                return
            raise
        if not connection.parser.held:
            self._take(connection, record)

    def _take_rest(self, connection: Connection) -> None:
        """A last line without its line end may be cut. It counts only if it is whole and ends a
        run."""
        rest = connection.reader.rest()
        number = connection.reader.lines_seen + 1
        record = connection.parser.read_rest(rest, number, first=connection.records == 0)
        if isinstance(record, dict) and (is_error(record) or record.get("id") == "__state__"):
            self._take(connection, record)

    def _take_plain(self, connection: Connection, record: Any) -> bool:
        """Take a line as `read_plain_lines` reads it, if it is a user or an assistant record in
        which no number and no odd type changes anything: nearly all of a stream. For any other line
        do nothing and return False: `_take` then gets the line read in full."""
        if type(record) is not dict:
            return False
        ours = connection.in_our_turn and connection.end is None
        if (
            ours
            and self.accepted
            and (connection.known_up_to is None or str(record.get("id")) in connection.replaced)
            and self._append_delta(record)
        ):
            connection.records += 1
            if connection.suspended or connection.in_part or not connection.record_received:
                connection.add_record_of_run()
            return True
        record_id, role = record.get("id"), record.get("role")
        if (
            type(record_id) is not str
            or record_id.startswith("__")
            or record.get("error") is not None
        ):
            return False
        if role == "user":
            self._take_user(connection, record)
        elif role != "assistant" or (ours and not _has_plain_fields(record)):
            return False
        elif ours:
            self._take_assistant(connection, record_id, record)
        connection.records += 1
        return True

    def _append_delta(self, record: dict[str, Any]) -> bool:
        """Fold in one more delta of a known record, which is no event. Return False for any other
        record, and for one that ends a thought."""
        thought = self._progress.open_thought
        if thought is not None and (
            record.get("id") != thought.id or record.get("isInProcess") is not True
        ):
            return False
        return self._fold.append(record)

    def _take(self, connection: Connection, record: Any) -> None:
        """Take one parsed line. Unknown records are ignored."""
        connection.records += 1
        if not isinstance(record, dict):
            return
        record_id = record.get("id")
        if is_error(record):
            self._take_error(connection, record)
        elif record_id == "__cutoff__":
            self._take_cutoff(connection, record)
        elif record_id == "__state__":
            self._take_state(connection, record)
        elif record_id == "__aborted__":
            self._take_abort(connection)
        elif record_id == "__suspended__":
            self._take_suspension(connection)
        elif record_id == "__usage__":
            self._take_usage(connection, record)
        elif record.get("role") == "user":
            self._take_user(connection, record)
        elif is_assistant(record):
            self._take_assistant(connection, record["id"], record)

    # What each record changes.

    def _take_error(self, connection: Connection, record: dict[str, Any]) -> None:
        if connection.end is not None:
            return
        connection.error = record["error"]
        refused = is_rpc_error(record) and not (self.accepted and is_internal_error(record))
        connection.end = End.RPC_ERROR if refused else End.ERROR
        refused = connection.end is End.RPC_ERROR or says_busy(connection.error)
        connection.complete = connection.usage_received or refused

    def _take_cutoff(self, connection: Connection, record: dict[str, Any]) -> None:
        state = self._read_state(record)
        connection.history_received = True
        connection.stray_abort = False
        connection.streaming = _flag(state.get("isStreaming"))
        if not connection.echo_received:
            connection.in_our_turn = True
            connection.suspended = False

    def _take_state(self, connection: Connection, record: dict[str, Any]) -> None:
        if connection.end is not None:
            return
        state = self._read_state(record)
        connection.streaming_at_end = _flag(state.get("isStreaming"))
        connection.messages = read_messages(state.get("messages"))
        connection.end = End.STATE
        connection.complete = connection.usage_received

    def _read_state(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the state that a record carries. The thread's id is learned from it, unless it is
        known."""
        state = record.get("state")
        state = state if isinstance(state, dict) else {}
        chat_id = state.get("chatId")
        if self.chat_id is None and isinstance(chat_id, str) and chat_id.isprintable():
            self.chat_id = chat_id or None
        return state

    def _take_abort(self, connection: Connection) -> None:
        """Only our run's abort ends the stream: the history may replay an earlier turn's."""
        if connection.in_our_turn and connection.end is None:
            connection.end = End.ABORTED
            connection.complete = connection.usage_received
        elif connection.is_bare:
            connection.stray_abort = True

    def _take_suspension(self, connection: Connection) -> None:
        """Only our run's suspension counts, as with an abort."""
        if connection.in_our_turn:
            connection.suspended = True
            self._accept_after_cutoff(connection)
        elif connection.is_bare:
            connection.suspended = True

    def _take_usage(self, connection: Connection, record: dict[str, Any]) -> None:
        ended_bare = connection.end is not None and connection.is_bare
        if not connection.in_our_turn and not ended_bare:
            return
        usage = record.get("usage")
        fields = {name: value for name, value in record.items() if name not in _RECORD_FIELDS}
        self.usage = db_safe(usage if isinstance(usage, dict) else fields or None)
        connection.usage_received = True
        connection.complete = connection.end is not None

    def _take_user(self, connection: Connection, record: dict[str, Any]) -> None:
        connection.user_records += 1
        received_id = str(record.get("id") or "")
        # The first message that answers our prompt, in a thread that nobody else writes to, is
        # ours, whatever id the service gives it.
        first = connection.history_received and connection.user_records == 1
        answers_prompt = connection.submits and first and not self.in_existing_thread
        is_own_id = received_id == self.message_id
        if is_own_id or (answers_prompt and self.echo_id is None):
            self.echo_id = received_id
        ours = received_id == self.echo_id
        text = record.get("content")
        if not ours and isinstance(text, str) and self._may_be_ours(received_id, text):
            # In an existing thread somebody else may have said the same.
            ours = not self.in_existing_thread
            connection.may_hold_ours = self.in_existing_thread
        connection.in_our_turn = ours
        connection.last_user_id = self.message_id if ours else received_id
        connection.first_user_id = connection.first_user_id or connection.last_user_id
        if ours:
            connection.echo_received = True
            connection.suspended = False
            connection.known_up_to = None
            self._restart_fold()

    def _restart_fold(self) -> None:
        """Our message came back: the run follows from its beginning."""
        self.accepted = True
        before = self._fold_before_echo
        if before is None or self._fold.size > before.size:
            self._fold_before_echo = self._fold
        self._fold = self._fold.empty()

    def _take_assistant(
        self, connection: Connection, record_id: str, record: dict[str, Any]
    ) -> None:
        if not connection.in_our_turn or connection.end is not None:
            return
        self._accept_after_cutoff(connection)
        if not self.accepted:
            return
        connection.add_record_of_run()
        known_up_to = None if record_id in connection.replaced else connection.known_up_to
        if not is_delta(record):
            connection.replaced.add(record_id)
        folded = self._fold.add(record, known_up_to=known_up_to)
        if folded is not None:
            self._progress.add_record(folded)

    # When the message counts as accepted.

    def _accept_after_cutoff(self, connection: Connection) -> None:
        """What follows the cutoff record shows that our message is processed: in answer to our
        prompt, after our echo, or in a thread that nobody else writes to."""
        shown = connection.submits or connection.echo_received or not self.in_existing_thread
        if connection.history_received and shown:
            self.accepted = True

    def _accept_by_messages(self, connection: Connection) -> None:
        """The thread holds our message if a message of `__state__` has its id. In a thread of our
        own it is enough that the last one has its words."""
        messages = connection.messages
        if self.accepted or messages is None:
            return
        by_id = any(message_id == self.message_id for message_id, _ in messages.humans)
        own_thread = not self.in_existing_thread
        self.accepted = by_id or (own_thread and self._ends_with_our_prompt(messages))

    def _may_be_ours(self, message_id: str, text: str) -> bool:
        """Whether a message of the thread has our id, or our words and no id of a client."""
        if message_id == self.message_id:
            return True
        return not is_message_id(message_id) and input_digest(text) == self.digest

    def _ends_with_our_prompt(self, messages: ThreadMessages) -> bool:
        """Whether the last human message of a thread is ours."""
        return bool(messages.humans) and self._may_be_ours(*messages.humans[-1])

    # The verdict on a connection that has ended.

    def _verdict(self, connection: Connection) -> Verdict:
        if connection.end is End.ABORTED:
            return Verdict.ABORTED
        if connection.end in (End.ERROR, End.RPC_ERROR):
            if says_busy(connection.error):
                return Verdict.BUSY
            return Verdict.FAILED if connection.end is End.ERROR else Verdict.REFUSED
        if connection.suspended and not self._fold.has_answer:
            return Verdict.SUSPENDED
        if connection.end is None:
            # A thread answers one message after the other. If a later turn follows our answer, ours
            # is over, whatever became of the later one.
            answered = self.passed_by and self._fold.has_answer and self.accepted
            return Verdict.OVER if answered else Verdict.BROKEN
        if self._is_still_streaming(connection):
            return Verdict.STREAMING
        return Verdict.OVER if self.accepted else self._verdict_if_not_accepted(connection)

    def _verdict_if_not_accepted(self, connection: Connection) -> Verdict:
        """Return the verdict on a message whose id the thread's history and messages do not
        show."""
        messages = connection.messages
        if connection.may_hold_ours:
            return Verdict.UNCLEAR
        if connection.user_records:
            return Verdict.ABSENT
        if messages is None or messages.unread:
            return Verdict.UNCLEAR
        if any(self._may_be_ours(*human) for human in messages.humans):
            return Verdict.UNCLEAR
        return Verdict.ABSENT

    def _is_still_streaming(self, connection: Connection) -> bool:
        if self.passed_by:
            return False
        if connection.streaming_at_end is not None:
            return connection.streaming_at_end
        if connection.submits or not connection.streaming:
            return False
        return not self._fold.ends_with_answer

    def _replay_is_poorer(self, connection: Connection, before: RecordFold) -> bool:
        """Return whether a replay of the run from its beginning has less than was known before."""
        if connection.end is None or self._is_still_streaming(connection):
            return before.size > self._fold.size
        return before.has_answer and not self._fold.has_answer

    # The content of the result.

    def _answer(self, last_message: str) -> str | None:
        """Return the final answer, or None.

        A final record that is not complete is no answer. The last message of `__state__` may be any
        text of the agent, so it counts only if records may be lost. It does not count in a run that
        one connection sent completely, unless it completes the answer that broke off there.
        """
        final = self._fold.final_answer()
        if final is not None and not final.in_process:
            unchecked = final.closed_without_text
            return (unchecked and last_message) or final.content
        completes = final is not None and last_message.startswith(final.content)
        return last_message or None if completes or not self._received_whole else None

    def _answer_by_messages(self) -> str:
        """Return the agent's last text in the messages of `__state__`; "" if they do not have
        it."""
        messages = self._messages
        ours = messages is not None and self._ends_with_our_prompt(messages)
        return messages.answer if messages is not None and ours else ""

    def _calls_by_messages(self) -> RecordFold | None:
        """Return the run's tool calls by the messages of `__state__`. None if one connection sent
        the whole run: its records hold every call."""
        messages = self._messages
        if self._received_whole or messages is None or not self._ends_with_our_prompt(messages):
            return None
        return self._fold.of_messages(messages.turns()[-1])


_RECORD_FIELDS = {"id", "role", "sort", "isDelta", "isInProcess", "graphPath", "content"}


def _known_queries(calls: RecordFold) -> tuple[int, int, int]:
    """Return how much the tool calls contain: the numbers of queries with a result, queries, and
    searches."""
    queries = calls.queries()
    return count_received(query.error for query in queries), len(queries), len(calls.searches())
