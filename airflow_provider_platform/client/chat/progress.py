"""What of a run is worth telling: each thing once, however many connections tell of it."""

from __future__ import annotations

from airflow_provider_platform.client.chat.events import (
    Accepted,
    ChatEvent,
    StageChanged,
    ThreadNamed,
    ToolCallEnded,
)
from airflow_provider_platform.client.chat.records import AssistantRecord
from airflow_provider_platform.client.chat.tool_calls import ToolCall


class ProgressEvents:
    """Gathers the events of a run; `now` is the time (Unix) of the piece that is being read."""

    def __init__(self, *, thread_known: bool, accepted: bool) -> None:
        self.now = 0.0
        self._events: list[ChatEvent] = []
        self._told_thread = thread_known
        self._told_accepted = accepted
        self._stage: str | None = None
        self._staged: set[str] = set()
        self._calls_began: dict[str, float] = {}
        self._calls_told: set[str] = set()

    def take(self) -> list[ChatEvent]:
        """What has been gathered since the last time."""
        events, self._events = self._events, []
        return events

    def note_thread(self, chat_id: str, message_id: str, *, accepted: bool) -> None:
        """The thread has a name; acceptance is told before all that came with it."""
        if self._told_accepted:
            return
        if accepted:
            self._told_accepted = True
            self._events.insert(0, Accepted(chat_id, message_id))
        elif not self._told_thread:
            self._events.append(ThreadNamed(chat_id, message_id))
        self._told_thread = True

    def forget_thread(self) -> None:
        """The thread is gone; the next one that is named is news."""
        self._told_thread = False

    def note_record(self, record: AssistantRecord) -> None:
        """A record of the run has come, or more of it."""
        stage = record.graph_path[0] if record.graph_path else None
        if stage is not None and record.id not in self._staged:
            self._staged.add(record.id)
            if stage != self._stage:
                self._stage = stage
                self._events.append(StageChanged(stage))
        if record.tool_call is not None:
            self._note_tool_call(record.id, record.tool_call)

    def _note_tool_call(self, record_id: str, call: ToolCall) -> None:
        began = self._calls_began.setdefault(record_id, self.now)
        if not call.has_result or record_id in self._calls_told:
            return
        self._calls_told.add(record_id)
        self._events.append(
            ToolCallEnded(
                tool=call.name,
                title=call.title,
                seconds=self.now - began,
                rows=call.rows if call.is_query else None,
                total_rows=call.total_rows if call.is_query else None,
                error=call.error,
            )
        )
