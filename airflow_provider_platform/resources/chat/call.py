"""What to send next in a chat: how one message is carried from its prompt to its end.

`ChatCall` is one question as a whole: what is known about it (`run`), what is sent (`request`), and
the limits of time and repeats (`limits`). Its methods are async and get an `Api`. `run_state`
decides what the answers mean. This module decides what to do about it.

Theory of operation
===================

There are three requests:

    with `input`       asks the question: the service starts a run, or joins it by the message id
    without `input`    names the thread and the message; it reads or follows and never starts a run
    abort              stops whatever streams in a thread

The prompt is sent once for each message id. It is sent again, under the same id, only if the
service refused it before it processed it, if its thread was busy, if its thread turns out not to
hold it (once), or to resume a run that stays suspended (once). As soon as the message is accepted,
no request has `input` any more.

The verdict on a connection decides what follows:

    verdict           submit                   follow                     find_message
    LEFT              return                   (not asked for)            True
    OVER              finish                   finish                     True
    ABORTED, FAILED   raise                    raise                      raise
    REFUSED           reload the credential, once; then raise
    BUSY              wait, send again         wait, connect again        wait, connect again
    STREAMING         find the message         wait, connect again        wait, connect again
    SUSPENDED         find the message         connect again, once        False
    ABSENT            find the message         raise                      False
    UNCLEAR           find the message         raise                      raise
    BROKEN            find the message         connect again              connect again

`_poll` is the one loop that connects again, with the failure budget of every other wait
(`client.polling`): for two minutes at least while connections bring nothing, and as long as they
bring something new or say that the thread is streaming. Each wait says by a function of `FollowUps`
whether it connects again. Once the message is found or accepted, `submit` follows it. "Finish"
reads the thread once more if records may have been lost, or if the final answer is not complete.

A stop may come late: a worker or a triggerer that was frozen can try to stop a run that ended long
ago, while the thread answers somebody else's message. An abort knows threads only. So every stop
reads the thread first and aborts only if its latest user message is ours. If that read fails, a
thread that the caller named is left alone. A thread that our own message made is aborted unread,
because otherwise nobody would stop its run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NotRequired

from airflow_provider_platform.client.choices import (
    MAX_ROWS,
    POLL_INTERVAL,
    IfThreadBusy,
    not_interrupted,
)
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    ChatEndUnknownError,
    ChatSuspendedError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInterruptedError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import rpc_error
from airflow_provider_platform.client.polling import FailureBudget, poll_pause
from airflow_provider_platform.client.repeats import (
    cannot_have_been_processed,
    is_transient,
    outcome_unknown,
    pause_after,
)
from airflow_provider_platform.resources.chat import errors
from airflow_provider_platform.resources.chat.record_reader import is_busy
from airflow_provider_platform.resources.chat.request import (
    ChatRequest,
    check_max_rows,
    input_digest,
    new_message_id,
)
from airflow_provider_platform.resources.chat.run_state import (
    Accepted,
    ChatEvent,
    ChatRun,
    ThreadNamed,
    Verdict,
    Waiting,
)
from airflow_provider_platform.resources.chat.thread import (
    abort,
    read_answer,
    repeat_until,
    with_new_credential,
)
from airflow_provider_platform.resources.run_kind import SINGLE_POLL_SECONDS, RunIds

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

IDLE_POLLS = 5
"""How many connections in a row must show an idle thread before its run counts as lost."""
READINGS = 3
"""How often a thread is read to find lost records of a run that is over."""
USAGE_WAIT = 5.0
"""Seconds that a stream is read on after its end, for the usage record."""
EARLY_END = 0.5
"""Seconds for which the stream of an accepted question is read on before it is left: only an open
stream gets the error of a run that fails at once, such as a used-up quota, and its usage."""
STOP_SECONDS = 6.0
"""Seconds that a stop may take."""
ABORT_SHARE = 1 / 3
"""The share of a stop's time that is kept for the abort, however long the read before takes."""
MIN_ABORT_SECONDS = 0.5
LATE_MESSAGE_GRACE = 0.5
"""Seconds in which a thread that seems to be ours may still send a later message."""

FINAL_VERDICTS = (Verdict.ABORTED, Verdict.FAILED, Verdict.REFUSED)
UNDECIDED = (Verdict.BUSY, Verdict.STREAMING, Verdict.BROKEN)
"""Only another connection can say more."""


