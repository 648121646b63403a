"""What happened in one system test: an event for everything that became of each message, from the
sandbox's journal, and what Airflow says of the tasks that may have asked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.sandbox.state.journal import (
        MessageEntry,
        RunEntry,
        SandboxState,
        SyncEntry,
    )

ENDED_STATES = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})


class Happened(StrEnum):
    """What became of a message, one step after the other."""

    INVOKED = "invoked"
    """A request with it has arrived; by itself, its outcome is unknown."""
    ACCEPTED = "accepted"
    """It has started a run."""
    BUSY = "busy"
    """Refused unprocessed: its thread answers another one."""
    REPEATED = "repeated"
    """It came again while it was being answered."""
    RESUMED = "resumed"
    """It came again, as its suspended run needs."""
    FINISHED = "finished"
    FAILED = "failed"
    ABORTED = "aborted"
    """By a request of the provider."""
    ABORTED_OUTSIDE = "aborted outside"


_OF_OUTCOME = {
    "started": Happened.ACCEPTED,
    "busy": Happened.BUSY,
    "resubscribed": Happened.REPEATED,
    "resumed": Happened.RESUMED,
}
_ENDS = {Happened.FINISHED, Happened.FAILED, Happened.ABORTED, Happened.ABORTED_OUTSIDE}


@dataclass(frozen=True, order=True)
class Event:
    """`at` is a Unix time in seconds; `chat_id` the thread, None where none is known."""

    at: float
    what: Happened
    chat_id: str | None = None


@dataclass(frozen=True)
class Message:
    """One message id with everything that became of it, in the order of time."""

    message_id: str
    text: str | None
    """None where no request with it was processed."""
    events: tuple[Event, ...]

    def threads(self, *wanted: Happened) -> list[str | None]:
        """The threads where one of these happened, one for each time."""
        return [event.chat_id for event in self.events if event.what in wanted]

    @property
    def running(self) -> set[str | None]:
        """The threads in which it is being answered."""
        return set(self.threads(Happened.ACCEPTED)) - set(self.threads(*_ENDS))

    @property
    def ends(self) -> set[Happened]:
        return {event.what for event in self.events} & _ENDS

    @property
    def first_at(self) -> float:
        return self.events[0].at

    def __str__(self) -> str:
        reported = ", ".join(
            f"{event.what} {event.at - self.first_at:.1f}" for event in self.events
        )
        return f"{self.message_id} {self.text!r}: {reported}"


@dataclass(frozen=True)
class Task:
    """A task instance by Airflow's word."""

    name: str
    kind: Literal["chat", "sync"]
    state: str | None
    tries: int
    """How many there have been, or been counted."""
    clears: int = 0
    prompts: frozenset[str] = frozenset()
    """What it may have asked: what it was given at first, and what it has now."""
    timeout: float | None = None
    """Seconds from a submission to its deadline."""
    result: tuple[str | None, str | None] | None = None
    """Of what it has returned: chat id and message id."""

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES


@dataclass(frozen=True)
class History:
    """All messages and syncs of one test, and the tasks that it has started."""

    messages: list[Message]
    tasks: list[Task]
    syncs: list[SyncEntry] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, [*self.messages, *self.syncs, *self.tasks]))


def history_of(state: SandboxState, tasks: Iterable[Task]) -> History:
    """Put together what the sandbox and Airflow say."""
    events: dict[str, list[Event]] = defaultdict(list)
    texts: dict[str, str] = {}
    for request in state.requests:
        if request.has_input and request.message_id is not None:
            invoked = Event(request.at, Happened.INVOKED, request.chat_id)
            events[request.message_id].append(invoked)
    for message in state.messages:
        texts[message.message_id] = message.text
        events[message.message_id].append(_event_of(message))
    stopped = {
        (abort.chat_id, abort.message_id) for abort in state.aborts if abort.outcome == "aborted"
    }
    for run in state.runs:
        if run.ended_at is not None:
            by_provider = (run.chat_id, run.message_id) in stopped
            end = Event(run.ended_at, _end_of(run, by_provider), run.chat_id)
            events[run.message_id].append(end)
    messages = [
        # Sorted by time alone: the order of what happened at one time is that of the journal.
        Message(name, texts.get(name), tuple(sorted(reported, key=lambda event: event.at)))
        for name, reported in events.items()
    ]
    messages.sort(key=lambda message: message.first_at)
    return History(messages, list(tasks), state.syncs)


def _event_of(message: MessageEntry) -> Event:
    return Event(message.at, _OF_OUTCOME[message.outcome], message.chat_id)


def _end_of(run: RunEntry, by_provider: bool) -> Happened:
    if run.status == "aborted":
        return Happened.ABORTED if by_provider else Happened.ABORTED_OUTSIDE
    return Happened(run.status)
