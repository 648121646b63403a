"""Operators that start something at the service and wait for it: one course for all of them.

    execute            decide by the record of the last try: submit, find out, re-attach, take
      submit           write `intent`, start the run, write `running`
      follow or defer  on the worker, or in the triggerer until `execute_complete`
    finish             write `done`, return the result

Each step's failure is judged in one place (`failure_disposition`): whether the remote run has
ended, goes on or must be stopped, and what the next try may rely on. What becomes of it when the
task is ended from outside stands in `kills`. A subclass says how its kind of run is submitted,
followed, stopped and read (`run_kind`); it holds no rule about tries.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInterruptedError,
    from_payload,
)
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.deferral import (
    BACKSTOP_SECONDS,
    default_deferrable,
    earliest_deadline,
)
from airflow_provider_platform.operators._base.failures import ForeseenFailures, airflow_errors
from airflow_provider_platform.operators._submission.attempt import Attempt, Ids
from airflow_provider_platform.operators._submission.failure_disposition import (
    disposition_of,
    run_is_dead,
)
from airflow_provider_platform.operators._submission.record import Submission, read_record
from airflow_provider_platform.operators._submission.retry import Step
from airflow_provider_platform.operators._submission.run_kind import OutcomeT, RunKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.operators._base.operator import Checks

LOOK_SECONDS = 15.0


class RemoteRunOperator(RunKind[OutcomeT]):
    """Base of the operators that wait for a run at the service.

    :param deferrable: wait in the triggerer, where a wait holds no worker slot; None means
        Airflow's `[operators] default_deferrable`
    :param poll_interval: seconds (or a timedelta) between two looks at the run
    :param timeout: seconds (or a timedelta) of wall time from submission; an earlier
        `execution_timeout` counts too
    """

    checks: ClassVar[Checks] = {
        "deferrable": arguments.boolean,
        "poll_interval": arguments.seconds,
        "timeout": arguments.seconds,
        "cancel_on_kill": arguments.boolean,
    }

    def __init__(
        self,
        *,
        deferrable: bool | None = None,
        poll_interval: float | timedelta = 5.0,
        timeout: float | timedelta,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = default_deferrable(deferrable)
        self.poll_interval: Any = poll_interval
        self.timeout: Any = timeout

    def execute(self, context: Context) -> Any:
        """Start or take up the run, wait for it, return its result."""
        with ForeseenFailures(), self._opened(context) as attempt:
            return self._start(attempt)

    def execute_complete(
        self, context: Context, event: dict[str, Any], run: Ids | None = None
    ) -> Any:
        """Take what the trigger brought. `run` are the ids that the task deferred with; an event
        of another run (trigger ids are reused) is ignored."""
        event_ids = event.get("run") or {}
        ids: Ids = run or event_ids
        with self._opened(context, ids) as attempt:
            attempt.ids, attempt.reattached = ids, bool(ids.get("reattached"))
            if event_ids.get(self.event_names) != ids.get(self.event_names):
                self.log.warning("Ignoring the event of another run; this task waits on.")
                self._defer(attempt, ids)
            try:
                if event["status"] == "error":
                    raise from_payload(event["error"])
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

    def announce(self, attempt: Attempt, ids: Ids) -> None:
        """Write down what is about to be submitted. Raises PlatformInterruptedError where the task
        was ended meanwhile: nobody wants the submission then."""
        self._refuse_when_killed()
        attempt.submission.write("intent", ids)

    def accepted(self, attempt: Attempt, ids: Ids) -> None:
        """The service has accepted the submission: from now on it can be followed and stopped. Of
        a task that was killed meanwhile nobody wants it, or only the retry does."""
        attempt.ids = {**ids, "key": attempt.submission.key}
        self.store_link(attempt.context, attempt.config, **ids)
        if self._killed and not self._left_to_retry:
            self._stop_quietly(attempt.client, attempt.ids)
        attempt.submission.note("running", attempt.ids)
        if self._left_to_retry:
            if not attempt.submission.finds(attempt.ids):
                self._stop_quietly(attempt.client, attempt.ids)  # no retry could find it
            attempt.client.interrupt()

    def deadline(self, attempt: Attempt, ids: Ids) -> float:
        """When the run must be over (Unix time): `timeout` after its submission, or this try's
        `execution_timeout`, whichever comes first."""
        deadline = float(ids["submitted_at"]) + float(self.timeout)
        return earliest_deadline(deadline, self.execution_timeout, attempt.context, now=attempt.now)

    @contextmanager
    def _opened(self, context: Context, ids: Ids | None = None) -> Iterator[Attempt]:
        """The connection and the record; a run that is under way keeps the key it began with."""
        with airflow_errors():
            self.coerce_arguments()
            with self.hook() as hook, hook.client() as client, client.redacted_errors():
                key = (ids or {}).get("key") or self.key_of(hook.config)
                with closing(Submission(context, key)) as submission:
                    attempt = Attempt(context, client, hook.config, submission, self.log)
                    self._attempt = attempt
                    self.store_link(context, hook.config, **(ids or {}))
                    try:
                        with self.logged_link():
                            yield attempt
                    except PlatformInterruptedError:
                        self._end_interrupted(attempt)
                        self._attempt = None
                        raise
                    except Exception as error:
                        if not isinstance(error, PlatformError):
                            self._stop_unfollowed(attempt, error)
                        self._attempt = None
                        raise
                    finally:
                        attempt.event_log.close()
                    # Who leaves by another way (a deferral, Airflow's time-out) may yet be killed.
                    self._attempt = None

    def _stop_unfollowed(self, attempt: Attempt, error: Exception) -> None:
        """An error that is not of this package ends the try: nobody has judged what becomes of its
        run. A retry that finds the run follows it; else nothing may be left running."""
        known = attempt.known
        if known is None or self._left_to_retry or not self._is_last_try(attempt, error):
            return
        self.log.warning("No try will take the run up again; stopping it.")
        self._stop_quietly(attempt.client, known)

    def _start(self, attempt: Attempt) -> Any:
        record = read_record(attempt.context)
        step, stop_first = attempt.submission.first_step(record)
        if record is not None and stop_first:
            self.log.info("The input changed or the task was cleared: stopping the earlier run.")
            self._stop_quietly(attempt.client, record.ids)
        if record is not None and step is Step.REPORT:
            self._report_lost(attempt, record.ids)
        if record is None or step in (Step.START, Step.REPORT):
            return self._submit(attempt, None)
        if step is Step.FIND_OUT:
            return self._recover(attempt, record.ids)
        if step is Step.RELOAD:
            self.log.info("An earlier try saw the run succeed; taking its result again.")
            return self._finish(attempt, record.ids, self.take(attempt, record.ids))
        return self._reattach(attempt, record.ids)

    def _report_lost(self, attempt: Attempt, ids: Ids) -> None:
        """An earlier try was lost while it submitted other input: stop what is known of that run,
        and say that it may be running."""
        self.log.warning(
            "An earlier try was lost while it submitted other input, so a run with that input may "
            "be running at the service. This try stops what it knows of that run and submits the "
            "input of now."
        )
        self._stop_quietly(attempt.client, ids)

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
        self.store_link(attempt.context, attempt.config, **ids)
        if attempt.now < float(ids["submitted_at"]) + float(self.timeout):
            self.log.info("Taking up the run that an earlier try has started.")
            try:
                ids = self.resume(attempt, ids)
            except PlatformError as error:
                return self._after_failure(attempt, ids, error)
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
        attempt.event_log.close()
        try:
            result = self.finish(attempt, ids, outcome)
        except PlatformError as error:
            attempt.ids = ids
            self._give_up(attempt, error, submitted=True)
            raise
        attempt.submission.note("done", ids)
        self.store_result_link(attempt.context, attempt.config, result)
        return result

    def _give_up(
        self, attempt: Attempt, error: PlatformError, *, submitted: bool, stopped: bool = False
    ) -> None:
        """Leave the record as the next try needs it, and nothing running that nobody follows."""
        known = attempt.known
        attempt.submission.make_up()  # whether a retry finds the run depends on it
        disposition = disposition_of(
            error,
            submitted=submitted,
            named=known is not None,
            last_try=self._is_last_try(attempt, error),
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
