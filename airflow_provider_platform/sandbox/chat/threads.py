"""Chat threads and their runs: owners, records, and what can be replayed."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Literal

from airflow_provider_platform.sandbox.chat.agent import Query, Record, serialized, state_record
from airflow_provider_platform.sandbox.state.journal import RunEntry

Status = Literal["streaming", "suspended", "finished", "aborted", "failed"]


class Subscription:
    """The position of one connection in a run's log."""

    def __init__(self, run: Run, start: int) -> None:
        self.run = run
        self.sent = start


class Run:
    """One turn of the agent: a growing log of records that any number of connections can follow."""

    def __init__(self, thread: Thread, message_id: str, text: str, entry: RunEntry) -> None:
        self.thread = thread
        self.message_id = message_id
        self.text = text
        self.entry = entry
        self.log: list[Record] = []
        self.messages: list[Record] = [serialized("HumanMessage", text, message_id)]
        """The serialized messages of this turn: the question, and the messages that the run has
        added."""
        self.last_query: Query | None = None
        self.status: Status = "streaming"
        self.resume_on: Literal["follow_up", "input"] = "input"
        self.resume_until = 0.0
        """Unix time of the sandbox's clock until which a suspended run can be resumed."""
        self.resumed = asyncio.Event()
        self.opened = asyncio.Event()
        """Set when the first connection has received its ``__cutoff__`` or has ended."""
        self.task: asyncio.Task[None] | None = None
        self._subscriptions: set[Subscription] = set()
        self._pulse = asyncio.Event()
        self._served = asyncio.Event()

    @property
    def active(self) -> bool:
        return self.status == "streaming"

    def append(self, record: Record) -> None:
        self.log.append(record)
        self.entry.records = len(self.log)
        self.pulse()

    def pulse(self) -> None:
        """Wake the connections that follow this run."""
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    async def changed(self) -> None:
        await self._pulse.wait()

    def become(self, status: Status) -> None:
        self.status = status
        self.entry.status = status
        if status not in ("streaming", "suspended"):
            self.entry.ended_at = time.time()
        self.pulse()

    def subscribe(self, start: int) -> Subscription:
        subscription = Subscription(self, start)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        self.served()

    def served(self) -> None:
        """Report that a connection has received all records or has ended."""
        served, self._served = self._served, asyncio.Event()
        served.set()

    async def delivered(self) -> None:
        """Return when every connected client has received all records."""
        while any(one.sent < len(self.log) for one in self._subscriptions):
            await self._served.wait()

    def replayable(self) -> list[Record]:
        """Return the records of this turn for a replay: without states, cutoff records and
        errors."""
        return [r for r in self.log if not str(r.get("id") or "__").startswith("__")]


class Thread:
    """A conversation of one identity with one agent."""

    def __init__(self, owner: str, agent: str) -> None:
        self.chat_id = str(uuid.uuid4())
        self.agent = agent
        self.owner = owner
        self.runs: list[Run] = []

    @property
    def current(self) -> Run | None:
        """The run that is streaming or suspended, if any: always the last one."""
        last = self.runs[-1] if self.runs else None
        return last if last is not None and last.status in ("streaming", "suspended") else None

    @property
    def streaming(self) -> bool:
        return self.current is not None and self.current.active

    @property
    def last_query(self) -> Query | None:
        return next((r.last_query for r in reversed(self.runs) if r.last_query), None)

    def messages(self) -> list[Record]:
        return [message for run in self.runs for message in run.messages]

    def state(self) -> Record:
        return state_record(self.messages())

    def cutoff(self, streaming: bool) -> Record:
        return {
            "id": "__cutoff__",
            "role": "assistant",
            "sort": 0,
            "state": {"chatId": self.chat_id, "isStreaming": streaming},
        }


class Threads:
    """All threads by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Thread] = {}

    def create(self, owner: str, agent: str) -> Thread:
        thread = Thread(owner, agent)
        self._by_id[thread.chat_id] = thread
        return thread

    def all(self) -> list[Thread]:
        return list(self._by_id.values())

    def get(self, chat_id: str) -> Thread | None:
        return self._by_id.get(chat_id)

    def of_agent(self, chat_id: str, agent: str) -> Thread | None:
        """Return the thread of this agent; None if the thread is another agent's."""
        thread = self.get(chat_id)
        return thread if thread is not None and thread.agent == agent else None


def fold(records: list[Record]) -> list[Record]:
    """Return one full record for each id: deltas are joined, and later full records replace earlier
    ones."""
    folded: dict[str, Record] = {}
    for record in records:
        known = folded.get(record["id"])
        if known is not None and record.get("isDelta"):
            known["content"] = known.get("content", "") + record.get("content", "")
            known["sort"] = record.get("sort", known.get("sort"))
        elif known is not None:
            folded[record["id"]] = {**record}
        else:
            folded[record["id"]] = {**record, "isDelta": False}
    return list(folded.values())
