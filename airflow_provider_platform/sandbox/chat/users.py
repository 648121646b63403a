"""The users that chat requests create, and their lifetimes. The threads of an ephemeral user end
with the user."""

from __future__ import annotations

from airflow_provider_platform.sandbox.chat.requests import Caller
from airflow_provider_platform.sandbox.chat.threads import Thread, Threads
from airflow_provider_platform.sandbox.state.server_state import ServerState

DEFAULT_LIFETIME = 7 * 86400
"""Seconds that an ephemeral user lives after its creation."""


class Users:
    """External users by identity: the Unix time at which each ends, None for a persisted one."""

    def __init__(self) -> None:
        self.ends: dict[str, float | None] = {}

    def expired(self, identity: str, now: float) -> bool:
        end = self.ends.get(identity)
        return end is not None and end <= now


def provision(server: ServerState, caller: Caller) -> None:
    """Create the user that a stream request comes from, or persist it. The request that creates an
    ephemeral user sets its lifetime."""
    if not caller.external:
        return
    users, now, identity = server.store(Users), server.clock.now(), caller.identity
    if users.expired(identity, now):
        del users.ends[identity]
        server.store(Threads).forget(identity)
    if caller.ephemeral:
        lifetime = DEFAULT_LIFETIME if caller.lifetime is None else caller.lifetime
        users.ends.setdefault(identity, now + lifetime)
    else:
        users.ends[identity] = None


def thread_of(server: ServerState, chat_id: str, agent: str) -> Thread | None:
    """The thread of this agent; None if it does not exist or ended with its ephemeral user."""
    thread = server.store(Threads).get(chat_id)
    if thread is None or thread.agent != agent:
        return None
    if server.store(Users).expired(thread.owner, server.clock.now()):
        return None
    return thread
