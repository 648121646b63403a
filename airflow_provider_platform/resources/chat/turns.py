"""One answer of the service as turns: a user record begins a turn, and the assistant records up to
the next user record belong to it. `run_state` and `thread` say which turns they read, and judge
them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.json_text import db_safe, storable
from airflow_provider_platform.resources.chat.record_fold import AssistantRecord, RecordFold
from airflow_provider_platform.resources.chat.record_reader import (
    RecordReader,
    is_assistant,
    is_error,
    is_rpc_error,
    says_busy,
)
from airflow_provider_platform.resources.chat.state_messages import ThreadMessages, read_messages


class End(Enum):
    """How the service ended a stream."""

    STATE = "state"
    ABORTED = "aborted"
    ERROR = "error"
    RPC_ERROR = "rpc error"


@dataclass
class Turn:
    """One user message and the records that answer it."""

    message_id: str
    prompt: str
    fold: RecordFold
    usage: dict[str, Any] | None = None


class TurnReader:
    """One answer of the service as turns: facts only, which a subclass judges.

    `turn` is the turn that records belong to now, None if they belong to none that is read.
    """

    def __init__(self, where: object) -> None:
        self.turn: Turn | None = None
        self.history_received = False
        """The cutoff record has come."""
        self.chat_id: str | None = None
        self.streaming: bool | None = None
        """What the cutoff record said of the thread."""
        self.end: End | None = None
        """None until the service ends the stream."""
        self.error: Any = None
        self.streaming_at_end: bool | None = None
        """Whether the thread was streaming, according to `__state__`."""
        self.messages: ThreadMessages | None = None
        self.suspended = False
        self.usage_received = False
        self.user_records = 0
        self.records = 0
        self._where = where
        self._reader = RecordReader(where)

    @property
    def ended(self) -> bool:
        """Whether the service has ended the stream. The history replays aborts too, so a later turn
        may follow one that comes before the cutoff record."""
        replayed = self.end is End.ABORTED and not (self.history_received or self.is_bare)
        return self.end is not None and not replayed

    @property
    def complete(self) -> bool:
        """Whether nothing more is worth reading."""
        refused = self.end is End.RPC_ERROR or (self.end is End.ERROR and says_busy(self.error))
        return self.ended and (self.usage_received or refused)

    @property
    def received_data(self) -> bool:
        """Whether the last bytes held more than blank lines."""
        return self._reader.active

    @property
    def refused_at_once(self) -> bool:
        """Whether only the refusal of the request arrived."""
        return self.records <= 1

    @property
    def is_bare(self) -> bool:
        """Whether no record has shown to which turn the stream belongs."""
        return not self.history_received and not self.user_records

    def begin(self, record: dict[str, Any]) -> Turn | None:
        """Return the turn that this user record begins, None if it is not read."""
        raise NotImplementedError

    def cutoff(self) -> None:
        """The cutoff record has come."""

    def may_take(self) -> bool:
        """Return whether an assistant record may be folded in now."""
        return True

    def took(self, record: AssistantRecord) -> None:
        """A record of the turn, or more of it, was folded in."""

    def aborted(self) -> None:
        """A turn was aborted. The history may replay the abort of an earlier turn."""

    joined_late: bool = False
    """Whether this answer began in the middle of the turn."""

    def feed(self, data: bytes) -> None:
        """Read some bytes of the answer. Raises PlatformProtocolError and PlatformAddressError."""
        try:
            for record in self._reader.feed(data):
                self._take(record)
            if self.turn is not None:
                self.turn.fold.count_bytes(len(data))
        except PlatformProtocolError as error:
            if self.end is None:
                where = error.where or self._where
                raise PlatformProtocolError(error.reason, where=where) from error

    def finish(self) -> None:
        """End the answer. A last line without its line end may be cut. It counts only if it is
        whole and ends a run."""
        record = self._reader.rest()
        if self.ended or not isinstance(record, dict):
            return
        if is_error(record) or record.get("id") == "__state__":
            self._take(record)

    def _take(self, record: Any) -> None:
        """Take one record. Unknown records are ignored."""
        self.records += 1
        if type(record) is not dict:
            return
        if is_assistant(record):
            if self.turn is not None and self.end is None and self.may_take():
                self.took(self.turn.fold.add(record, joined_late=self.joined_late))
            return
        record_id = record.get("id")
        if is_error(record):
            self._take_error(record)
        elif record_id == "__cutoff__":
            self.history_received = True
            self.streaming = _flag(self._state_of(record).get("isStreaming"))
            self.cutoff()
        elif record_id == "__state__":
            self._take_state(record)
        elif record_id == "__aborted__":
            if self.turn is not None and self.end is None:
                self.end = End.ABORTED
            self.aborted()
        elif record_id == "__suspended__":
            self.suspended = self.suspended or self.turn is not None or self.is_bare
            if self.turn is not None:
                self.may_take()
        elif record_id == "__usage__":
            self._take_usage(record)
        elif record.get("role") == "user":
            self.user_records += 1
            self.turn = self.begin(record)

    def _take_error(self, record: dict[str, Any]) -> None:
        if self.end is None:
            self.error = record["error"]
            self.end = End.RPC_ERROR if self.is_refusal(record) else End.ERROR

    def is_refusal(self, record: dict[str, Any]) -> bool:
        """Return whether an error record says that the service refused the credential."""
        return is_rpc_error(record)

    def _take_state(self, record: dict[str, Any]) -> None:
        if self.end is None:
            state = self._state_of(record)
            self.streaming_at_end = _flag(state.get("isStreaming"))
            self.messages = read_messages(state.get("messages"))
            self.end = End.STATE

    def _state_of(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the state that a record carries. The thread's id is learned from it."""
        state = record.get("state")
        state = state if isinstance(state, dict) else {}
        chat_id = state.get("chatId")
        if self.chat_id is None and isinstance(chat_id, str) and chat_id.isprintable():
            self.chat_id = chat_id or None
        return state

    def _take_usage(self, record: dict[str, Any]) -> None:
        if self.turn is None and not (self.ended and self.is_bare):
            return
        usage = record.get("usage")
        if not isinstance(usage, dict):
            usage = {name: value for name, value in record.items() if name not in _RECORD_FIELDS}
        with suppress(ValueError):  # nested too deeply
            self.usage(db_safe(storable(usage or None)))
        self.usage_received = True

    def usage(self, usage: dict[str, Any] | None) -> None:
        """The tokens that the turn used have come."""
        if self.turn is not None:
            self.turn.usage = usage


_RECORD_FIELDS = {"id", "role", "sort", "isDelta", "isInProcess", "graphPath", "content", "usage"}


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
