"""The assistant records of one turn, folded by id: a delta appends, a full record replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.json_text import replace_surrogates
from airflow_provider_platform.resources.chat.record_reader import (
    text_of,
)
from airflow_provider_platform.resources.chat.tool_calls import (
    Query,
    Search,
    ToolCall,
    read_tool_call,
)

MAX_TEXT = 64 * 1024 * 1024
"""Characters that the records of a run may hold in all: a chat that never ends must end."""
RECORD_COST = 256
"""Characters that a record counts beside its text, so that countless empty records count too."""
_COST_OF_BYTE = 9
"""Characters that one byte of a stream can cost at most: in an empty record."""
_FINAL = "final"


@dataclass(slots=True)
class AssistantRecord:
    """One assistant record as folded so far. `received` is the position of its latest part among
    all parts received."""

    id: str
    text: StringIO = field(default_factory=StringIO)
    is_blank: bool = True
    is_cut: bool = False
    """Whether the beginning of its text is unknown."""
    closed_without_text: bool = False
    """Whether the full record that closed the message repeated none of its text."""
    thinking: StringIO | None = None
    graph_path: list[str] = field(default_factory=list)
    """The first three parts of its place in the agent's graph: nobody needs more."""
    in_process: bool = False
    tool_call: ToolCall | None = None
    received: int = 0

    @property
    def content(self) -> str:
        """The text so far."""
        return str(replace_surrogates(self.text.getvalue()))

    @property
    def thought(self) -> str:
        """What the agent thought, "" if the service sent nothing."""
        thought = "" if self.thinking is None else self.thinking.getvalue().strip()
        return str(replace_surrogates(thought))

    @property
    def is_complete(self) -> bool:
        """Whether the record is whole and the service has closed it."""
        return not (self.in_process or self.is_cut)

    @property
    def is_final(self) -> bool:
        """Whether this is a final answer by its place in the agent's graph."""
        return (
            self.tool_call is None
            and 1 <= len(self.graph_path) <= 2
            and self.graph_path[0] == _FINAL
            and not self.is_blank
        )

    @property
    def cost(self) -> int:
        """About how many characters the record keeps in memory."""
        size = RECORD_COST + len(self.id) + self.text.tell() + sum(map(len, self.graph_path))
        if self.thinking is not None:
            size += self.thinking.tell()
        return size if self.tool_call is None else size + self.tool_call.cost

    @property
    def size(self) -> int:
        """A measure that grows with what is known: it distinguishes progress from repetition."""
        done = self.tool_call is not None and self.tool_call.result is not None
        return 1 + self.text.tell() + 2 * done + (not self.in_process)


@dataclass(frozen=True)
class Records:
    """The assistant records of a turn, in the order in which they first came."""

    records: Iterable[AssistantRecord]

    def __iter__(self) -> Iterator[AssistantRecord]:
        return iter(self.records)

    @property
    def size(self) -> int:
        """How much is known (see AssistantRecord.size)."""
        return sum(record.size for record in self)

    def final_answer(self) -> AssistantRecord | None:
        """The final record that was received last. (`sort` orders the thread, it does not say what
        is final.)"""
        finals = [record for record in self if record.is_final]
        return max(finals, key=lambda record: record.received, default=None)

    @property
    def has_answer(self) -> bool:
        """Whether there is a final answer that is complete."""
        final = self.final_answer()
        return final is not None and final.is_complete

    @property
    def ends_with_answer(self) -> bool:
        """Whether the records are those of a run that is over: a complete final answer, no record
        after it and none in process."""
        final = self.final_answer()
        return final is not None and not any(
            record.in_process or record.received > final.received for record in self
        )

    def last_text(self) -> str:
        """The text of the last record that has one, final or not."""
        texts = [record.content for record in self if record.content.strip()]
        return texts[-1] if texts else ""

    def queries(self) -> list[Query]:
        """Every SQL call, in order."""
        return [call.query() for call in self._tool_calls() if call.is_query]

    def searches(self) -> list[Search]:
        """Every search of the data model, in order."""
        return [call.search() for call in self._tool_calls() if call.is_search]

    def thoughts(self) -> list[str]:
        """What the agent thought, one string per record."""
        return [thought for record in self if (thought := record.thought)]

    def tool_errors(self) -> list[str]:
        """The errors of all tool calls."""
        errors = [call.error for call in self._tool_calls()]
        return [error for error in errors if error is not None]

    def _tool_calls(self) -> list[ToolCall]:
        return [record.tool_call for record in self if record.tool_call is not None]


