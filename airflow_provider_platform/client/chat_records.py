"""Folds the records of one run into its answer: records by id, deltas appended, the rest replaced.

This file knows what one record does to what is known of a run. Which records are the run's, and
when the run is over, is decided in `chat_connection` and `chat_run`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_provider_platform.client import chat_tools
from airflow_provider_platform.client.chat import Query

FINAL = "final"


@dataclass
class AssistantRecord:
    """One assistant record as folded so far."""

    id: str
    pieces: list[str] = field(default_factory=list)
    graph_path: list[str] = field(default_factory=list)
    in_process: bool = False
    sort: float | None = None
    tool_call: dict[str, Any] | None = None
    gaps: bool = False

    @property
    def content(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    @property
    def is_final(self) -> bool:
        """Whether this is a final answer by its place in the agent's graph."""
        return (
            self.tool_call is None
            and 1 <= len(self.graph_path) <= 2
            and self.graph_path[0] == FINAL
            and bool(self.content.strip())
        )

    @property
    def size(self) -> int:
        """A measure that grows with what is known; it tells progress from repetition."""
        done = self.tool_call is not None and chat_tools.has_result(self.tool_call)
        return 1 + sum(map(len, self.pieces)) + 2 * done + (not self.in_process)


class RecordFold:
    """The assistant records of one run, by id, in the order in which they first came."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._records: dict[str, AssistantRecord] = {}

    def restart(self) -> RecordFold:
        """An empty fold with the same limits."""
        return RecordFold(self._max_rows)

    def __iter__(self) -> Iterator[AssistantRecord]:
        return iter(self._records.values())

    @property
    def size(self) -> int:
        """How much is known (see AssistantRecord.size)."""
        return sum(record.size for record in self)

    @property
    def highest_sort(self) -> float | None:
        """The highest sequence number seen."""
        sorts = [record.sort for record in self if record.sort is not None]
        return max(sorts, default=None)

    def add(self, record: dict[str, Any], *, known_up_to: float | None) -> AssistantRecord | None:
        """Fold one assistant record in; returns what became of it.

        A delta whose `sort` is not above `known_up_to` repeats what an earlier connection brought
        and changes nothing; the record is marked as possibly incomplete until it is replaced.
        """
        record_id = record.get("id")
        if not isinstance(record_id, str):
            return None
        sort = record.get("sort")
        sort = float(sort) if isinstance(sort, int | float) and sort == sort else None
        tool_call = record.get("toolCall")
        if record.get("isDelta") is True and not isinstance(tool_call, dict):
            known = self._records.get(record_id)
            if known_up_to is not None and sort is not None and sort <= known_up_to:
                if known is not None and known.in_process:
                    known.gaps = True
                return None
            base = known or AssistantRecord(record_id)
            base.pieces.append(_text(record.get("content")))
            folded = base
        else:
            folded = AssistantRecord(record_id, pieces=[_text(record.get("content"))])
            if isinstance(tool_call, dict):
                folded.tool_call = chat_tools.trim_rows(
                    self._with_known_input(record_id, tool_call), self._max_rows
                )
        if isinstance(record.get("graphPath"), list):
            folded.graph_path = [str(node) for node in record["graphPath"]]
        folded.in_process = record.get("isInProcess") is True
        folded.sort = sort if sort is not None else folded.sort
        self._records[record_id] = folded
        return folded

    def _with_known_input(self, record_id: str, tool_call: dict[str, Any]) -> dict[str, Any]:
        known = self._records.get(record_id)
        if "input" in tool_call or known is None or known.tool_call is None:
            return tool_call
        return {"input": known.tool_call.get("input"), **tool_call}

    def final_answer(self) -> AssistantRecord | None:
        """The last final record: by sequence number where all have one, else by arrival."""
        finals = [record for record in self if record.is_final]
        if not finals:
            return None
        if all(record.sort is not None for record in finals):
            return max(enumerate(finals), key=lambda pair: (pair[1].sort or 0.0, pair[0]))[1]
        return finals[-1]

    def last_words(self) -> str:
        """What the agent said last, final or not."""
        said = [record.content for record in self if record.content.strip()]
        return said[-1] if said else ""

    def queries(self) -> list[Query]:
        """Every SQL call of the run, in order."""
        calls = [record.tool_call for record in self if record.tool_call is not None]
        return [chat_tools.read_query(call) for call in calls if chat_tools.is_query(call)]

    def tool_errors(self) -> list[str]:
        """The errors of all tool calls."""
        calls = [record.tool_call for record in self if record.tool_call is not None]
        errors = [chat_tools.error_of(call) for call in calls]
        return [error for error in errors if error is not None]

    def copy(self) -> RecordFold:
        """A copy whose later changes leave this one alone."""
        twin = RecordFold(self._max_rows)
        twin._records = {
            key: replace(record, pieces=list(record.pieces))
            for key, record in self._records.items()
        }
        return twin


def _text(content: Any) -> str:
    """A record's or a message's text: a string, or a list of parts that hold texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else _text(part.get("text"))
            for part in content
            if isinstance(part, str | dict)
        )
    return ""


@dataclass(frozen=True)
class ThreadMessages:
    """What the serialized messages of `__state__` say: the last human message and what the
    assistant said after it. Both are "" where there is none."""

    last_human: str = ""
    answer: str = ""
    human_id: str = ""


def read_messages(messages: Any) -> ThreadMessages | None:
    """The end of a serialized conversation; None where there is no list of messages."""
    if not isinstance(messages, list):
        return None
    human, human_id, answer = "", "", ""
    for message in messages:
        if not isinstance(message, dict):
            continue
        kind = _kind(message)
        fields = message.get("kwargs")
        fields = fields if isinstance(fields, dict) else message
        if kind.startswith("HumanMessage"):
            human, answer = _text(fields.get("content")), ""
            human_id = str(fields.get("id") or "")
        elif kind.startswith("AIMessage") and not fields.get("tool_calls"):
            answer = _text(fields.get("content")).strip() and _text(fields.get("content"))
    return ThreadMessages(human, answer, human_id)


def _kind(message: dict[str, Any]) -> str:
    name = message.get("id")
    if isinstance(name, list) and name:
        return str(name[-1])
    return ""
