"""What the programs of a chat run tell their caller while they go on.

The text of an event is the line that a person wants to read in a log; what it holds of the
service's words is one line of at most 500 characters without control characters.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_platform.client.errors import quote_service


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
class ToolCallEnded:
    """A tool call is complete: `rows` of `total_rows` came (None for tools without rows)."""

    tool: str
    title: str
    seconds: float
    rows: int | None = None
    total_rows: int | None = None
    error: str | None = None

    def __str__(self) -> str:
        title = quote_service(self.title)
        took = f"{self.seconds:.1f} s"
        if self.error is not None:
            return f"Tool call {title!r} failed after {took}: {quote_service(self.error)}"
        if self.rows is None:
            return f"Tool call {title!r}: {took}"
        among = "" if self.rows == self.total_rows else f" of {self.total_rows}"
        return f"Query {title!r}: {self.rows}{among} rows, {took}"


@dataclass(frozen=True)
class Waiting:
    """The message was not processed because its thread is busy; it is sent again later."""

    seconds: float

    def __str__(self) -> str:
        pause = f"{self.seconds:g} s"
        return f"The thread is answering another message; this one is sent again in {pause}"


ChatEvent = ThreadNamed | Accepted | StageChanged | ToolCallEnded
"""What a run tells by itself; `Waiting` comes before there is one."""
