"""The serialized conversation in `__state__`: its messages in any of the common shapes.

The service does not document their format. Agent frameworks use four shapes, each of them also as a
JSON string, and the text may be a list of parts:

    {"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {"content": ...}}
    {"type": "human", "data": {"content": ...}}
    {"type": "human", "content": ...}
    {"role": "user", "content": ...}

A message of another shape cannot be read. It shows that the conversation is not known completely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeGuard

from airflow_provider_platform.client.json_text import read_json, replace_surrogates

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
