"""What happened at the sandbox, as typed entries without secrets, for tests to count."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter


@dataclass
class RequestEntry:
    """One request to either API. Times are Unix times in seconds.

    ``status`` is None while nothing has been answered. ``ended`` is ``complete``, ``cut`` (by the
    sandbox), ``disconnected`` (by the client) or None while it lasts. Requests with the same
    ``port`` (the client's) came on one connection.
    """

    number: int
    at: float
    api: str | None
    method: str
    path: str
    query: str
    headers: list[str]
    port: int | None = None
    chat_id: str | None = None
    message_id: str | None = None
    has_input: bool | None = None
    identity: str | None = None
    """The user whom the token of a data query names, if any."""
    faults: list[str] = field(default_factory=list)
    status: int | None = None
    ended: str | None = None


@dataclass
class MessageEntry:
    """One user message that arrived as ``input``.

    ``outcome``: ``started`` a run, ``resubscribed`` to the active run of the same message id,
    ``resumed`` its suspended run, or found the thread ``busy``.
    """

    at: float
    chat_id: str
    message_id: str
    text: str
    identity: str
    outcome: str
    session_settings: dict[str, Any] | None = None
    """The session settings as they were sent with an API key."""


@dataclass
class RunEntry:
    """One run of the agent. ``status``: streaming, suspended, finished, aborted or failed."""

    number: int
    chat_id: str
    message_id: str
    text: str
    identity: str
    agent: str
    """``agents/{id}`` or ``deployments/{id}``, as in the URL of the request."""
    branch: str | None
    started_at: float
    status: str = "streaming"
    ended_at: float | None = None
    records: int = 0
    sql: list[str] = field(default_factory=list)


@dataclass
class SubscriptionEntry:
    """One connection that follows a run: ``reason`` is submit, input, follow_up or resume."""

    at: float
    chat_id: str
    message_id: str
    reason: str


@dataclass
class AbortEntry:
    """One abort request. ``outcome``: aborted, nothing_running, forbidden, not_found, refused."""

    at: float
    chat_id: str | None
    identity: str | None
    outcome: str
    message_id: str | None = None


@dataclass
class SyncEntry:
    """One dbt sync, with its stages."""

    sync_job_id: str
    deployment_id: int
    branch_name: str
    started_at: float
    status: str
    stages: list[str] = field(default_factory=list)
    cancelled_at: float | None = None
    ended_at: float | None = None


@dataclass
class ChangeEntry:
    """One change that a management operation made, with the names of the fields in its request.

    ``action``: created, updated, deleted, moved, published; added and removed (recipients and
    members); placed, unplaced and refreshed (reports); redeemed and revoked (embed sessions);
    merged (branches); enabled and disabled (staging-environments).
    """

    at: float
    action: str
    resource: str
    id: int | str
    deployment_id: int | None = None
    fields: list[str] = field(default_factory=list)


@dataclass
class SandboxState:
    """Everything that happened since the start or the last reset."""

    version: int
    requests: list[RequestEntry]
    messages: list[MessageEntry]
    runs: list[RunEntry]
    subscriptions: list[SubscriptionEntry]
    aborts: list[AbortEntry]
    syncs: list[SyncEntry]
    changes: list[ChangeEntry] = field(default_factory=list)

    def changed(self, resource: str, action: str = "created") -> list[ChangeEntry]:
        """Return the changes of one kind to one resource, for example
        ``changed("notifications")``."""
        return [c for c in self.changes if (c.resource, c.action) == (resource, action)]

    @property
    def asked(self) -> Counter[str]:
        """Return how often the agent carried out each question."""
        return Counter(run.text for run in self.runs)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> SandboxState:
        return _STATE.validate_python(document)


_STATE = TypeAdapter(SandboxState)


class Journal:
    """Keeps the entries, and wakes all that wait for a change."""

    def __init__(self) -> None:
        self.state = SandboxState(0, [], [], [], [], [], [])
        self._pulse = asyncio.Event()

    def change(
        self,
        action: str,
        resource: str,
        item_id: int | str,
        deployment: int | None,
        fields: list[str],
    ) -> None:
        """Record one change of a management resource."""
        entry = ChangeEntry(time.time(), action, resource, item_id, deployment, fields)
        self.state.changes.append(entry)
        self.changed()

    def changed(self) -> None:
        self.state.version += 1
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    async def wait_beyond(self, version: int, at_most: float) -> None:
        """Return when the version has changed, or after ``at_most`` seconds."""
        if self.state.version != version:
            return
        pulse = self._pulse
        try:
            await asyncio.wait_for(pulse.wait(), at_most)
        except TimeoutError:
            return

    def as_json(self) -> dict[str, Any]:
        state = vars(self.state)
        lists = {name: list(map(vars, value)) for name, value in state.items() if name != "version"}
        return {"version": self.state.version, **lists}
