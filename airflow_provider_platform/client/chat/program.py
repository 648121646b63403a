"""Asking and following: the program that carries one chat message to its end.

`ask` sends the prompt and, in one go or later, `follow` stays with the run until the service says
that it is over. The prompt goes out once for each message id; after the service has accepted it,
every further request names the thread and the message and has no `input`, so that none of them
can start a run. What a connection has told is judged by `ChatRun`; here stands what to do next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from airflow_provider_platform.client.chat import errors as chat_failures
from airflow_provider_platform.client.chat.events import Waiting
from airflow_provider_platform.client.chat.request import ChatRequest, is_busy
from airflow_provider_platform.client.chat.run import ChatRun, Verdict
from airflow_provider_platform.client.errors import (
    ChatEndUnknownError,
    ChatSuspendedError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformTransportError,
)
from airflow_provider_platform.client.http.retry import (
    cannot_have_been_processed,
    is_transient,
    pause_after,
)
from airflow_provider_platform.client.operations.program import (
    Clock,
    CloseStream,
    Notify,
    OpenStream,
    Program,
    ReadStream,
    ReloadCredentials,
    Sleep,
)
from airflow_provider_platform.client.polling.failure_budget import FailureBudget, poll_pause

FUTILE_RECONNECTS = 5
IDLE_LOOKS = 3
"""How many of those must tell of a thread that does not stream for its run to count as dead."""
LOOK_SECONDS = 15.0
READINGS = 3
"""How often a thread is read for what was lost of a run that is over."""
USAGE_WAIT = 5.0
"""Seconds that the stream is read on after its end, for the usage record."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class ChatLimits:
    """How long and how often: seconds, and `deadline` in Unix time. `given_up` tells whether the
    caller wants no more requests to be made."""

    deadline: float
    poll_interval: float = 5.0
    idle_timeout: float = 120.0
    max_attempts: int = 5
    if_thread_busy: Literal["wait", "fail"] = "wait"
    given_up: Callable[[], bool] = _never


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
        _check_patience(run, limits, clock)
        failure: PlatformError | None = None
        try:
            verdict = yield from _converse(
                run, _prompt_body(run, request), limits, clock, until_end=until_end
            )
        except PlatformError as error:
            failure = error
            verdict = yield from _after_refusal(run, error)
            if verdict is None:
                refusals += 1
                if refusals >= limits.max_attempts:
                    raise
                yield from _pause(pause_after(error, refusals), limits, clock)
                continue
        if verdict is None:
            return False
        if verdict is Verdict.REFUSED and not reloaded:
            reloaded = True
            if (yield ReloadCredentials()):
                if run.was_refused_at_once:
                    continue
                verdict = Verdict.BROKEN  # the prompt may have been processed before
        if verdict is Verdict.BUSY and not run.accepted:
            if limits.if_thread_busy == "fail":
                raise chat_failures.busy(run)
            repeats = False  # it was not processed this time, so that this one counts for nothing
            yield Notify(Waiting(limits.poll_interval))
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
            continue
        if verdict in _FINAL_VERDICTS or (run.accepted and verdict is Verdict.OVER):
            return (yield from _settled(run, verdict, request, limits, clock))
        if run.chat_id is None:
            raise chat_failures.unseen(run, failure)
        if failure is not None:
            yield from _pause(pause_after(failure, 1), limits, clock)
        if run.accepted or (yield from _look_up_lost(run, request, limits, clock)):
            return (yield from follow(run, request, limits, clock)) if until_end else False
        if repeats:
            raise chat_failures.absent(run, failure) from failure
        repeats = True
        yield from _pause(pause_after(failure, 1), limits, clock)


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
        _check_patience(run, limits, clock)
        verdict, failure = yield from _look(run, request, limits, clock, until_end=True)
        if verdict is Verdict.REFUSED:
            if not reloaded and (yield ReloadCredentials()):
                reloaded = True
                continue
            raise failure or chat_failures.ending(run, verdict)
        reloaded = False
        heard = failure is None and (run.grew or run.goes_on)
        idle = 0 if heard else idle + (failure is None and run.says_idle)
        stalled = 0 if failure is None and run.grew else stalled + 1
        if verdict is Verdict.SUSPENDED and (run.grew or not resumed):
            resumed = True
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
        elif verdict in (Verdict.BUSY, Verdict.GOING_ON):
            futile = idle = 0
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
        elif verdict is Verdict.BROKEN:
            futile = 0 if heard else futile + 1
            if futile >= FUTILE_RECONNECTS:
                if idle >= IDLE_LOOKS:
                    raise chat_failures.end_unknown(run, idle)
                raise failure or chat_failures.futile(run, futile)
            yield from _pause(pause_after(failure, stalled), limits, clock)
        else:
            return (yield from _settled(run, verdict, request, limits, clock))


