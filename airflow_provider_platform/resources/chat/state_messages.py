"""The messages of `__state__`: the conversation as the service serializes it.

They stand in where records were lost: they say whether a thread holds our message, and what the
agent last said. The service does not document their format. Agent frameworks use these two shapes;
the text may be a list of parts:

    {"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {"content": ...}}
    {"role": "user", "content": ...}        or "type": "human" in place of the role

A message of another shape cannot be read. It shows that the conversation is not known completely.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from airflow_provider_platform.client.json_text import replace_surrogates
from airflow_provider_platform.resources.chat.record_reader import text_of

Speaker = Literal["human", "ai", "tool", "other", "unknown"]

_SPEAKERS: dict[str, Speaker] = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "tool": "tool",
    "function": "tool",
    "system": "other",
    "developer": "other",
    "remove": "other",
}


@dataclass(frozen=True)
class StateMessage:
    """One message: its speaker, id ("" if it has none) and text. `calls` says that it requests
    tool calls."""

    speaker: Speaker
    id: str = ""
    text: str = ""
    calls: bool = False


@dataclass(frozen=True)
class ThreadMessages:
    """The messages of a thread, in order."""

    messages: tuple[StateMessage, ...] = ()

    @property
    def humans(self) -> list[StateMessage]:
        """The human messages."""
        return [message for message in self.messages if message.speaker == "human"]

    @property
    def unread(self) -> bool:
        """Whether a message has an unknown shape."""
        return any(message.speaker == "unknown" for message in self.messages)

    @property
    def answer(self) -> str:
        """The assistant's last text, "" if a question or a tool came after it."""
        return last_answer(self.messages)

    def turns(self) -> list[tuple[StateMessage, str]]:
        """Return each question with the answer to it ("" if there is none), oldest first."""
        starts = [at for at, message in enumerate(self.messages) if message.speaker == "human"]
        return [
            (self.messages[start], last_answer(self.messages[start + 1 : end]))
            for start, end in pairwise([*starts, len(self.messages)])
        ]


def read_messages(messages: Any) -> ThreadMessages | None:
    """Parse a serialized conversation. Return None if it is not a list of messages."""
    if not isinstance(messages, list):
        return None
    return ThreadMessages(tuple(map(_read_message, messages)))


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


def _read_message(message: Any) -> StateMessage:
    if not isinstance(message, dict):
        return StateMessage("unknown")
    path, fields = message.get("id"), message.get("kwargs")
    if isinstance(path, list) and isinstance(fields, dict):
        names = [path[-1] if path else None, fields.get("role")]
    else:
        fields = message
        names = [message.get("type"), message.get("role")]
    message_id = fields.get("id")
    return StateMessage(
        next(filter(None, map(_speaker, names)), "unknown"),
        id=message_id if isinstance(message_id, str) else "",
        text=text_of(fields.get("content")),
        calls=_requests_tools(fields),
    )


def _speaker(name: Any) -> Speaker | None:
    plain = str(name).lower().removesuffix("chunk").removesuffix("message")
    return _SPEAKERS.get(plain)


def _requests_tools(fields: dict[str, Any]) -> bool:
    more = fields.get("additional_kwargs")
    return bool(fields.get("tool_calls") or (isinstance(more, dict) and more.get("tool_calls")))
