"""One connection's part of a chat run: which records are the run's, and what ended the stream.

Theory of operation. A stream is a history, a mark, and what is new:

    earlier turns ...   (replayed)
    __cutoff__          names the thread, and whether it is streaming
    user echo           our message, under the id that we chose
    assistant records   thinking, tool calls, text
    __state__           the end; then, sometimes, __usage__

A follow-up request may replay our own run before or after the mark, or not at all. Hence:

- A record is the run's when it follows the user record with our message id, up to the next user
  record. Where no such echo comes, it is when it follows the mark.
- Our echo restarts the fold: what follows is the run from its beginning, so a replay changes
  nothing. A connection that then breaks before it told as much as was known gives way to that.
- On a connection without echo, deltas up to the highest sequence number known before it are
  repeats, unless that connection has replaced their record; within one connection no delta is
  ever dropped.
- Only the service ends a run: `__state__`, `__aborted__`, an error object. `__suspended__` is a
  pause. A connection that ends without one of these is broken, however cleanly it was closed.

This class is fed parsed records and does no I/O; `ChatRun` owns it, one for each connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.chat.lines import is_error
from airflow_provider_platform.client.chat.record_fold import has_plain_fields, is_delta
from airflow_provider_platform.client.chat.state_messages import ThreadMessages, read_messages

if TYPE_CHECKING:
    from airflow_provider_platform.client.chat.run_state import RunState


class End(Enum):
    """How a connection ended, as the service told it."""

    STATE = "state"
    ABORTED = "aborted"
    ERROR = "error"
    RPC_ERROR = "rpc error"


@dataclass
class ChatConnection:
    """What one connection has told so far.

    `submits` says that the request carried `input`, `first` that nothing was known of the run
    before. `end` stays None until the service ends the stream; `error` holds its words where it did
    so with an error. `streaming` is what the mark said of the thread, `state_streaming` what the
    end said. `in_part` says that records of the run came without its beginning. `may_hold_ours`
    says that a message of a given thread has our words and not our id, `received_ours` that a
    record of the run came. `complete` means that nothing more is worth reading, `closed_clean` that
    the service closed the stream in order.
    """

    run: RunState
    submits: bool
    first: bool
    known_up_to: float | None
    cutoff: bool = False
    echo: bool = False
    ours: bool = False
    streaming: bool | None = None
    state_streaming: bool | None = None
    suspended: bool = False
    end: End | None = None
    error: Any = None
    messages: ThreadMessages | None = None
    first_user_id: str | None = None
    last_user_id: str | None = None
    records: int = 0
    user_records: int = 0
    complete: bool = False
    stray_abort: bool = False
    usage_seen: bool = False
    in_part: bool = False
    may_hold_ours: bool = False
    received_ours: bool = False
    closed_clean: bool = False
    replaced: set[str] = field(default_factory=set)

    def take(self, record: Any) -> None:
        """Take one parsed line. Kinds that are not known are passed over."""
        self.records += 1
        if not isinstance(record, dict):
            return
        record_id = record.get("id")
        if is_error(record):
            self._take_error(record)
        elif record_id == "__cutoff__":
            self._take_cutoff(record)
        elif record_id == "__state__":
            self._take_state(record)
        elif record_id == "__aborted__":
            self._take_abort()
        elif record_id == "__suspended__":
            self._take_suspension()
        elif record_id == "__usage__":
            self._take_usage(record)
        elif record.get("role") == "user":
            self._take_user(record)
        elif (
            record.get("role") == "assistant"
            and isinstance(record_id, str)
            and not record_id.startswith("__")
        ):
            self._take_assistant(record_id, record)

    def take_plain(self, record: Any) -> bool:
        """Take a line as `read_plain_json` gives it, if it is an assistant record in which no
        number or odd type changes anything: nearly all of a stream. False, and nothing done, where
        it is another: that goes to `take`, read in full."""
        if type(record) is not dict:
            return False
        ours = self.ours and self.end is None
        if (
            ours
            and self.run.accepted
            and (self.known_up_to is None or str(record.get("id")) in self.replaced)
            and self.run.take_delta(record)
        ):
            self.records += 1
            if self.suspended or self.in_part or not self.received_ours:
                self._note_ours()
            return True
        record_id, role = record.get("id"), record.get("role")
        if (
            type(record_id) is not str
            or record_id.startswith("__")
            or record.get("error") is not None
        ):
            return False
        if role == "user":
            self._take_user(record)
        elif role != "assistant" or (ours and not has_plain_fields(record)):
            return False
        elif ours:
            self._take_assistant(record_id, record)
        self.records += 1
        return True

    def finish(self, *, clean: bool) -> None:
        """The stream ended; what was waiting for its context is settled."""
        self.closed_clean = clean
        if self.stray_abort and clean and self.end is None and self._is_bare:
            self.end = End.ABORTED

    @property
    def _is_bare(self) -> bool:
        """Whether nothing has told which turn the stream speaks of."""
        return not self.cutoff and not self.user_records

    @property
    def passed_by(self) -> bool:
        """Whether the thread has told of a later turn than ours."""
        return self.echo and self.last_user_id != self.run.message_id

    def _take_error(self, record: dict[str, Any]) -> None:
        if self.end is not None:
            return
        self.error = record["error"]
        coded = isinstance(self.error, dict) and "code" in self.error
        self.end = End.RPC_ERROR if coded or "jsonrpc" in record else End.ERROR
        self.complete = True

    def _take_cutoff(self, record: dict[str, Any]) -> None:
        state = record.get("state")
        state = state if isinstance(state, dict) else {}
        self.cutoff = True
        self.stray_abort = False
        self.streaming = _flag(state.get("isStreaming"))
        self.run.learn_chat_id(state.get("chatId"))
        if not self.echo:
            self.ours = True
            self.suspended = False

    def _take_state(self, record: dict[str, Any]) -> None:
        if self.end is not None:
            return
        state = record.get("state")
        state = state if isinstance(state, dict) else {}
        self.state_streaming = _flag(state.get("isStreaming"))
        self.run.learn_chat_id(state.get("chatId"))
        self.messages = read_messages(state.get("messages"))
        self.end = End.STATE
        self.complete = self.usage_seen

    def _take_abort(self) -> None:
        """Only our run's abort ends it: an earlier turn's may be replayed before the mark."""
        if self.ours and self.end is None:
            self.end = End.ABORTED
            self.complete = True
        elif self._is_bare:
            self.stray_abort = True

    def _take_suspension(self) -> None:
        """Only our run's suspension counts, as with an abort."""
        if self.ours:
            self.suspended = True
            self._accept_after_cutoff()
        elif self._is_bare:
            self.suspended = True

    def _take_usage(self, record: dict[str, Any]) -> None:
        if not self.ours and not (self.end is not None and self._is_bare):
            return
        usage = record.get("usage")
        plain = {k: v for k, v in record.items() if k not in _RECORD_FIELDS}
        self.run.usage = usage if isinstance(usage, dict) else plain or None
        self.usage_seen = True
        self.complete = self.end is not None

    def _take_user(self, record: dict[str, Any]) -> None:
        self.user_records += 1
        received_id = str(record.get("id") or "")
        if received_id == self.run.message_id or self._answers_our_prompt:
            self.run.learn_echo_id(received_id)
        self.ours = received_id == self.run.echo_id
        if not self.ours and self._has_our_words(received_id, record):
            # In a given thread somebody else may have said the same.
            self.ours = not self.run.thread_given
            self.may_hold_ours = self.run.thread_given
        self.last_user_id = self.run.message_id if self.ours else received_id
        self.first_user_id = self.first_user_id or self.last_user_id
        if self.ours:
            self.echo = True
            self.suspended = False
            self.known_up_to = None
            self.run.take_echo()

    @property
    def _answers_our_prompt(self) -> bool:
        """Whether the message being told is the first that answers our prompt in a thread that
        nobody else writes to: ours, then, whatever the service made of its id."""
        first = self.cutoff and self.user_records == 1
        return self.submits and first and not self.run.thread_given

    def _has_our_words(self, received_id: str, record: dict[str, Any]) -> bool:
        text = record.get("content")
        return isinstance(text, str) and self.run.may_be_ours(received_id, text)

    def _take_assistant(self, record_id: str, record: dict[str, Any]) -> None:
        if not self.ours or self.end is not None:
            return
        self._accept_after_cutoff()
        if not self.run.accepted:
            return
        self._note_ours()
        known_up_to = None if record_id in self.replaced else self.known_up_to
        if not is_delta(record):
            self.replaced.add(record_id)
        self.run.take_assistant(record, known_up_to=known_up_to)

    def _note_ours(self) -> None:
        self.suspended = False
        self.received_ours = True
        self.in_part = not (self.first or self.echo)

    def _accept_after_cutoff(self) -> None:
        """What follows the mark shows that our message is processed: in answer to our prompt, or
        in a thread that nobody else writes to."""
        if self.cutoff and (self.submits or self.echo or not self.run.thread_given):
            self.run.accepted = True


_RECORD_FIELDS = {"id", "role", "sort", "isDelta", "isInProcess", "graphPath", "content"}


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
