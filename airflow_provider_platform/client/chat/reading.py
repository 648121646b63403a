"""One request of a chat run, and what its connection says: the pieces of `program`, `look_up`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from airflow_provider_platform.client.chat import errors
from airflow_provider_platform.client.chat.records import ChatRun, Verdict
from airflow_provider_platform.client.chat.request import ChatRequest, is_busy
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.client.http.retry import is_transient, pause_after
from airflow_provider_platform.client.operations.program import (
    Clock,
    CloseStream,
    Notify,
    OpenStream,
    Program,
    ReadStream,
    Sleep,
)
from airflow_provider_platform.client.polling.failure_budget import poll_pause

READINGS = 3
"""How often a thread is read for what was lost of a run that is over."""
CONFIRMING_READINGS = 5
"""How many of these may fail where a final record in process is to be confirmed."""
USAGE_WAIT = 5.0
"""Seconds that the stream is read on after its end, for the usage record."""
FINAL_VERDICTS = (Verdict.ABORTED, Verdict.FAILED, Verdict.REFUSED)


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

    @classmethod
    def of(cls, config: PlatformConfig, deadline: float, **limits: Any) -> ChatLimits:
        """Limits with those of a configuration."""
        return cls(
            deadline,
            idle_timeout=config.stream_idle_timeout,
            max_attempts=config.max_attempts,
            **limits,
        )


def converse(
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
    last_active = clock()
    ended: float | None = None
    clean = False
    try:
        while True:
            now = clock()
            until = last_active + limits.idle_timeout if ended is None else ended + USAGE_WAIT
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
            if run.connection.received_data:
                last_active = now
            if run.connection.ended and ended is None:
                ended = now
            if run.connection.complete:
                break
            if not until_end and run.is_confirmed and not run.connection.ended:
                yield CloseStream()
                return None
    except PlatformTransportError:
        pass  # broken: the verdict says what that means
    except PlatformError:
        run.disconnect(clean=False)
        raise
    yield CloseStream(complete=clean or run.connection.complete)
    return run.disconnect(clean=clean)


def look(
    run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock, *, until_end: bool
) -> Program[tuple[Verdict | None, PlatformError | None]]:
    """One request without `input`: its verdict, and the error that broke it off.

    Raises the errors that asking again cannot mend.
    """
    body = request.follow(_thread(run))
    try:
        verdict = yield from converse(run, body, limits, clock, until_end=until_end, submits=False)
    except PlatformError as error:
        if is_busy(error):
            return Verdict.BUSY, error
        if isinstance(error, PlatformAuthenticationError):
            return Verdict.REFUSED, error
        if not is_transient(error):
            raise
        return Verdict.BROKEN, error
    return verdict, None


def settled(
    run: ChatRun, verdict: Verdict | None, request: ChatRequest, limits: ChatLimits, clock: Clock
) -> Program[bool]:
    """True for a run that is over, read whole where that can be; raises the error that ended it
    otherwise.

    A final record that says that it is not complete is confirmed by a look at the thread. Raises
    PlatformTransportError where the thread could not be read for that.
    """
    if verdict is not Verdict.OVER:
        raise errors.ending(run, verdict)
    in_process = run.answer_in_process
    if in_process:
        run.forget_messages()
    if in_process or run.may_lack_records:
        was_read, failure = yield from _read_thread(run, request, limits, clock)
        if in_process and not was_read:
            check_limits(run, limits, clock)
            raise errors.unconfirmed(run, failure) from failure
    return True


def _read_thread(
    run: ChatRun, request: ChatRequest, limits: ChatLimits, clock: Clock
) -> Program[tuple[bool, PlatformError | None]]:
    """Read a thread whose run is over, for what was lost between connections or was not complete;
    returns whether the thread said all that it holds, and the error of the last reading.

    For a moment after the end it may still count as streaming, so that a look is subscribed to what
    is over. Hence a few readings, and no more, because what is known already is a result too. An
    answer in process is none: its thread is waited for.
    """
    failure: PlatformError | None = None
    in_process = run.answer_in_process
    left = CONFIRMING_READINGS if in_process else READINGS
    while not limits.given_up() and clock() < limits.deadline:
        try:
            verdict, failure = yield from look(run, request, limits, clock, until_end=True)
        except PlatformError as error:
            return False, error
        if failure is None and not run.reported_streaming and verdict is not Verdict.BROKEN:
            return True, None
        waits = in_process and failure is None and run.reported_streaming
        left -= not waits
        if not left or not (in_process or run.may_lack_records):
            break
        yield from poll_pause(limits.poll_interval, limits.deadline - clock())
    return False, failure


def pause(seconds: float, limits: ChatLimits, clock: Clock) -> Program[None]:
    yield Sleep(max(0.0, min(seconds, limits.deadline - clock())))


def pause_between(
    failure: PlatformError | None, failures: int, limits: ChatLimits, clock: Clock
) -> Program[None]:
    """Pause before the next request, after so many failures in a row. Raises the failure where the
    service asks to wait beyond the deadline: nothing is gained by that."""
    asked = failure.retry_after if isinstance(failure, PlatformApiError) else None
    if failure is not None and asked is not None and clock() + asked >= limits.deadline:
        raise failure
    yield from pause(pause_after(failure, failures), limits, clock)


def check_limits(run: ChatRun, limits: ChatLimits, clock: Clock) -> None:
    """Raise PlatformInterruptedError or PlatformDeadlineError where no more is to be asked."""
    if limits.given_up():
        raise errors.given_up(run)
    if clock() < limits.deadline:
        return
    raise errors.too_late(run)


def _thread(run: ChatRun) -> str:
    if run.chat_id is None:
        raise RuntimeError("a run without a thread cannot be followed")
    return run.chat_id
