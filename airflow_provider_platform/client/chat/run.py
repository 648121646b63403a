"""`ChatRun`: what is known of one message's run, over all the connections that tell of it.

Bytes go in, a verdict on each connection comes out; no I/O, no clock of its own. What to send
next is decided in `program`, which reads the verdicts.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from airflow_provider_platform.client.chat.events import ChatEvent
from airflow_provider_platform.client.chat.lines import ChatLineParser, is_error
from airflow_provider_platform.client.chat.record_fold import RecordFold
from airflow_provider_platform.client.chat.request import says_busy
from airflow_provider_platform.client.chat.result import (
    ChatResult,
    ToolErrorRule,
    assemble,
    check_tools,
)
from airflow_provider_platform.client.chat.run_records import ChatConnection, End
from airflow_provider_platform.client.chat.run_state import RunState
from airflow_provider_platform.client.chat.state_messages import ThreadMessages
from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.formats.json_text import read_plain_json
from airflow_provider_platform.client.formats.ndjson import LineReader


class Verdict(Enum):
    """What a connection that has ended says of the run."""

    OVER = "the service ended the run"
    ABORTED = "the run was stopped"
    FAILED = "the run failed with an error line"
    REFUSED = "the credential was refused"
    BUSY = "another message of the thread is being answered"
    SUSPENDED = "the run is suspended"
    GOING_ON = "the thread is streaming, but not to us"
    ABSENT = "the thread does not hold our message"
    UNCLEAR = "the thread may hold our message"
    BROKEN = "the connection broke"


class ChatRun(RunState):
    """The run of one message, told by one connection after the other.

    `failed_with` holds the service's words after FAILED, REFUSED, BUSY.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.failed_with: Any = None
        self._best_size = 0
        self._grew = False
        self._in_part = False
        self._received_to_end = False
        self._messages: ThreadMessages | None = None
        self._connection: ChatConnection | None = None
        self._reader = LineReader()
        self._parser = ChatLineParser(self)

    def connect(self, *, submits: bool) -> None:
        """A request was sent, with `input` or without; its answer comes next."""
        self._reader = LineReader()
        self._parser = ChatLineParser(self)
        self._known_before = None
        self._grew = False
        self._connection = ChatConnection(
            self,
            submits=submits,
            first=submits and not self.accepted,
            known_up_to=self._fold.highest_sort,
        )

    def feed(self, data: bytes, now: float) -> list[ChatEvent]:
        """Take a piece of the stream; returns what is worth telling. Raises
        PlatformProtocolError for a line that is not JSON or too long, or for too much text in all,
        PlatformAddressError for a web page."""
        self._progress.now = now
        connection = self._open_connection
        held = self._parser.held
        for line, number in self._reader.feed(data):
            try:
                plain = None if held else read_plain_json(line)
            except ValueError:
                plain = None
            if not connection.take_plain(plain):
                self._take_line(line, number)
        self._fold.note_bytes(len(data))
        if self.chat_id is not None:
            self._progress.note_thread(self.chat_id, self.message_id, accepted=self.accepted)
        if self.ended:
            self._progress.note_end()
        return self._progress.take()

    @property
    def received_data(self) -> bool:
        """Whether the last piece held more than blank lines."""
        return self._reader.active

    @property
    def was_refused_at_once(self) -> bool:
        """Whether the last connection told one thing only, if any: that the request is refused."""
        return self._open_connection.records <= 1

    @property
    def ended(self) -> bool:
        """Whether the service has ended this connection's stream."""
        return self._open_connection.end is not None

    @property
    def complete(self) -> bool:
        """Whether nothing more is worth reading on this connection."""
        return self._open_connection.complete

    @property
    def history_received(self) -> bool:
        """Whether the thread's history is told."""
        return self._open_connection.cutoff

    @property
    def passed_by(self) -> bool:
        """Whether the thread has told of a later turn than ours."""
        return self._open_connection.passed_by

    @property
    def is_confirmed(self) -> bool:
        """Whether the open connection itself shows that the message is processed, however much was
        known before: by its echo, or by a record of its run. One that repeats the message must
        have told its history, too, which may hold both from before."""
        connection = self._open_connection
        shown = connection.echo or connection.received_ours
        repeats = connection.submits and not connection.first
        return shown and self.can_be_followed and (connection.cutoff or not repeats)

    @property
    def says_idle(self) -> bool:
        """Whether the last connection told of a thread that does not stream, and of no end."""
        connection = self._open_connection
        if connection.end is not None or not connection.cutoff:
            return False
        if connection.streaming is None:
            return connection.closed_clean
        return not connection.streaming or connection.passed_by

    @property
    def is_latest(self) -> bool:
        """Whether the latest user message of the thread is ours.

        The first message of a thread that our message made is ours, under whatever id the service
        shows it; if the service shows none, there is no later one.
        """
        connection = self._open_connection
        if connection.last_user_id is not None:
            first = not self.thread_given and connection.last_user_id == connection.first_user_id
            return first or connection.last_user_id == self.message_id
        messages = connection.messages
        humans = messages.humans if messages is not None else []
        if len(humans) < 2 and not self.thread_given:
            return True
        return messages is not None and self.is_our_prompt(messages)

    @property
    def grew(self) -> bool:
        """Whether the last connection brought anything new."""
        return self._grew

    @property
    def goes_on(self) -> bool:
        """Whether the last connection brought the service's word that the thread is streaming, and
        of no later turn that this could mean."""
        connection = self._open_connection
        return connection.streaming is True and not connection.passed_by

    @property
    def received_in_part(self) -> bool:
        """Whether records may have been lost between two connections, because one told the run
        from its middle. Reading the thread may tell the run from its beginning."""
        return self._in_part

    @property
    def answer_in_process(self) -> bool:
        """Whether the final record says that it is not complete. It is an answer only where a
        look at the thread confirms it."""
        final = self._fold.final_answer()
        return final is not None and final.in_process

    def forget_messages(self) -> None:
        """From now on only messages that are read later can confirm an answer."""
        self._messages = None

    def disconnect(self, *, clean: bool) -> Verdict:
        """The connection ended; `clean` when the service closed it in order."""
        connection = self._open_connection
        if connection.end is None:
            self._take_rest(self._reader.rest())
        connection.finish(clean=clean)
        self._settle_acceptance(connection)
        size = self._fold.size
        self._grew = size > self._best_size
        self._best_size = max(size, self._best_size)
        known = self._known_before
        if known is not None and self._replay_is_poorer(connection, known):
            self._fold = known
        elif connection.echo:
            self._in_part = False
        self._in_part = self._in_part or connection.in_part
        self._messages = connection.messages or self._messages
        self.failed_with = connection.error
        verdict = self._verdict(connection)
        if verdict is Verdict.OVER:
            replayed = known is None or size >= known.size
            self._received_to_end = self._received_to_end or (connection.echo and replayed)
        return verdict

    def result(self, *, fail_on_tool_error: ToolErrorRule = "all") -> ChatResult:
        """The result of a run that is over.

        Raises ChatNoAnswerError for a run without a final answer, and ChatToolError by the rule:
        "all" where every query failed, "any" where a tool call failed.
        """
        result = assemble(
            self,
            self._fold,
            self._answer_in_state(),
            self._calls_in_state(),
            whole=self._received_to_end,
        )
        check_tools(result, fail_on_tool_error)
        return result

    @property
    def _open_connection(self) -> ChatConnection:
        if self._connection is None:
            raise RuntimeError("connect() comes before feed() and disconnect()")
        return self._connection

    def _take_line(self, line: bytes, number: int) -> None:
        connection = self._open_connection
        try:
            record = self._parser.read(line, number, first=connection.records == 0)
        except PlatformProtocolError:
            if connection.end is not None:
                return
            raise
        if not self._parser.held:
            connection.take(record)

    def _take_rest(self, rest: bytes) -> None:
        """A last line without its line end may be cut: only what ends a run counts, if it is
        whole."""
        connection = self._open_connection
        number = self._reader.lines_seen + 1
        record = self._parser.read_rest(rest, number, first=connection.records == 0)
        if isinstance(record, dict) and (is_error(record) or record.get("id") == "__state__"):
            connection.take(record)

    def _settle_acceptance(self, connection: ChatConnection) -> None:
        """The thread holds our message if a message has its id; in a thread of our own, if the
        last one has its words."""
        messages = connection.messages
        if self.accepted or messages is None:
            return
        by_id = any(message_id == self.message_id for message_id, _ in messages.humans)
        self.accepted = by_id or (not self.thread_given and self.is_our_prompt(messages))

    def _verdict(self, connection: ChatConnection) -> Verdict:
        if connection.end is End.ABORTED:
            return Verdict.ABORTED
        if connection.end in (End.ERROR, End.RPC_ERROR):
            if says_busy(connection.error):
                return Verdict.BUSY
            return Verdict.FAILED if connection.end is End.ERROR else Verdict.REFUSED
        if connection.suspended and not self._fold.has_answer:
            return Verdict.SUSPENDED
        if connection.end is None:
            # A thread answers one message after the other: ours is answered where a later one
            # follows the answer, whatever became of that.
            answered = connection.passed_by and self._fold.has_answer and self.accepted
            return Verdict.OVER if answered else Verdict.BROKEN
        if self._still_streaming(connection):
            return Verdict.GOING_ON
        return Verdict.OVER if self.accepted else self._unaccepted(connection)

    def _unaccepted(self, connection: ChatConnection) -> Verdict:
        """What the thread's history and messages say of a message that shows nowhere by its id."""
        messages = connection.messages
        if connection.may_hold_ours:
            return Verdict.UNCLEAR
        if connection.user_records:
            return Verdict.ABSENT
        if messages is None or messages.unread:
            return Verdict.UNCLEAR
        if any(self.may_be_ours(*human) for human in messages.humans):
            return Verdict.UNCLEAR
        return Verdict.ABSENT

    def _still_streaming(self, connection: ChatConnection) -> bool:
        if connection.passed_by:
            return False
        if connection.state_streaming is not None:
            return connection.state_streaming
        if connection.submits or not connection.streaming:
            return False
        return not self._fold.ends_with_answer

    def _replay_is_poorer(self, connection: ChatConnection, known: RecordFold) -> bool:
        """Whether a replay of the run, from its beginning, told less than was known before."""
        if connection.end is None or self._still_streaming(connection):
            return known.size > self._fold.size
        return known.has_answer and not self._fold.has_answer

    def _answer_in_state(self) -> str:
        """What the agent said last by the messages of `__state__`, "" where they tell nothing."""
        messages = self._messages
        return messages.answer if messages is not None and self.is_our_prompt(messages) else ""

    def _calls_in_state(self) -> RecordFold:
        """The run's tool calls by the messages of `__state__`. Empty if one connection told the
        whole run: its records hold every call."""
        messages = self._messages
        if self._received_to_end or messages is None or not self.is_our_prompt(messages):
            return self._fold.restart()
        return self._fold.of_messages(messages.turns()[-1])
