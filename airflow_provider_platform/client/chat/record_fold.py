"""Folds the records of one run into its answer: records by id, deltas appended, the rest replaced.

This file knows what one record does to what is known of a run. Which records are the run's, and
when the run is over, is decided in `run_records` and `run`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from airflow_provider_platform.client.chat.state_messages import MessageTurn, text_of
from airflow_provider_platform.client.chat.tool_calls import (
    Query,
    Search,
    ToolCall,
    read_tool_call,
)
from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.formats.json_text import whole_characters
from airflow_provider_platform.client.formats.service_text import MAX_SERVICE_TEXT

FINAL = "final"
_EXACT = 2**53
"""Whole numbers up to here are numbers as a float holds them."""
MAX_TEXT = 64 * 1024 * 1024
"""Characters that the records of a run may hold in all: a chat that never ends must end."""
_SHOWN = MAX_SERVICE_TEXT + 1
"""Characters of a thought that a log shows."""
RECORD_COST = 256
"""What a record counts beside its texts, so that empty ones without number count too."""
_COST_OF_BYTE = 9
"""Characters that one byte of a stream can come to at most: those of an empty record."""


@dataclass
class AssistantRecord:
    """One assistant record as folded so far. `received` is the place of its latest part among all
    that was received."""

    id: str
    text: StringIO = field(default_factory=StringIO)
    thinking: StringIO | None = None
    graph_path: list[str] = field(default_factory=list)
    in_process: bool = False
    sort: float | None = None
    tool_call: ToolCall | None = None
    received: int = 0

    @property
    def content(self) -> str:
        """The text so far."""
        return str(whole_characters(self.text.getvalue()))

    @property
    def thought(self) -> str:
        """What the agent thought, "" if it told nothing."""
        said = "" if self.thinking is None else self.thinking.getvalue().strip()
        return str(whole_characters(said))

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
    def cost(self) -> int:
        """Characters that the record keeps in memory, about."""
        size = RECORD_COST + len(self.id) + self.text.tell()
        if self.thinking is not None:
            size += self.thinking.tell()
        return size if self.tool_call is None else size + self.tool_call.cost

    @property
    def size(self) -> int:
        """A measure that grows with what is known; it tells progress from repetition."""
        done = self.tool_call is not None and self.tool_call.has_result
        return 1 + self.text.tell() + 2 * done + (not self.in_process)


class RecordFold:
    """The assistant records of one run, by id, in the order in which they first came. With
    `details` the agent's thoughts and what it found in the data model are kept too."""

    def __init__(self, max_rows: int, *, details: bool = False) -> None:
        self._max_rows = max_rows
        self._details = details
        self._records: dict[str, AssistantRecord] = {}
        self._received = 0
        self._unweighed = 0
        self._weigh_after = MAX_TEXT // _COST_OF_BYTE

    def restart(self) -> RecordFold:
        """An empty fold with the same limits."""
        return RecordFold(self._max_rows, details=self._details)

    def of_messages(self, turn: MessageTurn) -> RecordFold:
        """A fold with the same limits that holds the tool calls of a turn's messages. Raises
        PlatformProtocolError if they hold too much."""
        fold = self.restart()
        for record in turn.call_records():
            fold.add(record, known_up_to=None)
        fold.weigh()
        return fold

    def __iter__(self) -> Iterator[AssistantRecord]:
        return iter(self._records.values())

    @property
    def cost(self) -> int:
        """Characters that the records keep in memory, about."""
        return sum(record.cost for record in self)

    def note_bytes(self, count: int) -> None:
        """So many bytes of the stream have been folded in. Raises PlatformProtocolError where the
        records hold too much; they are weighed only when so many bytes can have come to that."""
        self._unweighed += count
        if self._unweighed > self._weigh_after:
            self.weigh()

    def weigh(self) -> None:
        """Raises PlatformProtocolError where the records hold too much."""
        cost = self.cost
        if cost > MAX_TEXT:
            raise PlatformProtocolError(
                f"The records of the chat hold more than {MAX_TEXT // 2**20} MB of text. The run "
                "does not seem to end, so it was not read on."
            )
        self._unweighed = 0
        self._weigh_after = max((MAX_TEXT - cost) // _COST_OF_BYTE, MAX_TEXT // 64)

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
        """Fold one assistant record in (its `id` is a text); returns what became of it.

        A delta whose `sort` is not above `known_up_to` repeats what an earlier connection brought
        and changes nothing.
        """
        record_id: str = record["id"]
        known = self._records.get(record_id)
        sort = _number(record.get("sort"))
        tool_call = record.get("toolCall")
        if is_delta(record):
            if known_up_to is not None and sort is not None and sort <= known_up_to:
                return None
            folded = known or AssistantRecord(record_id)
        else:
            folded = AssistantRecord(record_id)
            if isinstance(tool_call, dict):
                before = known.tool_call if known else None
                folded.tool_call = read_tool_call(
                    tool_call, before, self._max_rows, details=self._details
                )
        thinking = record.get("thinking")
        if thinking or (known is not None and known.thinking is not None):
            self._add_thought(folded, thinking, known)
        folded.text.write(text_of(record.get("content")))
        if isinstance(record.get("graphPath"), list):
            folded.graph_path = [str(node) for node in record["graphPath"]]
        folded.in_process = record.get("isInProcess") is True
        folded.sort = sort if sort is not None else folded.sort
        self._received += 1
        folded.received = self._received
        self._records[record_id] = folded
        return folded

    def append(self, record: dict[str, Any]) -> bool:
        """Fold in what nearly every record of a stream is: one more delta of a record that is
        known, at the same place. Does what `add` does, or nothing: False where this is not such a
        record."""
        try:
            known = self._records[record["id"]]
            content = record["content"]
            if (
                record["isDelta"] is not True
                or record["role"] != "assistant"
                or record["graphPath"] != known.graph_path
                or type(content) is not str
                or "toolCall" in record
                or "error" in record
            ):
                return False
        except (KeyError, TypeError):
            return False
        thinking = record.get("thinking")
        if thinking and not self._append_thought(known, thinking):
            return False
        sort = record.get("sort")
        if type(sort) is not int or not -_EXACT <= sort <= _EXACT:
            sort = _number(sort)
        if sort is not None:
            known.sort = sort
        known.text.write(content)
        known.in_process = record.get("isInProcess") is True
        known.received = self._received = self._received + 1
        return True

    def _add_thought(
        self, folded: AssistantRecord, thinking: Any, known: AssistantRecord | None
    ) -> None:
        """Deltas append to a record's thought; a full record replaces it, unless it brings none."""
        if not isinstance(thinking, str) or not thinking:
            folded.thinking = known.thinking if known else None
            return
        if folded is not known or folded.thinking is None:
            folded.thinking = StringIO()
        folded.thinking.write(thinking if self._details else thinking[:_SHOWN])

    def _append_thought(self, known: AssistantRecord, thinking: Any) -> bool:
        """More of a thought that is known to have begun; False for anything else."""
        if known.thinking is None or type(thinking) is not str:
            return False
        if self._details or known.thinking.tell() <= _SHOWN:
            known.thinking.write(thinking)
        return True

    def final_answer(self) -> AssistantRecord | None:
        """The last final record as received; `sort` orders the thread, not what is final."""
        finals = [record for record in self if record.is_final]
        return max(finals, key=lambda record: record.received, default=None)

    @property
    def has_answer(self) -> bool:
        """Whether there is a final answer that is complete."""
        final = self.final_answer()
        return final is not None and not final.in_process

    @property
    def ends_with_answer(self) -> bool:
        """Whether the run, by what is known of it, is at its end: a complete final answer, and
        nothing after it or under way."""
        final = self.final_answer()
        return final is not None and not any(
            record.in_process or record.received > final.received for record in self
        )

    def last_words(self) -> str:
        """What the agent said last, final or not."""
        said = [record.content for record in self if record.content.strip()]
        return said[-1] if said else ""

    def queries(self) -> list[Query]:
        """Every SQL call of the run, in order."""
        calls = [record.tool_call for record in self if record.tool_call is not None]
        return [call.query() for call in calls if call.is_query]

    def searches(self) -> list[Search]:
        """Every search in the data model, in order."""
        calls = [record.tool_call for record in self if record.tool_call is not None]
        return [call.search() for call in calls if call.is_search]

    def thoughts(self) -> list[str]:
        """What the agent thought, record by record."""
        return [record.thought for record in self if record.thought]

    def tool_errors(self) -> list[str]:
        """The errors of all tool calls."""
        calls = [record.tool_call for record in self if record.tool_call is not None]
        errors = [call.error for call in calls]
        return [error for error in errors if error is not None]


def is_delta(record: dict[str, Any]) -> bool:
    """Whether an assistant record adds to what is known of it; any other replaces that."""
    return record.get("isDelta") is True and not isinstance(record.get("toolCall"), dict)


def has_plain_fields(record: dict[str, Any]) -> bool:
    """Whether a record's texts are texts, so that what is read of it holds no number but `sort`."""
    path, call = record.get("graphPath"), record.get("toolCall")
    if type(record.get("content", "")) is not str:
        return False
    if path is not None and not (type(path) is list and all(type(node) is str for node in path)):
        return False
    return call is None or (
        type(call) is dict
        and all(type(call.get(name, "")) is str for name in ("name", "input", "result"))
    )


def _number(value: Any) -> float | None:
    if type(value) is not int and type(value) is not float:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if -math.inf < number < math.inf else None
