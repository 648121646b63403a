"""What the programs of a chat run tell their caller while they go on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ThreadNamed:
    """The service has named the thread that it made; the message itself is not accepted yet."""

    chat_id: str
    message_id: str


@dataclass(frozen=True)
class Accepted:
    """The service has accepted the message; from now on the run can be followed and stopped."""

    chat_id: str
    message_id: str


@dataclass(frozen=True)
class StageChanged:
    """The agent works in another part of its graph."""

    stage: str


@dataclass(frozen=True)
class ToolCallEnded:
    """A tool call is complete: `rows` of `total_rows` came (None for tools without rows)."""

    tool: str
    title: str
    seconds: float
    rows: int | None = None
    total_rows: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Waiting:
    """The message was not processed because its thread is busy; it is sent again later."""

    seconds: float


ChatEvent = ThreadNamed | Accepted | StageChanged | ToolCallEnded
"""What a run tells by itself; `Waiting` comes before there is one."""
