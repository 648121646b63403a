"""What the programs of a chat run tell their caller while they go on.

The text of an event is the line that a person wants to read in a log; what it holds of the
service's words is one line of at most 500 characters without control characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_platform.client.chat.record_fold import AssistantRecord
from airflow_provider_platform.client.chat.tool_calls import ToolCall
from airflow_provider_platform.client.formats.service_text import quote_service


@dataclass(frozen=True)
class ThreadNamed:
    """The service has named the thread that it made; the message itself is not accepted yet."""

    chat_id: str
    message_id: str

    def __str__(self) -> str:
        return f"The agent's thread: chat {quote_service(self.chat_id)}"


@dataclass(frozen=True)
class Accepted:
    """The service has accepted the message; from now on the run can be followed and stopped."""

    chat_id: str
    message_id: str

    def __str__(self) -> str:
        chat = quote_service(self.chat_id)
        return f"The agent accepted the prompt: chat {chat}, message {self.message_id}"


@dataclass(frozen=True)
class StageChanged:
    """The agent works in another part of its graph."""

    stage: str

    def __str__(self) -> str:
        return f"Stage: {quote_service(self.stage)}"


@dataclass(frozen=True)
class StagesNotShown:
    """The run has ended, and so many of its changes of stage made no event."""

    count: int

    def __str__(self) -> str:
        return f"Stages: {self.count:,} more changes, not shown"


@dataclass(frozen=True)
class ToolCallEnded:
    """A tool call is complete; what it gave is read when the event is."""

    call: ToolCall
    seconds: float

    def __str__(self) -> str:
        call, took = self.call, f"{self.seconds:.1f} s"
        title, error = quote_service(call.title), call.error
        if error is not None:
            return f"Tool call {title!r} failed after {took}: {quote_service(error)}"
        if not call.is_query:
            return f"Tool call {title!r}: {took}"
        among = "" if call.rows == call.total_rows else f" of {call.total_rows}"
        return f"Query {title!r}: {call.rows}{among} rows, {took}"


@dataclass(frozen=True)
class Thought:
    """What the agent thinks; a service in development mode sends it. For the log at debug level."""

    text: str
    is_detail: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"Thinking: {quote_service(self.text)}"


@dataclass(frozen=True)
class Waiting:
    """The message was not processed because its thread is busy; it is sent again later."""

    seconds: float

    def __str__(self) -> str:
        pause = f"{self.seconds:g} s"
        return f"The thread is answering another message; this one is sent again in {pause}"


ChatEvent = ThreadNamed | Accepted | StageChanged | StagesNotShown | ToolCallEnded | Thought
"""What a run tells by itself; `Waiting` comes before there is one."""


SHOWN_STAGES = 100
"""Changes of stage that make an event each; those after them are counted."""


class ProgressEvents:
    """Gathers the events of a run, each once, however many connections tell of it; `now` is the
    time (Unix) of the piece that is being read."""

    def __init__(self, *, thread_known: bool, accepted: bool) -> None:
        self.now = 0.0
        self._events: list[ChatEvent] = []
        self._told_thread = thread_known
        self._told_accepted = accepted
        self._stage: str | None = None
        self._staged: set[str] = set()
        self._stages = 0
        self._calls_began: dict[str, float] = {}
        self._calls_told: set[str] = set()
        self.thinks: AssistantRecord | None = None
        """The record whose thought goes on: the next record, or its own end, tells it."""
        self._thoughts_told: set[str] = set()

    def take(self) -> list[ChatEvent]:
        """What has been gathered since the last time."""
        events, self._events = self._events, []
        return events

    def note_thread(self, chat_id: str, message_id: str, *, accepted: bool) -> None:
        """The thread has a name; acceptance is told before all that came with it."""
        if self._told_accepted:
            return
        if accepted:
            self._told_accepted = True
            self._events.insert(0, Accepted(chat_id, message_id))
        elif not self._told_thread:
            self._events.append(ThreadNamed(chat_id, message_id))
        self._told_thread = True

    def forget_thread(self) -> None:
        """The thread is gone; the next one that is named is news."""
        self._told_thread = False

    def note_record(self, record: AssistantRecord) -> None:
        """A record of the run has come, or more of it."""
        if self.thinks is not None and record is not self.thinks:
            self._tell_thought()
        stage = record.graph_path[0] if record.graph_path else None
        if stage is not None and record.id not in self._staged:
            self._staged.add(record.id)
            if stage != self._stage:
                self._stage = stage
                self._stages += 1
                if self._stages <= SHOWN_STAGES:
                    self._events.append(StageChanged(stage))
        if record.thinking is not None:
            self._note_thought(record)
        if record.tool_call is not None:
            self._note_tool_call(record.id, record.tool_call)

    def _note_thought(self, record: AssistantRecord) -> None:
        """A thought comes in pieces: it is told when its record is complete."""
        self.thinks = record
        if not record.in_process:
            self._tell_thought()

    def _tell_thought(self) -> None:
        record, self.thinks = self.thinks, None
        if record is not None and record.id not in self._thoughts_told and record.thought:
            self._thoughts_told.add(record.id)
            self._events.append(Thought(record.thought))

    def note_end(self) -> None:
        """The run has ended."""
        hidden = self._stages - SHOWN_STAGES
        if hidden > 0:
            self._stages = SHOWN_STAGES
            self._events.append(StagesNotShown(hidden))

    def _note_tool_call(self, record_id: str, call: ToolCall) -> None:
        began = self._calls_began.setdefault(record_id, self.now)
        if not call.has_result or record_id in self._calls_told:
            return
        self._calls_told.add(record_id)
        self._events.append(ToolCallEnded(call, self.now - began))