@dataclass(frozen=True)
class ChatLimits:
    """Limits of time and repeats: times in seconds, `deadline` in Unix time. `interrupted` returns
    whether the caller wants no more requests."""

    deadline: float
    poll_interval: float = POLL_INTERVAL
    idle_timeout: float = 120.0
    max_attempts: int = 5
    if_thread_busy: IfThreadBusy = "wait"
    interrupted: Callable[[], bool] = not_interrupted

    def within(self, deadline: float, idle_timeout: float) -> ChatLimits:
        """Return limits that end no later."""
        return replace(
            self,
            deadline=min(self.deadline, deadline),
            idle_timeout=min(self.idle_timeout, idle_timeout),
        )


class ChatIds(RunIds):
    """The ids of a question."""

    chat_id: str | None
    message_id: str
    in_existing_thread: bool
    """Whether the thread was there before the question."""
    input_sha256: str
    identity: dict[str, str] | None
    """The user who asked."""
    accepted: bool
    agent_id: NotRequired[int | str]
    """Missing if the question asks the connection's agent."""
    repeats: NotRequired[bool]
    """Before it is accepted: whether it was sent before, under the same message id."""
    resumed: NotRequired[bool]
    """Whether its message was sent once more, because its run stayed suspended."""


@dataclass(frozen=True)
class ChatCall:
    """One question: `run` is what is known about it, `request` is what is sent. `agent_id` names
    the agent, None for the connection's."""

    run: ChatRun
    request: ChatRequest
    limits: ChatLimits
    agent_id: int | str | None = None

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
        agent_id: int | str | None = None,
        max_rows: int = MAX_ROWS,
        details: bool = False,
        is_recorded: bool = True,
    ) -> ChatCall:
        """Return a question that has not been sent. Raises PlatformInputError for a bad
        argument."""
        config.require_chat_url(agent_id)
        settings = config.resolve_session_settings(session_settings)
        request = ChatRequest.ask(
            prompt,
            message_id=message_id or new_message_id(),
            chat_id=chat_id,
            session_settings=settings,
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
            is_recorded=is_recorded,
        )
        return cls(run, request, limits, agent_id)

    @classmethod
    def known(
        cls,
        config: PlatformConfig,
        limits: ChatLimits,
        ids: Mapping[str, Any],
        *,
        session_settings: dict[str, Any] | None = None,
        identity: dict[str, str] | None = None,
        max_rows: int = MAX_ROWS,
        details: bool = False,
    ) -> ChatCall:
        """Return a question that the service has accepted, named by its `ids`: it can be followed
        and stopped without the prompt. `identity` names the user who asked it, and overrides the
        `session_settings`. Raises PlatformInputError."""
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
        return cls(run, request, limits, ids.get("agent_id"))

    @cached_property
    def identity(self) -> dict[str, str] | None:
        """The user who asks, as the request names the user; None with a service token."""
        settings = self.request.session_settings
        return settings.identity if settings else None

    def ids(self, submitted_at: float) -> ChatIds:
        """Return what names the question, without the prompt."""
        ids = ChatIds(
            submitted_at=submitted_at,
            chat_id=self.run.chat_id,
            message_id=self.run.message_id,
            in_existing_thread=self.run.in_existing_thread,
            input_sha256=self.run.digest,
            identity=self.identity,
            accepted=self.run.accepted,
        )
        if self.agent_id is not None:
            ids["agent_id"] = self.agent_id
        return ids

    # Ask.

    async def ask(self, api: Api, *, until_end: bool = True, repeats: bool = False) -> bool:
        """Send the question and stay until the run is over, as `submit` does. The input of a run
        that stays suspended is repeated, once. Returns whether the run is over."""
        try:
            return await self.submit(api, until_end=until_end, repeats=repeats)
        except ChatSuspendedError:
            if not until_end:
                raise
            return await self.follow_or_resume(api)

    async def submit(self, api: Api, *, until_end: bool = True, repeats: bool = False) -> bool:
        """Send the prompt. Returns True once the run is over. With `until_end` False it returns
        False once the service has accepted the message and the run does not end at once, so that
        `follow` can continue.

        A message that its thread turns out not to hold is sent once more; `repeats` says that this
        has happened before. Notifies of `Waiting` and of the run's events. Raises PlatformError:
        ChatBusyError by `if_thread_busy`, ChatSuspendedError, PlatformTransportError if the message
        may still be running, and PlatformOutcomeUnknownError if the thread does not hold a message
        that was sent twice.
        """
        run, limits = self.run, self.limits
        if input_digest(self.request.input or "") != run.digest:
            raise errors.prompt_changed(run)
        while True:
            verdict, failure = await self._send_prompt(api, until_end=until_end)
            if verdict is Verdict.LEFT:
                return False
            if verdict is Verdict.BUSY and not run.accepted:
                if limits.if_thread_busy == "fail":
                    raise errors.thread_busy(run)
                repeats = False  # the service did not process it, so this time does not count
                await api.notify(Waiting(limits.poll_interval))
                await poll_pause(api, limits.poll_interval, limits.deadline - api.clock())
                continue
            if verdict in FINAL_VERDICTS or (run.accepted and verdict is Verdict.OVER):
                return await self._finish(api, verdict)
            if run.chat_id is None:
                raise errors.thread_unknown(run, failure) from failure
            if failure is not None:
                await self._pause_after_failure(api, failure)
            if run.accepted or await self._find_lost_message(api, failure):
                return await self.follow(api) if until_end else False
            if repeats:
                raise errors.message_absent(run, failure) from failure
            repeats = True
            await self._pause_after_failure(api, failure)

    async def _send_prompt(
        self, api: Api, *, until_end: bool
    ) -> tuple[Verdict, PlatformError | None]:
        """Send the prompt until the service has or may have processed it, or its thread is busy.
        Return the verdict, and the error if no stream was opened."""
        run, limits = self.run, self.limits
        body = self.request.to_json()
        if run.chat_id is not None:
            body["chatId"] = run.chat_id
        refusals = 0
        reloaded = False
        while True:
            self._check_limits(api)
            try:
                verdict = await self._connect(api, body, limits, submits=True, until_end=until_end)
            except PlatformError as error:
                if is_busy(error):
                    return Verdict.BUSY, error
                if not await _may_send_again(api, error):
                    if not is_transient(error):
                        raise
                    return Verdict.BROKEN, error
                refusals += 1
                pause = pause_after(error, refusals)
                if refusals >= limits.max_attempts or api.clock() + pause >= limits.deadline:
                    raise
                await self._pause(api, pause)
                continue
            if verdict is Verdict.REFUSED and not reloaded:
                reloaded = True
                if await api.reload_credentials():
                    if run.connection.refused_at_once:
                        continue
                    return Verdict.BROKEN, None  # the prompt may have been processed before
            return verdict, None

    async def _find_lost_message(self, api: Api, failure: PlatformError | None) -> bool:
        """`find_message` after the prompt ended with `failure`, or with a stream that broke. An
        error that no retry could repair would be wrong here: the message may be running."""
        try:
            return await self.find_message(api)
        except PlatformError as error:
            if isinstance(error, PlatformOutcomeUnknownError) and failure is not None:
                raise outcome_unknown(error, failure) from failure
            can_be_retried = error.retryable and not isinstance(error, ChatEndUnknownError)
            if can_be_retried or isinstance(error, PlatformOutcomeUnknownError):
                raise
            raise errors.thread_unread(self.run, error) from error

    # Follow.

    async def follow(self, api: Api) -> bool:
        """Stay with an accepted run until it is over; returns True.

        Raises ChatSuspendedError if the run stays suspended when a new connection asks for it, and
        the error that the run ended with. If connections bring nothing new for longer than an
        outage is tolerated, raises the last error, or ChatEndUnknownError if the thread is not
        streaming.
        """
        verdict = await self._poll(api, FollowUps(self.run), _may_continue)
        return await self._finish(api, verdict)

    async def follow_or_resume(self, api: Api) -> bool:
        """Follow an accepted run. If it stays suspended, repeat its input, once.

        The request must carry the prompt: the service asks for the same thread, input and message
        id.
        """
        try:
            return await self.follow(api)
        except ChatSuspendedError:
            return await self.submit(api)

    # Poll.

    async def poll_final_state(self, api: Api) -> bool:
        """Return whether an accepted run is over. Each request takes at most `SINGLE_POLL_SECONDS`.
        False if the service says that the run continues, or shows no end of it. Raises the error
        that the run ended with, and the last failure if the service could not be reached."""
        polls = FollowUps(self.run)
        try:
            verdict = await self._poll(api, polls, _is_unanswered, seconds=SINGLE_POLL_SECONDS)
        except PlatformError as error:
            if polls.answered and (is_transient(error) or isinstance(error, ChatEndUnknownError)):
                return False
            raise
        if verdict is Verdict.OVER or verdict in FINAL_VERDICTS:
            return await self._finish(api, verdict)
        return False

    async def find_message(self, api: Api) -> bool:
        """Return whether the thread holds our message; this resolves a lost answer to the prompt.
        If a thread of our own is gone, it does not, and the run forgets the thread.

        Raises PlatformOutcomeUnknownError if the thread cannot say it, and ChatEndUnknownError if
        the thread neither streams nor says what it holds.
        """
        run = self.run

        def is_unknown(polls: FollowUps) -> bool:
            return not run.accepted and polls.verdict in UNDECIDED

        try:
            verdict = await self._poll(api, FollowUps(run), is_unknown, until_end=False)
        except PlatformNotFoundError:
            if run.in_existing_thread:
                raise
            run.forget_thread()
            return False
        except PlatformError as error:
            if is_transient(error):
                raise errors.thread_unread(run, error) from error
            raise
        if run.accepted:
            return True
        if verdict in FINAL_VERDICTS:
            raise errors.run_ended(run, verdict)
        if verdict is Verdict.UNCLEAR:
            raise errors.message_unclear(run)
        return False

    async def _poll(
        self,
        api: Api,
        polls: FollowUps,
        connects_again: Callable[[FollowUps], bool],
        *,
        until_end: bool = True,
        seconds: float | None = None,
    ) -> Verdict:
        """Connect as long as `connects_again` says so, and return the last verdict. With `seconds`
        each connection lasts that long at most, and the last failure is the error of the deadline.

        A connection that fails for a moment is repeated: an outage of two minutes is survived.
        Raises that failure at once if the service asks to wait beyond the deadline.
        """
        limits = self.limits
        budget = FailureBudget()
        failure: PlatformError | None = None
        while True:
            if failure and seconds and api.clock() >= limits.deadline:
                raise failure
            self._check_limits(api, failure)
            once = limits if seconds is None else limits.within(api.clock() + seconds, seconds)
            follow_up = partial(self._follow_up, api, once, until_end=until_end)
            try:
                polls.add(await with_new_credential(api, follow_up))
                if not connects_again(polls):
                    return polls.verdict
                pause = polls.pause(limits.poll_interval)
            except PlatformError as error:
                if not budget.tolerates(error, api.clock()) or self._asks_too_long(api, error):
                    raise
                failure = error
                # A stream that breaks is opened again at once: mostly that is no outage.
                is_break = budget.failures == 1 and not isinstance(error, PlatformApiError)
                interval = limits.poll_interval
                pause = pause_after(error, 1) if is_break else budget.pause(interval, error)
                # A poll past the deadline has a few seconds for all its connections.
                pause = min(pause, max(interval, (limits.deadline - api.clock()) / 4))
            else:
                budget.clear()
                failure = None
            left = limits.deadline - api.clock()
            await poll_pause(api, pause, left, failed=failure is not None)

    # Stop.

    async def stop(self, api: Api, *, seconds: float = STOP_SECONDS) -> bool:
        """Stop this run and no other, within `seconds`: read the thread, then abort it. An abort
        that the service did not process is sent again. In a thread of our own, so is one whose
        answer was lost: nobody else's run can be the one that it stops.

        Returns False, with nothing stopped, if the thread is unknown or its latest message is not
        ours. Raises what `abort` raises, and PlatformTransportError if a thread that the caller
        named could not be read: it is left alone, because nobody knows whose run it streams.
        """
        run = self.run
        if run.chat_id is None:
            return False
        until = api.clock() + seconds
        try:
            latest = await self._is_latest(api, until - seconds * ABORT_SHARE)
        except PlatformError:
            if run.in_existing_thread:
                raise
            latest = True
        if not latest:
            return False
        thread, settings = run.chat_id, self.request.session_settings

        async def send_abort() -> None:
            left = max(MIN_ABORT_SECONDS, until - api.clock())
            await abort(api, thread, settings, timeout=left, agent_id=self.agent_id)

        await repeat_until(api, send_abort, deadline=until, repeatable=not run.in_existing_thread)
        return True

    async def _is_latest(self, api: Api, until: float) -> bool:
        """Whether the thread's latest user message is ours. A read that breaks before it says so is
        repeated, up to that time."""
        try:
            return await repeat_until(api, lambda: self._read_latest(api, until), deadline=until)
        except PlatformError as error:
            if is_busy(error):
                return False
            if is_transient(error):
                raise errors.not_stopped(self.run) from error
            raise

    async def _read_latest(self, api: Api, until: float) -> bool:
        """What one reading says. Raises PlatformTransportError if it broke too early to say it."""
        reader = self.run.fresh()
        reader.connect(submits=False)
        connection = reader.connection
        end = until

        def feed(data: bytes) -> float | None:
            nonlocal end
            reader.feed(data, api.clock())
            if connection.history_received:
                end = min(end, api.clock() + LATE_MESSAGE_GRACE)
            return None if connection.ended or reader.passed_by else end

        seconds = max(LATE_MESSAGE_GRACE, until - api.clock())
        body = self.request.follow(str(reader.chat_id))
        clean = await read_answer(api, body, feed, seconds=seconds, agent_id=self.agent_id)
        verdict = reader.disconnect(clean=False)
        if verdict is Verdict.REFUSED:
            raise rpc_error(connection.error, reader)
        if verdict is Verdict.BUSY:
            return False
        if not (connection.ended or reader.passed_by) and (
            clean or not connection.history_received
        ):
            raise errors.not_stopped(self.run)
        return reader.is_latest

    # One connection.

    async def _connect(
        self,
        api: Api,
        body: dict[str, Any],
        limits: ChatLimits,
        *,
        submits: bool,
        until_end: bool,
    ) -> Verdict:
        """One request and its stream. Without `until_end` the stream is left once the message is
        accepted."""
        run = self.run
        await api.open_stream(
            body, timeout=limits.idle_timeout, repeatable=not submits, agent_id=self.agent_id
        )
        run.connect(submits=submits)
        connection = run.connection
        last_active = api.clock()
        ended: float | None = None
        accepted: float | None = None
        clean = False
        try:
            while True:
                now = api.clock()
                until = last_active + limits.idle_timeout if ended is None else ended + USAGE_WAIT
                leaves_at = None if accepted is None or ended else accepted + EARLY_END
                if leaves_at is not None:
                    until = min(until, leaves_at)
                wait = min(until, limits.deadline) - now
                data: bytes | None = await api.read_stream(wait) if wait > 0 else None
                if data is None and leaves_at is not None:
                    await api.close_stream()
                    return Verdict.LEFT
                if data is None:
                    break
                if data == b"":
                    clean = True
                    break
                now = api.clock()
                await _hand_over(api, run.feed(data, now))
                if connection.received_data:
                    last_active = now
                ended = (ended or now) if connection.ended else None
                if connection.complete:
                    break
                if not until_end and run.is_confirmed and accepted is None:
                    accepted = now
        except PlatformTransportError:
            pass  # broken: the verdict says what that means
        except PlatformError:
            run.disconnect(clean=False)
            await _hand_over(api, run.take_events())
            raise
        await api.close_stream(complete=clean or connection.complete)
        verdict = run.disconnect(clean=clean)
        await _hand_over(api, run.take_events())
        return verdict

    async def _follow_up(self, api: Api, limits: ChatLimits, *, until_end: bool) -> Verdict:
        """One request without `input`. Raises the error of a refused credential, and RuntimeError
        for a run without a thread."""
        if self.run.chat_id is None:
            raise RuntimeError("a run without a thread cannot be followed")
        body = self.request.follow(self.run.chat_id)
        try:
            verdict = await self._connect(api, body, limits, submits=False, until_end=until_end)
        except PlatformError as error:
            if is_busy(error):
                return Verdict.BUSY
            raise
        if verdict is Verdict.REFUSED:
            raise errors.run_ended(self.run, verdict)
        return verdict

    # The end.

    async def _finish(self, api: Api, verdict: Verdict) -> bool:
        """Return True for a run that is over, after reading lost records if that is possible; for
        any other verdict raise the error that the run ended with.

        A final record that is not complete is confirmed by reading the thread. Raises
        PlatformTransportError if the thread could not be read for that.
        """
        run = self.run
        if verdict is not Verdict.OVER:
            raise errors.run_ended(run, verdict)
        in_process = run.answer_in_process
        if in_process:
            run.forget_messages()
        if not (in_process or run.may_lack_records):
            return True
        try:
            await self._read_thread(api, confirms=in_process)
        except (PlatformDeadlineError, PlatformInterruptedError):
            if in_process:
                raise
        except PlatformError as error:
            if in_process:
                raise errors.answer_unconfirmed(run, error) from error
        return True

    async def _read_thread(self, api: Api, *, confirms: bool) -> None:
        """Read a thread whose run is over, for records that were lost or not complete.

        For a moment after the end the thread may still count as streaming, so that a reading waits
        for records that do not come. Hence a few readings, and no more: what is known already is a
        result too. An answer that is not complete is no result, so that its thread is waited for.
        """
        run = self.run

        def may_show_more(polls: FollowUps) -> bool:
            if not run.reported_streaming and polls.verdict is not Verdict.BROKEN:
                return False
            return confirms or (polls.count < READINGS and run.may_lack_records)

        await self._poll(api, FollowUps(run), may_show_more)

    # Pauses and limits.

    def _check_limits(self, api: Api, failure: PlatformError | None = None) -> None:
        """Raise PlatformInterruptedError or PlatformDeadlineError if no more requests are due.
        `failure` is the error of the last request."""
        if self.limits.interrupted():
            raise errors.interrupted(self.run)
        if api.clock() >= self.limits.deadline:
            raise errors.deadline_passed(self.run, failure)

    async def _pause(self, api: Api, seconds: float) -> None:
        await api.sleep(max(0.0, min(seconds, self.limits.deadline - api.clock())))

    async def _pause_after_failure(self, api: Api, failure: PlatformError | None) -> None:
        """Pause before the next request. Raises the failure if the service asks to wait beyond the
        deadline: waiting would gain nothing."""
        if failure is not None and self._asks_too_long(api, failure):
            raise failure
        await self._pause(api, pause_after(failure, 1))

    def _asks_too_long(self, api: Api, error: PlatformError) -> bool:
        """Whether the service asks to wait beyond the deadline."""
        asked = error.retry_after if isinstance(error, PlatformApiError) else None
        return asked is not None and api.clock() + asked >= self.limits.deadline