def resume(run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock) -> Program[bool]:
    """Follow an accepted run; one that stays suspended gets its input repeated, once.

    The request must carry the prompt: the service asks for the same thread, input and message id.
    """
    try:
        return (yield from follow(run, request, limits, clock))
    except ChatSuspendedError:
        again = request.model_copy(update={"chat_id": run.chat_id})
        return (yield from ask(run, again, limits, clock, until_end=True))


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
    run: five transient failures are borne, the sixth is raised, and so is one before the deadline.
    """
    budget = FailureBudget()
    reloaded = False
    while True:
        until = min(limits.deadline, clock() + seconds)
        idle_timeout = min(limits.idle_timeout, seconds)
        once = replace(limits, deadline=until, idle_timeout=idle_timeout)
        verdict, failure = yield from _look(run, request, once, clock, until_end=True)
        if verdict is Verdict.REFUSED and not reloaded:
            reloaded = True
            if (yield ReloadCredentials()):
                continue
            raise failure or chat_failures.ending(run, verdict)
        if verdict is Verdict.OVER or verdict in _FINAL_VERDICTS:
            return (yield from _settled(run, verdict, request, limits, clock))
        if verdict is not Verdict.BROKEN or (failure is None and run.goes_on):
            return False
        told = failure is None and run.history_received
        error = failure or chat_failures.futile(run, budget.failures + 1)
        borne = budget.tolerates(error, clock())
        pause = pause_after(failure, budget.failures)
        if not borne or clock() + pause >= limits.deadline:
            if told:
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
        _check_patience(run, limits, clock)
        try:
            verdict, failure = yield from _look(run, request, limits, clock, until_end=False)
        except PlatformNotFoundError:
            if run.thread_given:
                raise
            run.forget_thread()
            return False
        if run.accepted:
            return True
        if verdict is Verdict.REFUSED and not reloaded:
            reloaded = True
            if (yield ReloadCredentials()):
                continue
        if verdict in _FINAL_VERDICTS:
            raise failure or chat_failures.ending(run, verdict)
        if verdict in (Verdict.ABSENT, Verdict.SUSPENDED):
            return False
        if verdict is Verdict.UNCLEAR:
            raise chat_failures.undecided(run)
        idle += failure is None and run.says_idle
        futile = futile + 1 if verdict is Verdict.BROKEN else 0
        if futile >= FUTILE_RECONNECTS:
            if idle >= IDLE_LOOKS:
                raise chat_failures.end_unknown(run, idle)
            raise chat_failures.unread(run, failure) from failure
        pause = pause_after(failure, futile) if futile else limits.poll_interval
        yield from poll_pause(pause, limits.deadline - clock())


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
        raise chat_failures.unread(run, error) from error


_FINAL_VERDICTS = (Verdict.ABORTED, Verdict.FAILED, Verdict.REFUSED)


def _look(
    run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock, *, until_end: bool
) -> Program[tuple[Verdict | None, PlatformError | None]]:
    """One request without `input`: what it told, and the error that kept it from telling more.

    Raises the errors that asking again cannot mend.
    """
    body = request.follow(_thread(run))
    try:
        verdict = yield from _converse(run, body, limits, clock, until_end=until_end, submits=False)
    except PlatformError as error:
        if is_busy(error):
            return Verdict.BUSY, error
        if isinstance(error, PlatformAuthenticationError):
            return Verdict.REFUSED, error
        if not is_transient(error):
            raise
        return Verdict.BROKEN, error
    return verdict, None


def _read_whole(
    run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock
) -> Program[None]:
    """Read a thread whose run is over, for what was lost between connections, until it has told
    what it holds: for a moment after the end it may still count as streaming, so that who looks is
    subscribed to what is over. A few times only, because what is known already is a result too."""
    for reading in range(READINGS):
        if reading:
            yield from poll_pause(limits.poll_interval, limits.deadline - clock())
        if limits.given_up() or clock() >= limits.deadline:
            return
        try:
            verdict, failure = yield from _look(run, request, limits, clock, until_end=True)
        except PlatformError:
            return
        told = failure is None and not run.goes_on and verdict is not Verdict.BROKEN
        if told or not run.received_in_part:
            return


def _converse(
    run: ChatRun,
    body: dict[str, Any],
    limits: ChatLimits,
    clock: Clock,
    *,
    until_end: bool,
    submits: bool = True,
) -> Program[Verdict | None]:
    """One connection: its verdict, or None when it was left because the message is accepted."""
    yield OpenStream(body, timeout=limits.idle_timeout, repeatable=not submits)
    run.connect(submits=submits)
    heard = clock()
    ended: float | None = None
    clean = False
    try:
        while True:
            now = clock()
            until = heard + limits.idle_timeout if ended is None else ended + USAGE_WAIT
            wait = min(until, limits.deadline) - now
            if wait <= 0:
                break
            data: bytes | None = yield ReadStream(wait)
            if data is None:
                break
            if data == b"":
                clean = True
                break
            now = clock()
            for event in run.feed(data, now):
                yield Notify(event)
            if run.received_data:
                heard = now
            if run.ended and ended is None:
                ended = now
            if run.complete:
                break
            if not until_end and run.is_confirmed and not run.ended:
                yield CloseStream()
                return None
    except PlatformTransportError:
        pass  # broken: the verdict says what that means
    except PlatformError:
        run.disconnect(clean=False)
        raise
    yield CloseStream(complete=clean or run.complete)
    return run.disconnect(clean=clean)


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
        raise chat_failures.unseen(run, error) from error
    return Verdict.BROKEN


def _settled(
    run: ChatRun, verdict: Verdict | None, request: ChatRequest, limits: ChatLimits, clock: Clock
) -> Program[bool]:
    """True for a run that is over, read whole where that can be; raises the error that ended it
    otherwise."""
    if verdict is not Verdict.OVER:
        raise chat_failures.ending(run, verdict)
    if run.received_in_part:
        yield from _read_whole(run, request, limits, clock)
    return True


def _prompt_body(run: ChatRun, request: ChatRequest) -> dict[str, Any]:
    """The body that asks, in the thread that the service has named meanwhile, if it has."""
    body = request.to_json()
    return body if run.chat_id is None else {**body, "chatId": run.chat_id}


def _pause(seconds: float, limits: ChatLimits, clock: Clock) -> Program[None]:
    yield Sleep(max(0.0, min(seconds, limits.deadline - clock())))


def _check_patience(run: ChatRun, limits: ChatLimits, clock: Clock) -> None:
    """Raise PlatformInterruptedError or PlatformDeadlineError where no more is to be asked."""
    if limits.given_up():
        raise chat_failures.given_up(run)
    if clock() < limits.deadline:
        return
    raise chat_failures.too_late(run)


def _thread(run: ChatRun) -> str:
    if run.chat_id is None:
        raise RuntimeError("a run without a thread cannot be followed")
    return run.chat_id
