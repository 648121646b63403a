"""The serialized conversation in `__state__`: its messages in any of the common shapes.

The service does not document how it writes them. Frameworks of agents know four shapes, each also
as a JSON text, and a text may come as a list of parts:

    {"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {"content": ...}}
    {"type": "human", "data": {"content": ...}}
    {"type": "human", "content": ...}
    {"role": "user", "content": ...}

A message of another shape says nothing, but it shows that the conversation is not known whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeGuard

from airflow_provider_platform.client.formats.json_text import read_json, whole_characters

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
    """One message: who speaks, its id ("" if it has none) and its text. `calls` are the tool calls
    that it asks for, `call_id` names the call that a tool's message answers."""

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
        """The tool calls of the turn, each with its result if there is one, as records of the
        stream have them."""
        results = {
            one.call_id: one.text for one in self.replies if one.speaker == "tool" and one.call_id
        }
        for at, message in enumerate(self.replies):
            for number, call in enumerate(message.calls):
                function = call.get("function")
                named = function if isinstance(function, dict) else call
                given = named.get("args", named.get("arguments", named.get("input")))
                result = results.get(str(call.get("id") or ""))
                received = {"name": named.get("name"), "input": given, "result": result}
                yield {"id": f"{at}-{number}", "toolCall": received}


@dataclass(frozen=True)
class ThreadMessages:
    """What the messages of `__state__` say: the human messages as pairs of id ("" if it has none)
    and text, and what the assistant said last, "" if nothing. `unread` says that a message came in
    a shape that is not known; `messages` are all of them in order."""

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
    """Read a serialized conversation; None where there is no list of messages."""
    listed = _value(messages)
    if not isinstance(listed, list):
        return None
    read = tuple(map(_read_message, listed))
    return ThreadMessages(
        humans=tuple((one.id, one.text) for one in read if one.speaker == "human"),
        answer=last_answer(read),
        unread=any(one.speaker == "unknown" for one in read),
        messages=read,
    )


def last_answer(messages: tuple[StateMessage, ...]) -> str:
    """What the assistant said last in these messages, "" where a question or a tool came after."""
    answer = ""
    for message in messages:
        if message.speaker in ("human", "tool") or message.calls:
            answer = ""
        elif message.speaker == "ai":
            said = str(whole_characters(message.text))
            answer = said if said.strip() else answer
    return answer


def text_of(content: Any) -> str:
    """The text of a record or a message: a string, or a list of parts that hold texts."""
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
    found = listed if isinstance(listed, list) else [listed]
    return tuple(call if isinstance(call, dict) else {} for call in found)


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


def _value(told: Any) -> Any:
    """The value of a JSON text; anything else as it is."""
    if not isinstance(told, str):
        return told
    try:
        return read_json(told)
    except ValueError:
        return told
