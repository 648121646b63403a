"""One question to the agent as a whole: its run, its request and how patient to be.

Puts the pieces of `run`, `program` and `stop` together for callers, so that every
caller asks, follows and stops by the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.chat.program import ChatLimits, ask, resume
from airflow_provider_platform.client.chat.request import ChatRequest, input_digest, new_message_id
from airflow_provider_platform.client.chat.run import ChatRun
from airflow_provider_platform.client.chat.stop import stop_run
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    ChatSuspendedError,
    PlatformError,
)
from airflow_provider_platform.client.operations.program import Clock, Program

STOP_SECONDS = 6.0


@dataclass(frozen=True)
class ChatCall:
    """A question: `run` is what is known of it, `request` what is sent."""

    run: ChatRun
    request: ChatRequest
    limits: ChatLimits

    @classmethod
    def prepare(
        cls,
        config: PlatformConfig,
        prompt: str,
        limits: ChatLimits,
        *,
        message_id: str | None = None,
        chat_id: str | None = None,
        session_settings: dict[str, Any] | None = None,
        active_branch_name: str | None = None,
        is_default_branch: bool | None = None,
        max_rows: int = 100,
    ) -> ChatCall:
        """A question that has not been sent. Raises PlatformInputError for a bad argument."""
        request = ChatRequest.ask(
            prompt,
            message_id=message_id or new_message_id(),
            chat_id=chat_id,
            session_settings=config.resolve_session_settings(session_settings),
            active_branch_name=active_branch_name,
            is_default_branch=is_default_branch,
        )
        run = ChatRun(
            message_id=str(request.message_id),
            digest=input_digest(prompt),
            chat_id=request.chat_id,
            thread_given=request.chat_id is not None,
            max_rows=max_rows,
        )
        return cls(run, request, limits)

    @classmethod
    def known(
        cls,
        config: PlatformConfig,
        limits: ChatLimits,
        *,
        message_id: str,
        chat_id: str,
        digest: str,
        thread_given: bool,
        session_settings: dict[str, Any] | None = None,
        max_rows: int = 100,
    ) -> ChatCall:
        """A question that the service has accepted, told by its ids: it can be followed and
        stopped without the prompt. `digest` is the prompt's `input_digest`."""
        run = ChatRun(
            message_id=message_id,
            digest=digest,
            chat_id=chat_id,
            thread_given=thread_given,
            accepted=True,
            max_rows=max_rows,
        )
        settings = config.resolve_session_settings(session_settings)
        request = ChatRequest.build(message_id=message_id, session_settings=settings)
        return cls(run, request, limits)

    @property
    def may_run_on(self) -> bool:
        """Whether the run, as far as is known, may go on at the service if left alone. (A stop in
        a given thread looks first.)"""
        return self.run.chat_id is not None

    def ask_to_end(self, clock: Clock, *, repeats: bool = False) -> Program[None]:
        """Send the question (see `ask`) and stay until the run is over. Raises PlatformError."""
        try:
            yield from ask(
                self.run, self.request, self.limits, clock, until_end=True, repeats=repeats
            )
        except ChatSuspendedError:
            yield from resume(self.run, self.request, self.limits, clock)

    def follow_to_end(self, clock: Clock) -> Program[None]:
        """Stay with an accepted run until it is over. Raises PlatformError."""
        yield from resume(self.run, self.request, self.limits, clock)

    def stop(self, clock: Clock, *, seconds: float = STOP_SECONDS) -> Program[bool]:
        """Stop the run, and no other in its thread, within so many seconds (see
        `stop.stop_run`)."""
        return (yield from stop_run(self.run, self.request, clock, seconds=seconds))


def ask_or_stop(call: ChatCall, clock: Clock) -> Program[None]:
    """Ask; a run that is given up for any reason is stopped before the error is raised."""
    try:
        yield from call.ask_to_end(clock)
    except PlatformError:
        if call.may_run_on:
            yield from _stop_quietly(call, clock)
        raise


def _stop_quietly(call: ChatCall, clock: Clock) -> Program[None]:
    try:
        yield from call.stop(clock)
    except PlatformError:
        return  # the error that led here says more
