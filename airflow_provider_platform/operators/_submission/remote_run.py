"""Operators that start something at the service and wait for it: one course for all of them.

    execute            decide by the record of the last try: submit, find out, re-attach, take
      submit           write `intent`, start the run, write `running`
      follow or defer  on the worker, or in the triggerer until `execute_complete`
    finish             write `done`, return the result

Each step's failure is judged in one place (`_ending`): whether the remote run has ended, goes on or
must be stopped, and what the next try may rely on. A subclass says how its kind of run is
submitted, followed, stopped and read; it holds no rule about tries.
"""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from airflow_provider_platform._airflow import AirflowTaskTimeout, get_task_states
from airflow_provider_platform._killed_tasks import UNKNOWN, run_within, stops_run
from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInterruptedError,
    from_payload,
)
from airflow_provider_platform.client.operations.log_events import log_events
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import (
    BACKSTOP_SECONDS,
    ForeseenFailures,
    PlatformOperator,
    airflow_errors,
    default_deferrable,
)
from airflow_provider_platform.operators._submission.attempt import Attempt, Ids
from airflow_provider_platform.operators._submission.failures import disposition_of, run_is_dead
from airflow_provider_platform.operators._submission.record import (
    Step,
    Submission,
    read_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_platform._airflow import BaseTrigger, Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.http.client import PlatformClient
    from airflow_provider_platform.client.operations.program import Clock, Program

OutcomeT = TypeVar("OutcomeT")
"""What a run that is over has given."""

LOOK_SECONDS = 15.0
KILL_SECONDS = 4.0
"""What `on_kill` may take in all; Airflow kills the process five seconds after the signal."""
LOOK_UP_SECONDS = 2.0
"""What Airflow may take of these to tell the task's state."""
LOG_SECONDS = 0.2


class RemoteRunOperator(PlatformOperator, Generic[OutcomeT]):
    """Base of the operators that wait for a run at the service.

    :param deferrable: wait in the triggerer (default: `[operators] default_deferrable`)
    :param poll_interval: seconds (or a timedelta) between two looks at the run
    :param timeout: seconds (or a timedelta) of wall time from submission
    :param cancel_on_kill: stop the remote run when the task is ended from outside or too late
    """

    waiting_fields: ClassVar[Sequence[str]] = (
        "deferrable",
        "poll_interval",
        "timeout",
        "cancel_on_kill",
    )
    event_names: ClassVar[str]
    """Which of the ids tells one run from another."""

    checks: ClassVar[dict[str, Any]] = {
        "deferrable": lambda value: arguments.boolean("deferrable", value),
        "poll_interval": lambda value: arguments.seconds("poll_interval", value),
        "timeout": lambda value: arguments.seconds("timeout", value),
        "cancel_on_kill": lambda value: arguments.boolean("cancel_on_kill", value),
    }

    def __init__(
        self,
        *,
        deferrable: bool | None = None,
        poll_interval: float | timedelta = 5.0,
        timeout: float | timedelta,
        cancel_on_kill: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = default_deferrable(deferrable)
        self.poll_interval: Any = poll_interval
        self.timeout: Any = timeout
        self.cancel_on_kill = cancel_on_kill
        self._attempt: Attempt | None = None
        self._killed = False
        self._left_to_retry = False
        """Of a killed task: whether its run goes on for another try to take up."""
        self._in_on_kill = False
        self._state_was_unknown = False
        self._deferring = False

    @abstractmethod
    def key_of(self, config: PlatformConfig) -> str:
        """The fingerprint of address, identity and input."""

    @abstractmethod
    def submit(self, attempt: Attempt, *, ids: Ids | None, until_end: bool) -> OutcomeT | None:
        """Start the run, with the ids of a lost submission where there was one.

        Tells it before (`announce`) and after (`accepted`). Returns what came of it where the run
        is already over, else None; with `until_end` it may stay until the end.
        """

    @abstractmethod
    def recover(self, attempt: Attempt, ids: Ids) -> tuple[bool, Ids]:
        """Whether a submission whose outcome was lost has been processed, and its ids by now.
        Raises PlatformOutcomeUnknownError where nobody can tell."""

    @abstractmethod
    def follow(self, attempt: Attempt, ids: Ids) -> OutcomeT:
        """Wait for the run on the worker."""

    @abstractmethod
    def poll_once(self, attempt: Attempt, ids: Ids) -> OutcomeT | None:
        """What the run has given, None where it is not over now."""

    @abstractmethod
    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None
    ) -> Program[bool]:
        """Stop the run, within so many seconds if given; False where there was nothing of ours to
        stop."""

    @abstractmethod
    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        """The trigger that waits for the run until the deadline (Unix time)."""

    @abstractmethod
    def read_event(self, attempt: Attempt, ids: Ids, event: dict[str, Any]) -> OutcomeT | None:
        """What the trigger brought; None where the run must be followed further (ids may have
        changed)."""

    @abstractmethod
    def finish(self, attempt: Attempt, ids: Ids, outcome: OutcomeT) -> Any:
        """The task's result as plain JSON. Raises PlatformError where the outcome is a failure."""

    def take(self, attempt: Attempt, ids: Ids) -> OutcomeT:
        """The outcome of a run that an earlier try has seen to its end."""
        return self.follow(attempt, ids)

    def execute(self, context: Context) -> Any:
        """Start or take up the run, wait for it, return its result."""
        with ForeseenFailures(), self._opened(context) as attempt:
            return self._start(attempt)

    def execute_complete(
        self, context: Context, event: dict[str, Any], run: Ids | None = None
    ) -> Any:
        """Take what the trigger brought. `run` are the ids that the task deferred with; an event
        of another run (trigger ids are reused) is ignored."""
        told = event.get("run") or {}
        ids: Ids = run or told
        with self._opened(context, ids) as attempt:
            attempt.ids, attempt.reattached = ids, bool(ids.get("reattached"))
            if told.get(self.event_names) != ids.get(self.event_names):
                self.log.warning("Ignoring the event of another run; this task waits on.")
                self._defer(attempt, ids)
            try:
                if event["status"] == "error":
                    raise _error_of(event)
                outcome = self.read_event(attempt, ids, event)
            except PlatformError as error:
                return self._after_failure(attempt, ids, error, stopped=event.get("stopped", False))
            if outcome is None:
                return self._wait(attempt, attempt.ids)
            return self._finish(attempt, ids, outcome)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Stop a run whose trigger did not report in time, before the task fails."""
        if next_method == "__fail__" and self.cancel_on_kill:
            record = read_record(context)
            if record is not None and record.phase == "running":
                with self._opened(context, record.ids) as attempt:
                    self.log.error("The trigger did not report in time; stopping the remote run.")
                    self._stop_quietly(attempt.client, record.ids)
                    attempt.submission.note("failed", record.ids)
        with ForeseenFailures():
            return super().resume_execution(next_method, next_kwargs, context)

    def on_kill(self) -> None:
        """Stop the remote run of a task that is ended from outside, or leave it to the retry.

        Airflow calls this in a signal handler, which may have interrupted anything, also a request
        to Airflow or a line being logged: what could wait for that is done in other threads, with
        a client of its own, and not waited for beyond `KILL_SECONDS`.
        """
        if self._in_on_kill:
            return  # the signal came twice
        self._in_on_kill = True
        try:
            self._killed = True
            if self._attempt is not None:
                self._end_attempt(self._attempt, time.monotonic() + KILL_SECONDS)
        finally:
            self._in_on_kill = False

    def announce(self, attempt: Attempt, ids: Ids) -> None:
        """Write down what is about to be submitted. Raises PlatformInterruptedError where the task
        was ended meanwhile: nobody wants the submission then."""
        self._refuse_when_killed()
        attempt.submission.write("intent", ids)

    def accepted(self, attempt: Attempt, ids: Ids) -> None:
        """The service has accepted the submission: from now on it can be followed and stopped. Of
        a task that was killed meanwhile nobody wants it, or only the retry does."""
        attempt.ids = {**ids, "key": attempt.submission.key}
        if self._killed and not self._left_to_retry:
            self._stop_quietly(attempt.client, attempt.ids)
        attempt.submission.note("running", attempt.ids)
        if self._left_to_retry:
            if not attempt.submission.finds(attempt.ids):
                self._stop_quietly(attempt.client, attempt.ids)  # no retry could find it
            attempt.client.interrupt()

    def log_events(self, attempt: Attempt) -> Callable[[object], None]:
        """Logs what a program tells."""
        return log_events(self.log, attempt.client.secrets)

    def deadline(self, attempt: Attempt, ids: Ids) -> float:
        """When the run must be over (Unix time): `timeout` after its submission, or this try's
        `execution_timeout`, whichever comes first."""
        deadline = float(ids["submitted_at"]) + float(self.timeout)
        limit = self.execution_timeout
        if limit is not None:
            began = getattr(attempt.context.get("ti"), "start_date", None)
            start = began.timestamp() if began is not None else attempt.now
            deadline = min(deadline, start + limit.total_seconds())
        return deadline

    @contextmanager
    def _opened(self, context: Context, ids: Ids | None = None) -> Iterator[Attempt]:
        """The connection and the record; a run that is under way keeps the key it began with."""
        with airflow_errors():
            self.coerce_arguments()
            with (
                self.hook() as hook,
                hook.client() as client,
                client.redacted_errors(),
            ):
                key = (ids or {}).get("key") or self.key_of(hook.config)
                with closing(Submission(context, key)) as submission:
                    attempt = Attempt(context, client, hook.config, submission)
                    self._attempt = attempt
                    self.store_link(context, hook.config)
                    try:
                        yield attempt
                    except PlatformInterruptedError:
                        if self._state_was_unknown:
                            # The signal may have come in the middle of a request to Airflow, so
                            # that none could be made; now one can.
                            self._end_attempt(attempt, time.monotonic() + LOOK_UP_SECONDS)
                        self._attempt = None
                        raise
                    except Exception:
                        self._attempt = None
                        raise
                    # Who leaves by another way (a deferral, Airflow's time-out) may yet be killed.
                    self._attempt = None

    def _start(self, attempt: Attempt) -> Any:
        record = read_record(attempt.context)
        step, stop_first = attempt.submission.first_step(record)
        if record is not None and stop_first:
            self.log.info("The input changed or the task was cleared: stopping the earlier run.")
            self._stop_quietly(attempt.client, record.ids)
        if record is None or step is Step.START:
            return self._submit(attempt, None)
        if step is Step.RECOVER:
            return self._recover(attempt, record.ids)
        if step is Step.TAKE:
            self.log.info("An earlier try saw the run succeed; taking its result again.")
            return self._finish(attempt, record.ids, self.take(attempt, record.ids))
        return self._reattach(attempt, record.ids)

    def _recover(self, attempt: Attempt, ids: Ids) -> Any:
        self.log.warning("An earlier try was lost while it submitted; looking it up.")
        try:
            processed, ids = self.recover(attempt, ids)
        except PlatformError as error:
            if run_is_dead(error) and not self._killed:
                self.log.info("The run of the lost try is dead (%s); submitting anew.", error)
                return self._submit(attempt, None)
            self._give_up(attempt, error, submitted=True)
            raise
        if not processed:
            return self._submit(attempt, ids)
        self.accepted(attempt, ids)
        return self._reattach(attempt, {**ids, "key": attempt.submission.key})

    def _reattach(self, attempt: Attempt, ids: Ids) -> Any:
        """Take up a run that an earlier try has started; past its deadline, look at it once."""
        attempt.ids, attempt.reattached = ids, True
        if attempt.now < float(ids["submitted_at"]) + float(self.timeout):
            self.log.info("Taking up the run that an earlier try has started.")
            return self._wait(attempt, {**ids, "reattached": True})
        try:
            outcome = self.poll_once(attempt, ids)
        except PlatformError as error:
            return self._after_failure(attempt, ids, error)
        if outcome is not None:
            return self._finish(attempt, ids, outcome)
        self.log.info("The earlier try's run is past its deadline: stopping it, starting anew.")
        self._stop_quietly(attempt.client, ids)
        return self._submit(attempt, None)

    def _submit(self, attempt: Attempt, ids: Ids | None) -> Any:
        attempt.forget()
        try:
            outcome = self.submit(attempt, ids=ids, until_end=not self.deferrable)
        except PlatformError as error:
            self._give_up(attempt, error, submitted=attempt.ids is not None)
            raise
        accepted: Ids = attempt.ids or {}
        if outcome is not None:
            return self._finish(attempt, accepted, outcome)
        return self._wait(attempt, accepted)

    def _wait(self, attempt: Attempt, ids: Ids | None) -> Any:
        if ids is None:
            raise RuntimeError("nothing was submitted that could be waited for")
        self._refuse_when_killed()
        if self.deferrable:
            self._defer(attempt, ids)
        try:
            outcome = self.follow(attempt, ids)
        except PlatformError as error:
            return self._after_failure(attempt, ids, error)
        return self._finish(attempt, ids, outcome)

    def _defer(self, attempt: Attempt, ids: Ids) -> None:
        self._deferring = True
        deadline = self.deadline(attempt, ids)
        limits = max(0.0, deadline - attempt.now) + BACKSTOP_SECONDS
        attempt.submission.make_up()
        self.defer(
            trigger=self.trigger(ids, deadline),
            method_name="execute_complete",
            kwargs={"run": ids},
            timeout=timedelta(seconds=limits + attempt.config.stream_idle_timeout),
        )

    def _after_failure(
        self, attempt: Attempt, ids: Ids, error: PlatformError, *, stopped: bool = False
    ) -> Any:
        """A run that was taken up and turns out dead is submitted anew, once: the old try's stop
        can land before or after this try began. Every other failure ends the try."""
        if attempt.reattached and run_is_dead(error) and not self._killed:
            self.log.info("The run that was taken up is dead (%s); submitting anew.", error)
            return self._submit(attempt, None)
        attempt.ids = ids
        self._give_up(attempt, error, submitted=True, stopped=stopped)
        raise error

    def _finish(self, attempt: Attempt, ids: Ids, outcome: OutcomeT) -> Any:
        try:
            result = self.finish(attempt, ids, outcome)
        except PlatformError as error:
            attempt.ids = ids
            self._give_up(attempt, error, submitted=True)
            raise
        attempt.submission.note("done", ids)
        return result

    def _give_up(
        self, attempt: Attempt, error: PlatformError, *, submitted: bool, stopped: bool = False
    ) -> None:
        """Leave the record as the next try needs it, and nothing running that nobody follows."""
        known = attempt.known
        disposition = disposition_of(
            error,
            submitted=submitted,
            named=known is not None,
            last_try=self._is_last_try(attempt),
        )
        if disposition.stop and self._left_to_retry:
            return  # the record says that it runs, and the retry stops it if need be
        if disposition.stop and known is not None and not stopped:
            self.log.warning("No try will take the run up again; stopping it.")
            self._stop_quietly(attempt.client, known)
        if disposition.phase is not None:
            attempt.submission.note(disposition.phase, known or {})
        elif known is not None and not self._killed:
            # Again, in case that the store could not be reached before.
            attempt.submission.note("running" if attempt.ids else "intent", known)

    def _end_attempt(self, attempt: Attempt, until: float) -> None:
        """What a kill means for the run; `until` by the monotonic clock."""
        self._left_to_retry = not self.cancel_on_kill or not self._stops_when_killed(attempt)
        ids = attempt.known
        if self._left_to_retry:
            self._tell(
                self.log.warning,
                "The remote run is left to the task's next try, which takes it up.",
            )
            if attempt.ids is not None:
                # Else the try goes on until the service has accepted: who breaks off now does not
                # learn the name of the run.
                attempt.client.interrupt()
            return
        if ids is None:
            self._tell(
                self.log.warning,
                "The service has not accepted the submission yet, so it cannot be stopped; it may "
                "still be processed.",
            )
            return
        with self._stop_logged() as tell:
            tell(self._stop_in_time(attempt.client.config, ids, until - time.monotonic()))

    def _stops_when_killed(self, attempt: Attempt) -> bool:
        """Whether the run is to be stopped, by what Airflow says of the task."""
        if isinstance(sys.exception(), AirflowTaskTimeout):
            return True  # `execution_timeout`: Airflow has ended this try itself
        has_record = attempt.submission.finds(attempt.known)
        state: str | None = UNKNOWN
        if has_record:
            try:
                state = run_within(LOOK_UP_SECONDS, lambda: get_task_states(attempt.context["ti"]))
            except Exception as error:  # noqa: BLE001 - whatever it was, nobody knows the state
                self._tell(
                    self.log.warning,
                    "Airflow did not tell the state of the task: %s",
                    str(error) or repr(error),
                )
            else:
                self._tell(self.log.info, "Told to end; Airflow has the task as %s.", state)
            self._state_was_unknown = state == UNKNOWN
        # A trigger that follows is as good as a retry.
        last_try = self._is_last_try(attempt) and not self._deferring
        return stops_run(state, killed="worker", last_try=last_try, has_record=has_record)

    def _tell(self, log: Callable[..., None], message: str, *args: Any) -> None:
        """Log a line. In a signal handler another thread does: the handler may have interrupted
        this one while it held the log's lock."""
        if not self._in_on_kill:
            log(message, *args)
            return
        with suppress(TimeoutError):
            run_within(LOG_SECONDS, lambda: log(message, *args))

    def _stop_in_time(self, config: PlatformConfig, ids: Ids, seconds: float) -> bool:
        """Stop the run on an event loop of its own. Raises PlatformError, TimeoutError."""
        import asyncio

        from airflow_provider_platform.client.http.client import AsyncPlatformClient

        quick = config.model_copy(update={"request_timeout": seconds, "max_attempts": 1})

        async def stop() -> bool:
            async with AsyncPlatformClient(quick) as client:
                return await client.run(self.stop(quick, client.clock, ids, seconds=seconds))

        return run_within(seconds, lambda: asyncio.run(stop()))

    def _refuse_when_killed(self) -> None:
        if self._killed:
            raise PlatformInterruptedError("The task was ended from outside: it goes no further.")

    def _is_last_try(self, attempt: Attempt) -> bool:
        ti = attempt.context.get("ti")
        return int(getattr(ti, "try_number", 1) or 1) > int(getattr(ti, "max_tries", 0) or 0)

    def _stop_quietly(self, client: PlatformClient, ids: Ids) -> None:
        if self.cancel_on_kill:
            with self._stop_logged() as tell:
                tell(client.run(self.stop(client.config, client.clock, ids, seconds=None)))

    @contextmanager
    def _stop_logged(self) -> Iterator[Callable[[bool], None]]:
        """Logs how a stop ended: that it failed, or what the block tells of it."""

        def tell(stopped: bool) -> None:
            self._tell(
                self.log.info,
                "The remote run was stopped." if stopped else "There was nothing of ours to stop.",
            )

        try:
            yield tell
        except TimeoutError:
            self._tell(
                self.log.warning, "The remote run could not be stopped: there was no time left."
            )
        except PlatformError as error:
            self._tell(self.log.warning, "The remote run could not be stopped: %s", error)


def _error_of(event: dict[str, Any]) -> PlatformError:
    return from_payload(event["error"])
