"""One question to the agent as a whole: its run, its request and its limits.

Puts the pieces of `run`, `program`, `look_up` and `stop` together, so that every caller asks,
follows and stops by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.chat.look_up import look_at_end, look_up
from airflow_provider_platform.client.chat.program import ask, follow, resume
from airflow_provider_platform.client.chat.reading import ChatLimits
from airflow_provider_platform.client.chat.records import ChatRun
from airflow_provider_platform.client.chat.request import (
    ChatRequest,
    check_max_rows,
    input_digest,
    new_message_id,
)
from airflow_provider_platform.client.chat.result import ChatResult
from airflow_provider_platform.client.chat.thread import stop_run
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
        details: bool = False,
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
            in_existing_thread=request.chat_id is not None,
            max_rows=check_max_rows(max_rows),
            details=details,
        )
        return cls(run, request, limits)

    @classmethod
    def known(
        cls,
        config: PlatformConfig,
        limits: ChatLimits,
        ids: Mapping[str, Any],
        *,
        session_settings: dict[str, Any] | None = None,
        identity: dict[str, str] | None = None,
        max_rows: int = 100,
        details: bool = False,
    ) -> ChatCall:
        """Return a question that the service has accepted, named by its `ids`: it can be followed
        and stopped without the prompt. `identity` names the user who asked it, and counts before
        the `session_settings`. Raises PlatformInputError."""
        run = ChatRun(
            message_id=ids["message_id"],
            digest=ids["input_sha256"],
            chat_id=ids["chat_id"],
            in_existing_thread=bool(ids.get("in_existing_thread")),
            accepted=True,
            max_rows=max_rows,
            details=details,
        )
        settings = (
            config.settings_of_identity(identity)
            if identity
            else config.resolve_session_settings(session_settings)
        )
        request = ChatRequest.build(message_id=run.message_id, session_settings=settings)
        return cls(run, request, limits)

    def ids(self) -> dict[str, Any]:
        """What names the question, as plain JSON, without the prompt."""
        settings = self.request.session_settings
        return {
            "chat_id": self.run.chat_id,
            "message_id": self.run.message_id,
            "in_existing_thread": self.run.in_existing_thread,
            "input_sha256": self.run.digest,
            "identity": settings.identity if settings else None,
            "accepted": self.run.accepted,
        }

    @property
    def may_run_on(self) -> bool:
        """Whether the run, as far as is known, may go on at the service if left alone. (A stop in
        a given thread looks first.)"""
        return self.run.chat_id is not None

    def ask(self, clock: Clock, *, until_end: bool = True, repeats: bool = False) -> Program[bool]:
        """Send the question (see `program.ask`) and stay until the run is over; with `until_end`
        False, until it is accepted. Returns whether it is over. Raises PlatformError."""
        run, request, limits = self.run, self.request, self.limits
        try:
            return (
                yield from ask(run, request, limits, clock, until_end=until_end, repeats=repeats)
            )
        except ChatSuspendedError:
            if not until_end:
                raise
            return (yield from resume(run, request, limits, clock))

    def follow(self, clock: Clock, *, resumes: bool = True) -> Program[bool]:
        """Stay with an accepted run until it is over; one that stays suspended gets its input
        repeated, or raises ChatSuspendedError. Raises PlatformError."""
        program = resume if resumes else follow
        return (yield from program(self.run, self.request, self.limits, clock))

    def look_at_end(self, clock: Clock, *, seconds: float) -> Program[bool]:
        """Whether an accepted run is over by now (see `look_up.look_at_end`)."""
        run, request, limits = self.run, self.request, self.limits
        return (yield from look_at_end(run, request, limits, clock, seconds=seconds))

    def look_up(self, clock: Clock) -> Program[bool]:
        """Whether the thread holds the message (see `look_up.look_up`)."""
        return (yield from look_up(self.run, self.request, self.limits, clock))

    def result(self) -> ChatResult:
        """The result of a run that is over, whatever its tool calls came to. Raises
        ChatNoAnswerError."""
        return self.run.result(fail_on_tool_error="never")

    def stop(self, clock: Clock, *, seconds: float = STOP_SECONDS) -> Program[bool]:
        """Stop the run, and no other in its thread, within so many seconds (see
        `stop.stop_run`)."""
        return (yield from stop_run(self.run, self.request, clock, seconds=seconds))


def ask_or_stop(call: ChatCall, clock: Clock) -> Program[None]:
    """Ask; a run that is given up for any reason is stopped before the error is raised."""
    try:
        yield from call.ask(clock)
    except PlatformError:
        if call.may_run_on:
            yield from _stop_quietly(call, clock)
        raise


def _stop_quietly(call: ChatCall, clock: Clock) -> Program[None]:
    try:
        yield from call.stop(clock)
    except PlatformError:
        return  # the error that led here says more
