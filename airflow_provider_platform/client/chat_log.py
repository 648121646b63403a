"""What a person wants to read in a log about a chat run: one line for each event.

Texts of the service become one line of at most 500 characters without control characters.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.chat import ChatResult
from airflow_provider_platform.client.chat_events import (
    Accepted,
    StageChanged,
    ThreadNamed,
    ToolCallEnded,
    Waiting,
)
from airflow_provider_platform.client.errors import quote_service


def describe(event: Any) -> str:
    """The log line of an event of a chat program."""
    match event:
        case ThreadNamed(chat_id=chat_id):
            return f"The agent's thread: chat {quote_service(chat_id)}"
        case Accepted(chat_id=chat_id, message_id=message_id):
            return f"The agent accepted the prompt: chat {quote_service(chat_id)}, {message_id}"
        case StageChanged(stage=stage):
            return f"Stage: {quote_service(stage)}"
        case ToolCallEnded():
            return _tool_call(event)
        case Waiting(seconds=seconds):
            return (
                f"The thread is answering another message; this one is sent again in {seconds:g} s"
            )
    return str(event)


def describe_result(result: ChatResult) -> str:
    """The log line of a final answer."""
    return f"Answer: {quote_service(result.answer)}"


def _tool_call(call: ToolCallEnded) -> str:
    title = quote_service(call.title)
    took = f"{call.seconds:.1f} s"
    if call.error is not None:
        return f"Tool call {title!r} failed after {took}: {quote_service(call.error)}"
    if call.rows is None:
        return f"Tool call {title!r}: {took}"
    rows = (
        f"{call.rows} rows"
        if call.rows == call.total_rows
        else (f"{call.rows} of {call.total_rows} rows")
    )
    return f"Query {title!r}: {rows}, {took}"
