"""What the records of a chat mean: from its connections to the state and result of one message.

`ChatRun` is the state machine of one message. The bytes of one connection after the other go in
(`connect`, `feed`, `disconnect`). Events come out while a connection lasts, a `Verdict` when it
ends, and the result when the run is over. There is no I/O and no clock here. `call` reads the
verdicts and decides what to send next.

Theory of operation
===================

The service answers every request with a stream of JSON records, one per line:

    earlier turns ...   the history, replayed
    __cutoff__          ends the history; names the thread and says whether it is streaming
    user echo           our message, under the id that we chose
    assistant records   thoughts, tool calls, text: a delta appends, a full record replaces
    __state__           the end; it repeats the conversation as messages
    __usage__           the tokens used; sometimes, after the end

In place of the end come `__aborted__`, an error object, or `__suspended__` (the turn pauses). Any
other record is ignored.

`turns.TurnReader` reads one such answer as turns: a user record begins a turn, and the assistant
records up to the next user record belong to it. The run is the turn with our message id. A
follow-up request may replay our turn before the cutoff record, after it, or not at all. Hence:

- If no echo of our message comes, the records after the cutoff record are the run's.
- Each connection begins a new fold of the run's records, and so does our echo, because the run
  follows from its beginning. So a replay changes nothing, and within one connection no delta is
  ever dropped.
- Complete records are kept by id across connections. Unfinished text is not: the replay or the
  thread has it whole. Text that a connection joined in its middle is unfinished until a full record
  replaces it.
- Only the service ends a run: by `__state__`, `__aborted__` or an error object. A connection that
  ends without one of these is broken, even if the service closed it in order.
- The history replays the abort of a run after which our message was sent again. If our echo follows
  the abort, the service has started another run for our message. Only this one counts.
- The message counts as accepted once the service has shown that it processes it: by its echo, by a
  record of its run, or by its id in the messages of `__state__`.

An event reports to the caller what happens while the run lasts. `str(event)` is its line in the
log. Text of the service in it is one line of at most 500 characters without control characters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar

from airflow_provider_platform.client.choices import MAX_ROWS
from airflow_provider_platform.client.errors import ChatNoAnswerError
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.chat.record_fold import (
    AssistantRecord,
    RecordFold,
    Records,
)
from airflow_provider_platform.resources.chat.record_reader import (
    is_internal_error,
    is_rpc_error,
    says_busy,
)
from airflow_provider_platform.resources.chat.request import input_digest, is_message_id
from airflow_provider_platform.resources.chat.result import ChatResult
from airflow_provider_platform.resources.chat.state_messages import ThreadMessages
from airflow_provider_platform.resources.chat.tool_calls import (
    ToolCallEnded,
)
from airflow_provider_platform.resources.chat.turns import End, Turn, TurnReader

# Events.


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
class Detail:
    """A line for the log at debug level: what the agent thinks, and where it is in its graph."""

    text: str
    is_detail: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Waiting:
    """The message was not processed because its thread is busy. It is sent again later."""

    seconds: float

    def __str__(self) -> str:
        pause = f"{self.seconds:g} s"
        return f"The thread is answering another message; this message is sent again in {pause}"


ChatEvent = ThreadNamed | Accepted | ToolCallEnded | Detail
"""The events of a run. (`Waiting` comes before the service has started one.)"""


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
    LEFT = "the stream was left, because the message is accepted"


# The run of one message, over all its connections.


class Connection(TurnReader):
    """One connection of a run: the turn that is read is that of the run's message. If no echo
    names it, it is what follows the cutoff record."""

    def __init__(self, run: ChatRun, *, submits: bool) -> None:
        super().__init__(run)
        self.submits = submits
        """Whether the request carried `input`."""
        self.first = submits and not run.accepted
        """Whether nothing was known of the run before."""
        self.fold = run.new_fold()
        self.closed_clean = False
        """Whether the service properly closed the stream."""
        self.grew = False
        """Whether the connection has sent something new; known after its end."""
        self.echo_received = False
        self.record_received = False
        """Whether a record of the run has arrived."""
        self.in_part = False
        """Whether records of the run arrived without its beginning."""
        self.stray_abort = False
        """Whether an abort arrived before any record showed to which turn it belongs."""
        self.may_hold_ours = False
        """Whether a message of an existing thread has our text, but not our id."""
        self.first_user_id: str | None = None
        self.last_user_id: str | None = None
        self._run = run

    def begin(self, record: dict[str, Any]) -> Turn | None:
        run = self._run
        received_id = str(record.get("id") or "")
        # The first message that answers our prompt, in a thread that nobody else writes to, is
        # ours, whatever id the service gives it.
        first = self.history_received and self.user_records == 1
        answers_prompt = self.submits and first and not run.in_existing_thread
        if received_id == run.message_id or (answers_prompt and run.echo_id is None):
            run.echo_id = received_id
        ours = received_id == run.echo_id
        text = record.get("content")
        if not ours and isinstance(text, str) and run.may_be_ours(received_id, text):
            # In an existing thread somebody else may have said the same.
            ours = not run.in_existing_thread
            self.may_hold_ours = run.in_existing_thread
        self.last_user_id = run.message_id if ours else received_id
        self.first_user_id = self.first_user_id or self.last_user_id
        if not ours:
            return None
        self.echo_received = run.accepted = True
        self.suspended = self.joined_late = False
        if self.end is End.ABORTED:  # of the run before this one, which left nothing
            self.end = None
            run.forget(self.fold)
        else:
            run.keep(self.fold)
        self.fold = run.new_fold()
        return Turn(run.message_id, "", self.fold)

    def cutoff(self) -> None:
        self.stray_abort = False
        if not self.echo_received:
            self.suspended = False
            self.joined_late = not self.first
            self.turn = Turn(self._run.message_id, "", self.fold)

    def may_take(self) -> bool:
        """What follows the cutoff record shows that our message is processed: in answer to our
        prompt, after our echo, or in a thread that nobody else writes to."""
        run = self._run
        shown = self.submits or self.echo_received or not run.in_existing_thread
        run.accepted = run.accepted or (self.history_received and shown)
        return run.accepted

    def took(self, record: AssistantRecord) -> None:
        self.suspended = False
        self.record_received = True
        self.in_part = not (self.first or self.echo_received)
        self._run.progress.add_record(record)

    def aborted(self) -> None:
        self.stray_abort = self.stray_abort or self.is_bare

    def is_refusal(self, record: dict[str, Any]) -> bool:
        return is_rpc_error(record) and not (self._run.accepted and is_internal_error(record))

    def usage(self, usage: dict[str, Any] | None) -> None:
        self._run.usage = usage


class Progress:
    """Collects the events of a run, each once, however many connections repeat it. `now` is the
    time (Unix) of the bytes that are being read."""

    def __init__(self, *, thread_known: bool, accepted: bool) -> None:
        self.now = 0.0
        self._events: list[ChatEvent] = []
        self._thread_reported = thread_known
        self._accepted_reported = accepted
        self._stage: Any = None
        self._shown: set[str] = set()
        """Ids of the records whose stage or thought is shown."""
        self._calls_began: dict[str, float] = {}
        self._calls_reported: set[str] = set()

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
        """A record of the run has come, or more of it. Stages and thoughts are details of it."""
        if not record.in_process and record.id not in self._shown:
            self._shown.add(record.id)
            stage = record.graph_path[0] if record.graph_path else self._stage
            if stage != self._stage:
                self._stage = stage
                self._events.append(Detail(f"Stage: {quote_service(stage)}"))
            if thought := record.thought:
                self._events.append(Detail(f"Thinking: {quote_service(thought)}"))
        if (call := record.tool_call) is not None and record.id not in self._calls_reported:
            began = self._calls_began.setdefault(record.id, self.now)
            if call.result is not None:
                self._calls_reported.add(record.id)
                self._events.append(ToolCallEnded(call, self.now - began))


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
    is_recorded: bool = True
    """Whether a retry of the task can find the run."""

    def __post_init__(self) -> None:
        self.echo_id: str | None = None
        """The service's id of our message, when it is known."""
        self.usage: dict[str, Any] | None = None
        self.may_lack_records = False
        """Records may have been lost between two connections, because one sent the run from its
        middle. Reading the thread may bring the run from its beginning."""
        self.progress = Progress(thread_known=self.chat_id is not None, accepted=self.accepted)
        self._kept: dict[str, AssistantRecord] = {}
        self._best_size = 0
        self.is_whole = False
        """Whether one connection sent the run from its beginning to its end."""
        self._messages: ThreadMessages | None = None
        self._begun: str | None = None
        """The answer that has begun, where the thread is read to confirm it."""
        self._connection: Connection | None = None

    def fresh(self) -> ChatRun:
        """Return a run of the same message that has read no connection yet."""
        return replace(self, accepted=False)

    def __str__(self) -> str:
        thread = f"chat {quote_service(self.chat_id)}" if self.chat_id else "no chat id yet"
        return f"{thread}, message {self.message_id}"

    # The stream's bytes are fed in.

    def connect(self, *, submits: bool) -> None:
        """A request was sent, with `input` or without. Its answer comes next."""
        if self._connection is not None:
            self.keep(self._connection.fold)
        self._connection = Connection(self, submits=submits)

    def feed(self, data: bytes, now: float) -> list[ChatEvent]:
        """Read some bytes of the stream, and return the events in them. Raises
        PlatformProtocolError for a line that is not JSON or too long, or for too much text in all,
        PlatformAddressError for a web page."""
        self.progress.now = now
        self.connection.feed(data)
        return self.take_events()

    def take_events(self) -> list[ChatEvent]:
        """Return the events since the last call. The end of a connection, too, may show that the
        message is accepted."""
        self.chat_id = self.chat_id or self.connection.chat_id
        if self.chat_id is not None:
            self.progress.add_thread(self.chat_id, self.message_id, accepted=self.accepted)
        return self.progress.drain()

    def disconnect(self, *, clean: bool) -> Verdict:
        """The connection ended; `clean` if the service closed it in order."""
        connection = self.connection
        connection.finish()
        connection.closed_clean = clean
        if connection.stray_abort and clean and connection.end is None and connection.is_bare:
            connection.end = End.ABORTED
        self._accept_by_messages(connection)
        known = self._records()
        size = known.size
        connection.grew = size > self._best_size
        self._best_size = max(size, self._best_size)
        if connection.echo_received:
            self.may_lack_records = False
        self.may_lack_records = self.may_lack_records or connection.in_part
        self._messages = connection.messages or self._messages
        verdict = self._verdict(connection, known)
        if verdict is Verdict.OVER and (connection.echo_received or connection.first):
            sent = connection.fold.records.keys()
            lacking = (
                record
                for record in self._kept.values()
                if record.id not in sent and (record.is_final or record.tool_call is not None)
            )
            self.is_whole = self.is_whole or not any(lacking)
        return verdict

    def new_fold(self) -> RecordFold:
        """Return an empty fold for records of the run."""
        latest = self._connection.fold if self._connection is not None else None
        return RecordFold(self.max_rows, details=self.details, kept=self._kept, after=latest)

    def keep(self, fold: RecordFold) -> None:
        """Keep the complete records of a fold, and the tool calls that have begun."""
        for record_id, record in fold.records.items():
            if record.is_complete or (record.tool_call is not None and not record.is_cut):
                self._kept[record_id] = record

    def forget(self, fold: RecordFold) -> None:
        """Forget the records of an aborted run: another run answers our message now."""
        if self._kept.keys() & fold.records:
            self._kept = {name: one for name, one in self._kept.items() if name not in fold.records}
            self._best_size = Records(self._kept.values()).size

    def _records(self) -> Records:
        """The records of the run: those that are kept, and those of the latest connection."""
        records = dict(self._kept)
        latest = self._connection.fold.records if self._connection is not None else {}
        for record_id, record in latest.items():
            if record.is_complete or record.tool_call is not None or record_id not in records:
                records[record_id] = record
        return Records(records.values())

    def forget_messages(self) -> None:
        """Forget the messages of `__state__`: from now on only later messages can confirm the
        answer that has begun."""
        self._messages = None
        final = self._records().final_answer()
        self._begun = None if final is None or final.is_cut else final.content

    def forget_thread(self) -> None:
        """Forget the thread that the service made for our message: it no longer exists, and neither
        does the message."""
        self.chat_id = None
        self.echo_id = None
        self.progress.forget_thread()

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
        """Whether the final record is not complete. It is an answer only if reading the thread
        confirms it."""
        final = self._records().final_answer()
        return final is not None and not final.is_complete

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
        records = self._records()
        messages = self._messages
        ours = messages is not None and self._ends_with_our_prompt(messages)
        last_message = messages.answer if messages is not None and ours else ""
        answer = self._answer(records, last_message)
        if answer is None:
            text = quote_service(records.last_text() or last_message) or "nothing"
            raise ChatNoAnswerError(
                f"The run ended without a final answer. The agent last said: "
                f"{text.removesuffix('.')}.",
                where=self,
                usage=self.usage,
            )
        return ChatResult(
            answer=answer,
            chat_id=self.chat_id or "",
            message_id=self.message_id,
            queries=records.queries(),
            usage=self.usage,
            tool_errors=records.tool_errors(),
            searches=records.searches() if self.details else [],
            thinking=records.thoughts() if self.details else [],
            truncated=not self.is_whole,
        ).sanitized()

    def _answer(self, records: Records, last_message: str) -> str | None:
        """Return the final answer, or None.

        A final record that is not complete is no answer. The last message of `__state__` may be any
        text of the agent, so it counts only if records may be lost. It does not count in a run that
        one connection sent completely, unless it completes the answer that broke off there.
        """
        final = records.final_answer()
        if final is not None and final.is_complete:
            return (final.closed_without_text and last_message) or final.content
        begun = self._begun if final is None else final.content
        completes = begun is not None and last_message.startswith(begun)
        return last_message or None if completes or not self.is_whole else None

    # When the message counts as accepted.

    def _accept_by_messages(self, connection: Connection) -> None:
        """The thread holds our message if a message of `__state__` has its id. In a thread of our
        own it is enough that the last one has its words."""
        messages = connection.messages
        if self.accepted or messages is None:
            return
        by_id = any(human.id == self.message_id for human in messages.humans)
        own_thread = not self.in_existing_thread
        self.accepted = by_id or (own_thread and self._ends_with_our_prompt(messages))

    def may_be_ours(self, message_id: str, text: str) -> bool:
        """Whether a message of the thread has our id, or our words and no id of a client."""
        if message_id == self.message_id:
            return True
        return not is_message_id(message_id) and input_digest(text) == self.digest

    def _ends_with_our_prompt(self, messages: ThreadMessages) -> bool:
        """Whether the last human message of a thread is ours."""
        humans = messages.humans
        return bool(humans) and self.may_be_ours(humans[-1].id, humans[-1].text)

    # The verdict on a connection that has ended.

    def _verdict(self, connection: Connection, known: Records) -> Verdict:
        if connection.end is End.ABORTED:
            return Verdict.ABORTED
        if connection.end in (End.ERROR, End.RPC_ERROR):
            if says_busy(connection.error):
                return Verdict.BUSY
            return Verdict.FAILED if connection.end is End.ERROR else Verdict.REFUSED
        if connection.suspended and not known.has_answer:
            return Verdict.SUSPENDED
        if connection.end is None:
            # A thread answers one message after the other. If a later turn follows our answer, ours
            # is over, whatever became of the later one.
            answered = self.passed_by and known.has_answer and self.accepted
            return Verdict.OVER if answered else Verdict.BROKEN
        if self._is_still_streaming(connection, known):
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
        if any(self.may_be_ours(human.id, human.text) for human in messages.humans):
            return Verdict.UNCLEAR
        return Verdict.ABSENT

    def _is_still_streaming(self, connection: Connection, known: Records) -> bool:
        if self.passed_by:
            return False
        if connection.streaming_at_end is not None:
            return connection.streaming_at_end
        if connection.submits or not connection.streaming:
            return False
        if connection.echo_received:
            known = Records(connection.fold.records.values())
        return not known.ends_with_answer
