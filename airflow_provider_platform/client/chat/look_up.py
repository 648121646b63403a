"""Asking a thread what has become of a message, without waiting for its run."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_platform.client.chat import errors
from airflow_provider_platform.client.chat.reading import (
    FINAL_VERDICTS,
    ChatLimits,
    check_limits,
    look,
    settled,
)
from airflow_provider_platform.client.chat.records import ChatRun, Verdict
from airflow_provider_platform.client.chat.request import ChatRequest
from airflow_provider_platform.client.errors import PlatformApiError, PlatformNotFoundError
from airflow_provider_platform.client.http.retry import pause_after
from airflow_provider_platform.client.operations.program import (
    Clock,
    Program,
    ReloadCredentials,
    Sleep,
)
from airflow_provider_platform.client.polling.failure_budget import FailureBudget, poll_pause

FUTILE_RECONNECTS = 5
IDLE_LOOKS = 3
"""How many of those must tell of a thread that does not stream for its run to count as dead."""
LOOK_SECONDS = 15.0


def look_at_end(
    run: ChatRun,
    request: ChatRequest,
    limits: ChatLimits,
    clock: Clock,
    *,
    seconds: float = LOOK_SECONDS,
) -> Program[bool]:
    """Look at an accepted run, for so many seconds at a time: whether it is over by now. False
    where the service says that it goes on, or tells no end of it however often it is looked at.

    Raises the error that the run ended with. A service that cannot be reached says nothing of the
    run: five transient failures are tolerated, the sixth is raised, and so is one before the
    deadline.
    """
    budget = FailureBudget()
    reloaded = False
    while True:
        until = min(limits.deadline, clock() + seconds)
        idle_timeout = min(limits.idle_timeout, seconds)
        once = replace(limits, deadline=until, idle_timeout=idle_timeout)
        verdict, failure = yield from look(run, request, once, clock, until_end=True)
        if verdict is Verdict.REFUSED and not reloaded:
            reloaded = True
            if (yield ReloadCredentials()):
                continue
            raise failure or errors.ending(run, verdict)
        if verdict is Verdict.OVER or verdict in FINAL_VERDICTS:
            return (yield from settled(run, verdict, request, limits, clock))
        if verdict is not Verdict.BROKEN or (failure is None and run.reported_streaming):
            return False
        answered = failure is None and run.connection.history_received
        error = failure or errors.futile(run, budget.failures + 1)
        tolerated = budget.tolerates(error, clock())
        pause = pause_after(failure, budget.failures)
        if not tolerated or clock() + pause >= limits.deadline:
            if answered:
                return False
            raise error
        yield Sleep(pause)


def look_up(run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock) -> Program[bool]:
    """Whether the thread holds our message; a lost answer is cleared up this way. A thread of our
    own that is gone does not, and is forgotten.

    Raises PlatformOutcomeUnknownError where the thread cannot tell, and ChatEndUnknownError where
    it neither streams nor tells what it holds.
    """
    futile = 0
    idle = 0
    reloaded = False
    while True:
        check_limits(run, limits, clock)
        try:
            verdict, failure = yield from look(run, request, limits, clock, until_end=False)
        except PlatformNotFoundError:
            if run.in_existing_thread:
                raise
            run.forget_thread()
            return False
        if run.accepted:
            return True
        if verdict is Verdict.REFUSED and not reloaded:
            reloaded = True
            if (yield ReloadCredentials()):
                continue
        if verdict in FINAL_VERDICTS:
            raise failure or errors.ending(run, verdict)
        if verdict in (Verdict.ABSENT, Verdict.SUSPENDED):
            return False
        if verdict is Verdict.UNCLEAR:
            raise errors.undecided(run)
        idle += failure is None and run.reported_idle
        futile = futile + 1 if verdict is Verdict.BROKEN else 0
        if futile >= FUTILE_RECONNECTS:
            if idle >= IDLE_LOOKS:
                raise errors.end_unknown(run, idle)
            raise errors.unread(run, failure) from failure
        asked = failure.retry_after if isinstance(failure, PlatformApiError) else None
        if asked is not None and clock() + asked >= limits.deadline:
            raise errors.unread(run, failure) from failure
        pause = pause_after(failure, futile) if futile else limits.poll_interval
        yield from poll_pause(pause, limits.deadline - clock())