@dataclass
class FollowUps:
    """What the connections of one wait have shown so far, each of them without `input`."""

    run: ChatRun
    verdict: Verdict = Verdict.BROKEN
    """The verdict on the latest connection."""
    count: int = 0
    suspended: int = 0
    """How many connections found the run suspended."""
    answered: bool = False
    """Whether a connection has shown the thread."""
    stalled: int = 0
    """How many connections in a row broke and brought nothing new."""
    idle: int = 0
    """How many of these showed an idle thread."""

    def add(self, verdict: Verdict) -> None:
        """Count a connection."""
        self.verdict = verdict
        self.count += 1
        self.suspended += verdict is Verdict.SUSPENDED
        busy = verdict is Verdict.BUSY  # there may be no connection yet
        self.answered = self.answered or busy or self.run.connection.history_received

    def pause(self, poll_interval: float) -> float:
        """Return the seconds until the next connection. Raises PlatformTransportError if the latest
        brought nothing new, ChatEndUnknownError if the thread is idle."""
        run = self.run
        if self.verdict is not Verdict.BROKEN:
            self.idle = 0
            return poll_interval
        grew = run.connection.grew
        self.stalled = 0 if grew else self.stalled + 1
        if grew or run.reported_streaming:
            self.idle = 0
            return pause_after(None, self.stalled)
        self.idle += run.reported_idle
        if self.idle >= IDLE_POLLS:
            raise errors.end_unknown(run, self.idle)
        raise errors.nothing_new(run)


def _may_continue(polls: FollowUps) -> bool:
    """Whether the run may continue. If it is suspended, the next connection says whether it has
    resumed."""
    if polls.verdict is Verdict.SUSPENDED:
        return polls.suspended == 1 or polls.run.connection.grew
    return polls.verdict in UNDECIDED


def _is_unanswered(polls: FollowUps) -> bool:
    """Whether the thread neither showed an end of the run nor said that the run continues."""
    return polls.verdict is Verdict.BROKEN and not polls.run.reported_streaming


async def _may_send_again(api: Api, error: PlatformError) -> bool:
    """Return whether a prompt that was answered with this error can be sent again: with a new
    credential, or because the service did not process it."""
    if isinstance(error, PlatformAuthenticationError) and await api.reload_credentials():
        return True
    return cannot_have_been_processed(error)


async def _hand_over(api: Api, events: list[ChatEvent]) -> None:
    """Notify the caller of the events of a run. The run goes on once the caller has recorded the
    ids in them."""
    for event in events:
        if isinstance(event, ThreadNamed | Accepted):
            await api.notify(event)
        else:
            api.report(event)