class RecordFold:
    """Folds the assistant records of one turn by id. `kept` are records from before, whose tool
    calls a record may continue. `after` is the turn's fold before this one: its counts continue, so
    that a turn that is sent again and again has the limit of one. `received` counts the parts."""

    def __init__(
        self,
        max_rows: int,
        *,
        details: bool = False,
        kept: Mapping[str, AssistantRecord] | None = None,
        after: RecordFold | None = None,
    ) -> None:
        self.records: dict[str, AssistantRecord] = {}
        self.received: int = after.received if after else 0
        self._max_rows = max_rows
        self._details = details
        self._kept = kept or {}
        self.unchecked_bytes: int = after.unchecked_bytes if after else 0
        self.check_after: int = after.check_after if after else MAX_TEXT // _COST_OF_BYTE

    @property
    def cost(self) -> int:
        """About how many characters the records keep in memory."""
        kept = (record for name, record in self._kept.items() if name not in self.records)
        return sum(record.cost for records in (kept, self.records.values()) for record in records)

    def count_bytes(self, count: int) -> None:
        """Note that so many bytes of the stream were folded in. Raises PlatformProtocolError if
        the records hold too much. They are checked only once so many bytes can cost that much."""
        self.unchecked_bytes += count
        if self.unchecked_bytes > self.check_after:
            cost = self.cost
            if cost > MAX_TEXT:
                raise PlatformProtocolError(
                    f"The chat sent more than {MAX_TEXT // 2**20} MB of text. The run does not "
                    "seem to end, so the task stopped reading."
                )
            self.unchecked_bytes = 0
            self.check_after = max((MAX_TEXT - cost) // _COST_OF_BYTE, MAX_TEXT // 64)

    def add(self, record: dict[str, Any], *, joined_late: bool = False) -> AssistantRecord:
        """Fold in one assistant record (its `id` is a string), and return the folded record. With
        `joined_late` the beginning of its text may have been sent before."""
        record_id: str = record["id"]
        known = self.records.get(record_id)
        content = record.get("content")
        text = content if type(content) is str else text_of(content)
        call = record.get("toolCall")
        is_delta = record.get("isDelta") is True and type(call) is not dict
        if is_delta and known is not None:
            folded = known
        else:
            folded = AssistantRecord(record_id, is_cut=is_delta and joined_late)
            if type(call) is dict:
                before = known or self._kept.get(record_id)
                earlier = before.tool_call if before is not None else None
                folded.tool_call = read_tool_call(
                    call, earlier, self._max_rows, details=self._details
                )
            elif known is not None:
                folded.thinking = known.thinking
                if content is None and not known.is_blank:
                    folded.closed_without_text, text = True, known.text.getvalue()
                    folded.is_cut = known.is_cut
            self.records[record_id] = folded
        if text:
            folded.text.write(text)
            folded.is_blank = folded.is_blank and not text.strip()
        thinking = record.get("thinking")
        if thinking and type(thinking) is str:
            if folded.thinking is None or not is_delta:
                folded.thinking = StringIO()
            folded.thinking.write(thinking)
        path = record.get("graphPath")
        if path != folded.graph_path and type(path) is list:
            folded.graph_path = [part if type(part) is str else "" for part in path[:3]]
        folded.in_process = record.get("isInProcess") is True
        self.received += 1
        folded.received = self.received
        return folded
