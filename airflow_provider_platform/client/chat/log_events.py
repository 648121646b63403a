"""The events of a chat: what is reported to the caller while it runs.

`str(event)` is its line in the log. Text of the service in it is one line of at most 500 characters
without control characters. `records` decides which records of a stream make an event, and
`client.event_log` writes the lines and folds the details.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_platform.client.chat.tool_calls import ToolCall
from airflow_provider_platform.client.redaction import quote_service

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
class ToolCallEnded:
    """A tool call is complete, after so many `seconds`. Its result is parsed by `str(event)`."""

    call: ToolCall
    seconds: float

    @property
    def is_warning(self) -> bool:
        """Whether the call failed."""
        return self.call.error is not None

    def __str__(self) -> str:
        call, took = self.call, f"{self.seconds:.1f} s"
        title, error = quote_service(call.title), call.error
        if error is not None:
            said, sql = quote_service(error), quote_service(call.sql)
            line = f"Tool call {title!r} failed after {took}: {said}"
            return f"{line.removesuffix('.')}. SQL: {sql}" if sql else line
        if not call.is_query:
            return f"Tool call {title!r}: {took}"
        among = "" if call.rows == call.total_rows else f" of {call.total_rows}"
        return f"Query {title!r}: {call.rows}{among} rows, {took}"


@dataclass(frozen=True)
class Thought:
    """What the agent thinks, for the log at debug level. A service in development mode sends it."""

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
