"""Asking and following: the program that carries one chat message to its end.

`ask` sends the prompt and, in one go or later, `follow` stays with the run until the service says
that it is over. The prompt goes out once for each message id; after the service has accepted it,
every further request names the thread and the message and has no `input`, so that none of them
can start a run. What a connection has told is judged by `ChatRun`; here stands what to do next.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.chat import errors
from airflow_provider_platform.client.chat.events import Waiting
from airflow_provider_platform.client.chat.look_up import (
    FUTILE_RECONNECTS,
    IDLE_LOOKS,
    look_up,
)
from airflow_provider_platform.client.chat.reading import (
    FINAL_VERDICTS,
    ChatLimits,
    check_limits,
    converse,
    look,
    pause,
    pause_between,
    settled,
)
from airflow_provider_platform.client.chat.records import ChatRun, Verdict
from airflow_provider_platform.client.chat.request import ChatRequest, is_busy
from airflow_provider_platform.client.errors import (
    ChatEndUnknownError,
    ChatSuspendedError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.http.retry import (
    cannot_have_been_processed,
    is_transient,
    pause_after,
)
from airflow_provider_platform.client.operations.program import (
    Clock,
    Notify,
    Program,
    ReloadCredentials,
)
from airflow_provider_platform.client.polling.failure_budget import poll_pause


def ask(
    run: ChatRun,
    request: ChatRequest,
    limits: ChatLimits,
    clock: Clock,
    *,
    until_end: bool,
    repeats: bool = False,
) -> Program[bool]:
    """Send the prompt. Returns True when the run is over. With `until_end` False it returns False
    as soon as the service has accepted the message; `follow` then goes on from there.

    A message that its thread turns out not to hold is sent once more; `repeats` says that this
    has been found before. Notifies of Waiting and of the run's events. Raises PlatformError;
    ChatBusyError by `if_thread_busy`, PlatformTransportError where the message may be running
    unseen, and PlatformOutcomeUnknownError where the thread does not hold it again.
    """
    refusals = 0
    reloaded = False
    while True:
        check_limits(run, limits, clock)
        failure: PlatformError | None = None
        try:
            verdict = yield from converse(
                run, _prompt_body(run, request), limits, clock, until_end=until_end
            )
        except PlatformError as error:
            failure = error
            verdict = yield from _after_refusal(run, error)
            if verdict is None:
                refusals += 1
                seconds = pause_after(error, refusals)
                if refusals >= limits.max_attempts or clock() + seconds >= limits.deadline:
                    raise
                yield from pause(seconds, limits, clock)
                continue
        if verdict is None:
            return False
        if verdict is Verdict.REFUSED and not reloaded:
            reloaded = True
            if (yield ReloadCredentials()):
                if run.connection.refused_at_once:
                    continue
                verdict = Verdict.BROKEN  # the prompt may have been processed before
        if verdict is Verdict.BUSY and not run.accepted:
            if limits.if_thread_busy == "fail":
                raise errors.busy(run)
            repeats = False  # it was not processed this time, so that this one counts for nothing
            yield Notify(Waiting(limits.poll_interval))
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
            continue
        if verdict in FINAL_VERDICTS or (run.accepted and verdict is Verdict.OVER):
            return (yield from settled(run, verdict, request, limits, clock))
        if run.chat_id is None:
            raise errors.unseen(run, failure)
        if failure is not None:
            yield from pause_between(failure, 1, limits, clock)
        if run.accepted or (yield from _look_up_lost(run, request, limits, clock)):
            return (yield from follow(run, request, limits, clock)) if until_end else False
        if repeats:
            raise errors.absent(run, failure) from failure
        repeats = True
        yield from pause_between(failure, 1, limits, clock)


def follow(run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock) -> Program[bool]:
    """Stay with an accepted run until it is over; returns True.

    Raises ChatSuspendedError where the run stays suspended after it was asked to resume, and the
    errors of the run's end. Five reconnects in a row that reach nothing raise the last error;
    ChatEndUnknownError where the thread says that it does not stream, and no look brings an end.
    """
    futile = 0
    idle = 0
    stalled = 0
    resumed = False
    reloaded = False
    while True:
        check_limits(run, limits, clock)
        verdict, failure = yield from look(run, request, limits, clock, until_end=True)
        if verdict is Verdict.REFUSED:
            if not reloaded and (yield ReloadCredentials()):
                reloaded = True
                continue
            raise failure or errors.ending(run, verdict)
        reloaded = False
        progressed = failure is None and (run.connection.grew or run.reported_streaming)
        idle = 0 if progressed else idle + (failure is None and run.reported_idle)
        stalled = 0 if failure is None and run.connection.grew else stalled + 1
        if verdict is Verdict.SUSPENDED and (run.connection.grew or not resumed):
            resumed = True
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
        elif verdict in (Verdict.BUSY, Verdict.STREAMING):
            futile = idle = 0
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
        elif verdict is Verdict.BROKEN:
            futile = 0 if progressed else futile + 1
            if futile >= FUTILE_RECONNECTS:
                if idle >= IDLE_LOOKS:
                    raise errors.end_unknown(run, idle)
                raise failure or errors.futile(run, futile)
            yield from pause_between(failure, stalled, limits, clock)
        else:
            return (yield from settled(run, verdict, request, limits, clock))


def resume(run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock) -> Program[bool]:
    """Follow an accepted run; one that stays suspended gets its input repeated, once.

    The request must carry the prompt: the service asks for the same thread, input and message id.
    """
    try:
        return (yield from follow(run, request, limits, clock))
    except ChatSuspendedError:
        again = request.model_copy(update={"chat_id": run.chat_id})
        return (yield from ask(run, again, limits, clock, until_end=True))


def _look_up_lost(
    run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock
) -> Program[bool]:
    """`look_up`, for the try that sent the prompt: what refuses the look says nothing of that."""
    try:
        return (yield from look_up(run, request, limits, clock))
    except PlatformError as error:
        looked = error.retryable and not isinstance(error, ChatEndUnknownError)
        if looked or isinstance(error, PlatformOutcomeUnknownError):
            raise
        raise errors.unread(run, error) from error


def _after_refusal(run: ChatRun, error: PlatformError) -> Program[Verdict | None]:
    """What the failure to open a stream for the prompt means: a verdict, None to send again."""
    if is_busy(error):
        return Verdict.BUSY
    if isinstance(error, PlatformAuthenticationError) and (yield ReloadCredentials()):
        return None
    if cannot_have_been_processed(error):
        return None
    if not is_transient(error):
        raise error
    if run.chat_id is None:
        raise errors.unseen(run, error) from error
    return Verdict.BROKEN


def _prompt_body(run: ChatRun, request: ChatRequest) -> dict[str, Any]:
    """The body that asks, in the thread that the service has named meanwhile, if it has."""
    body = request.to_json()
    return body if run.chat_id is None else {**body, "chatId": run.chat_id}
