"""The flow of all operators that start a run on the service once, and wait for it.

    execute            decide by the record of the last try: submit, find, re-attach, reload
      submit           write `intent`, start the run, write `running`
      follow or defer  on the worker, or in the triggerer until `execute_complete`
    finish             write `done`, return the result

`RemoteRunOperator` waits for a run. A subclass provides a `RunKind` (`resources/`), which says how
its run is submitted, found, followed, stopped and read. `_run_record` decides what a later try
does with the record, and what an error changes in it.

`_attempt` is one try. `_run_stop` says what becomes of the run of a task that ends before it.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from airflow_provider_platform._airflow import AirflowTaskTimeout
from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import POLL_INTERVAL
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformError,
    from_payload,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.operators._attempt import Attempt, Confirmed, Sent, Unsent
from airflow_provider_platform.operators._base import (
    BACKSTOP_SECONDS,
    PlatformOperator,
    ShortTraceback,
    airflow_errors,
    default_deferrable,
    earliest_deadline,
)
from airflow_provider_platform.operators._run_record import (
    RecordKeeper,
    Step,
    disposition_of,
    read_record,
)
from airflow_provider_platform.operators._run_stop import RunKill, stop_run, stop_unfollowed
from airflow_provider_platform.resources.run_kind import (
    SINGLE_POLL_SECONDS,
    Identified,
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    kind_class,
    path_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.operators._base import Checks


P = ParamSpec("P")
T = TypeVar("T")


class RemoteRunOperator(PlatformOperator):
    """Base of the operators that wait for a run on the service.

    :param deferrable: wait in the triggerer, which needs no worker slot; None means Airflow's
        `[operators] default_deferrable`
    :param poll_interval: seconds (or a timedelta) between two polls of the run, on average
    :param timeout: seconds (or a timedelta) of wall time from submission; an earlier
        `execution_timeout` counts too
    :param durable: record the run in Airflow's task state store (Airflow 3.3 and later), so that a
        retry finds it (None means True). Without the record, a try knows nothing of earlier tries,
        whatever this page says: it starts a new run, and the run of a lost worker continues until
        it ends by itself
    """

    checks: ClassVar[Checks] = {
        "deferrable": arguments.boolean,
        "durable": arguments.optional_boolean,
        "poll_interval": arguments.seconds,
        "timeout": arguments.seconds,
    }

    cancel_on_kill: bool = True
    """Whether the remote run is stopped, if it can be, when the task is stopped or exceeds its
    deadline."""
    if_running: Any = None
    """What to do if an equal run is active already; None if this kind of run does not check
    that."""

    def __init__(
        self,
        *,
        deferrable: bool | None = None,
        poll_interval: float | timedelta = POLL_INTERVAL,
        timeout: float | timedelta,
        durable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.durable = durable
        self.deferrable = default_deferrable(deferrable)
        self.poll_interval: Any = poll_interval
        self.timeout: Any = timeout
        self._kill = RunKill()

    @property
    @abstractmethod
    def kind_path(self) -> str:
        """Where the kind of the run is in `resources`, as `chat.run.ChatRunKind`."""

    def derived_arguments(self) -> dict[str, Any]:
        """Return the arguments of the run that differ from the task's arguments of these names."""
        return {}

    def run_kind(self) -> RunKind[Any, Any]:
        """Return the kind of the run. Its fields are the task's rendered arguments of the same
        names. Raises PlatformInputError."""
        kind = kind_class(self.kind_path)
        values = self.derived_arguments()
        names = kind.model_fields.keys() - values.keys()
        return kind(**{name: getattr(self, name) for name in names}, **values)

    def check_before(self, attempt: Attempt) -> None:
        """Before the run is submitted, check what the task needs after the run, such as its output
        folder. Raises PlatformError."""

    def skips_after(self, error: PlatformError) -> bool:
        """Return whether an error of the submission ends the task as skipped."""
        return isinstance(error, AlreadyRunningError) and self.if_running == "skip"

    def finish(self, attempt: Attempt, ids: Ids, outcome: Any) -> Any:
        """Return the task's result as plain JSON. Raises PlatformError if the outcome is a
        failure."""
        return self.read(attempt, ids, outcome)

    def read(self, attempt: Attempt, ids: Ids, outcome: Any) -> Any:
        """Return the result that the `RunKind` reads from the outcome."""
        return self._run(attempt, attempt.kind.read, ids, outcome)

    def run_failed(self, attempt: Attempt, ids: Ids, error: PlatformError) -> None:
        """Called if the run with these ids will have no result: before the task submits again, or
        before the try ends."""

    def on_kill(self) -> None:
        """Stop the remote run of a task that is stopped, or leave the run to the retry."""
        self._kill.handle()

    def execute(self, context: Context) -> Any:
        """Start the run or re-attach to it, wait for it, return its result."""
        with ShortTraceback(), self._opened(context) as attempt:
            return self._start(attempt)

    def execute_complete(
        self, context: Context, event: dict[str, Any], run: Ids | None = None
    ) -> Any:
        """Return the result that the trigger's event reports. `run` has the ids with which the task
        deferred. An event of another run (Airflow can reuse the ids of triggers) is ignored."""
        event_ids = event.get("run") or {}
        ids: Ids = run or event_ids
        with self._opened(context, ids) as attempt:
            attempt.submission = Confirmed(ids)
            if event_ids.get(attempt.kind.id_field) != ids.get(attempt.kind.id_field):
                self.log.warning("Ignoring the event of another run. This task continues to wait.")
                self._defer(attempt)
            try:
                if event["status"] == "error":
                    raise from_payload(event["error"])
                env = self._environment(attempt, ids)
                outcome, ids = self._run(attempt, attempt.kind.read_event, env, ids, event)
                attempt.submission = Confirmed(ids)
            except PlatformError as error:
                return self._after_failure(attempt, error, stopped=event.get("stopped", False))
            return self._wait(attempt) if outcome is None else self._finish(attempt, outcome)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Stop a run whose trigger did not report in time, before the task fails."""
        if next_method == "__fail__" and self.cancel_on_kill:
            record = read_record(context)
            if record is not None and record.phase == "running":
                with self._opened(context, record.ids) as attempt:
                    self.log.error("The trigger did not report in time. Stopping the remote run.")
                    stop_run(attempt, record.ids)
                    if not attempt.kind.outlives_deadline:
                        attempt.record.note("failed", record.ids)
        with ShortTraceback():
            return super().resume_execution(next_method, next_kwargs, context)

    def deadline(self, attempt: Attempt, followed_since: float) -> float:
        """Return when the run must be over (Unix time): the earliest of `timeout` after
        `followed_since`, this try's `execution_timeout`, and the end of the time for which the
        service keeps the run."""
        lifetime = attempt.kind.lifetime
        seconds = float(self.timeout) if lifetime is None else min(float(self.timeout), lifetime)
        end = followed_since + seconds
        return earliest_deadline(end, self.execution_timeout, attempt.context, now=attempt.now)

    def _environment(self, attempt: Attempt, ids: Ids | None = None) -> RunEnvironment:
        """Return how the run is followed: until the deadline of the run with these ids, or of a run
        that is submitted now."""
        followed_since = attempt.now if ids is None else _followed_since(ids)
        return RunEnvironment(
            deadline=self.deadline(attempt, followed_since),
            poll_interval=float(self.poll_interval),
            timeout=float(self.timeout),
            interrupted=lambda: self._kill.happened,
        )

    def _run(
        self,
        attempt: Attempt,
        step: Callable[Concatenate[Api, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a method of a `RunKind` on the event loop of the attempt's client, in another thread.
        This thread handles its events (`_hear`) and returns its result."""
        return attempt.client.run(
            lambda api: step(api, *args, **kwargs), partial(self._hear, attempt)
        )

    def _hear(self, attempt: Attempt, event: object) -> None:
        """Update the record by an event of the run, and log its line. A run that notifies of an
        event waits until this method returns."""
        match event:
            case Intended(ids, named):
                self._kill.refuse()  # if the task was ended meanwhile, nobody wants the run
                attempt.record.write("intent", ids)
                attempt.submission = Sent(ids, named=named)
            case Identified(ids):
                attempt.submission = Sent(ids, named=True, answered=True)
                attempt.record.note("intent", ids)
            case RunAccepted(ids, sends_next):
                self._accepted(attempt, ids, must_be_stored=sends_next)
            case _:
                attempt.event_log(event)

    def _accepted(self, attempt: Attempt, ids: Ids, *, must_be_stored: bool = False) -> None:
        """Record that the service accepted the submission: from now on the run can be followed and
        stopped."""
        run = {**ids, "key": attempt.record.key}
        attempt.submission = Confirmed(run)
        self.store_link(attempt.context, attempt.config, **ids)
        store = attempt.record.write if must_be_stored else attempt.record.note
        store("running", run)
        if not attempt.is_submitting:
            self._kill.refuse()

    @contextmanager
    def _opened(self, context: Context, ids: Ids | None = None) -> Iterator[Attempt]:
        """Open the connection and the record. An active run keeps the key with which it began."""
        with airflow_errors():
            self._coerce(context)
        known = ids or {}
        with self.opened(context, **known) as hook:
            client, run_kind = hook.open_client(), self.run_kind()
            key = known.get("key") or run_kind.idempotency_key(client.config)
            attempt = Attempt(
                task=self,
                context=context,
                client=client,
                config=client.config,
                record=RecordKeeper(context, key, durable=self.durable is not False),
                kind=run_kind,
                cancel_on_kill=self.cancel_on_kill,
                log=self.log,
            )
            self._kill.attempt = attempt
            try:
                yield attempt
            except (AirflowTaskTimeout, Exception) as error:
                self._kill.end_try(attempt, error)
                raise
            finally:
                self._kill.attempt = None
                attempt.event_log.close()

    def _coerce(self, context: Context) -> None:
        """Check the rendered arguments. If one is refused, nobody follows or stops the run of an
        earlier try, so log which run that is."""
        try:
            self.coerce_arguments()
        except PlatformError:
            with suppress(Exception):  # Airflow's store may fail; the refusal is the error
                record = read_record(context)
                if record is not None and record.phase in ("intent", "running"):
                    self.log.warning(
                        "This try fails before it can follow or stop the run of an earlier try, "
                        "which may continue on the service: %s",
                        quote_service(record.ids),
                    )
            raise

    def _start(self, attempt: Attempt) -> Any:
        record = read_record(attempt.context) if self.durable is not False else None
        step, stop_first = attempt.record.first_step(record)
        if record is None:
            attempt.count("fresh_submit")
            return self._submit(attempt, None)
        if stop_first:
            self.log.info(
                "The input changed or the task was cleared. %s",
                "Stopping the earlier run."
                if self.cancel_on_kill
                else "The earlier run continues.",
            )
            stop_run(attempt, record.ids)
        continuations = {
            Step.FIND_OUT: self._recover,
            Step.REATTACH: self._reattach,
            Step.RELOAD: self._reload,
        }
        if step in continuations:
            attempt.count("reconnect_attempt")
            return continuations[step](attempt, record.ids)
        if step is Step.REPORT:
            self._report_lost(attempt, record.ids)
        if record.phase in ("failed", "lost"):
            attempt.count("reconnect_attempt")
            attempt.count("terminal_resubmit")
        else:
            attempt.count("fresh_submit")
        same_input = record.key == attempt.record.key
        return self._submit(attempt, attempt.kind.carried_over(record.ids) if same_input else None)

    def _report_lost(self, attempt: Attempt, ids: Ids) -> None:
        """Report that an earlier try ended while it submitted other input, so that its run may be
        active; stop the run if its ids are known."""
        self.log.warning(
            "An earlier try ended unexpectedly while it started a run with different input, so "
            "that run may be active on the service. This try stops that run if its ids are known. "
            "Then it starts a run with the current input."
        )
        stop_run(attempt, ids)

    def _recover(self, attempt: Attempt, ids: Ids) -> Any:
        """Find out whether the service has the run of a try that ended while it submitted."""
        self.log.warning(
            "An earlier try ended unexpectedly while it started a run. Checking whether the "
            "service has this run."
        )
        try:
            env = self._environment(attempt, ids)
            env = replace(env, deadline=max(env.deadline, attempt.now + SINGLE_POLL_SECONDS))
            processed, ids = self._run(attempt, attempt.kind.find, env, ids)
        except PlatformError as error:
            if error.is_dead_run and not self._kill.happened:
                return self._submit_again(attempt, ids, error)
            self._give_up(attempt, error, submitted=True)
            raise
        if not processed:
            attempt.count("fresh_submit")
            return self._submit(attempt, ids)
        self._accepted(attempt, ids)
        return self._reattach(attempt, attempt.ids)

    def _reload(self, attempt: Attempt, ids: Ids) -> Any:
        """Read the result of a run that succeeded in an earlier try."""
        self.log.info("The run already succeeded in an earlier try. Reading its result again.")
        attempt.count("already_succeeded")
        attempt.submission = Confirmed(ids)
        self.store_link(attempt.context, attempt.config, **ids)
        env = self._environment(attempt)  # a new deadline, however late this try begins
        return self._finish(attempt, self._run(attempt, attempt.kind.follow, env, ids))

    def _reattach(self, attempt: Attempt, ids: Ids) -> Any:
        """Re-attach to a run that an earlier try started. If the run is past its deadline, and does
        not outlive it, poll it once."""
        ids = {**ids, "reattached": True}
        continues = attempt.kind.outlives_deadline or not attempt.cancel_on_kill
        if continues:
            ids["followed_since"] = attempt.now
        attempt.submission = Confirmed(ids)
        self.store_link(attempt.context, attempt.config, **ids)
        env = self._environment(attempt, ids)
        if continues or attempt.now < env.deadline:
            self.log.info("Re-attaching to the run that an earlier try started.")
            try:
                ids = self._run(attempt, attempt.kind.resume, env, ids)
            except PlatformError as error:
                return self._after_failure(attempt, error)
            attempt.submission = Confirmed(ids)
            attempt.count("reconnect_success")
            return self._wait(attempt)
        try:
            outcome = self._run(attempt, attempt.kind.poll_past_deadline, env, ids)
        except PlatformError as error:
            return self._after_failure(attempt, error)
        if outcome is not None:
            attempt.count("already_succeeded")
            return self._finish(attempt, outcome)
        attempt.count("terminal_resubmit")
        self.log.info(
            "The earlier try's run is past its deadline. Stopping it and starting a new run."
        )
        stop_run(attempt, ids)
        return self._submit(attempt, None)

    def _submit_again(self, attempt: Attempt, ids: Ids, error: PlatformError) -> Any:
        """Submit instead of the earlier try's run, which will have no result."""
        self.run_failed(attempt, ids, error)
        self.log.info("The run of the earlier try is over (%s). Submitting again.", error)
        attempt.count("terminal_resubmit")
        return self._submit(attempt, None)

    def _submit(self, attempt: Attempt, earlier: Ids | None) -> Any:
        """Submit the run and wait for it. `earlier` are the ids that the submission continues."""
        attempt.submission = Unsent()
        try:
            self.check_before(attempt)
            env = self._environment(attempt)
            outcome = self._run(
                attempt, attempt.kind.submit, env, earlier, until_end=not self.deferrable
            )
        except PlatformError as error:
            accepted = isinstance(attempt.submission, Confirmed)
            self._give_up(attempt, error, submitted=accepted, earlier=earlier)
            if self.skips_after(error):
                from airflow_provider_platform._airflow import AirflowSkipException

                raise AirflowSkipException(error.message) from None
            raise
        if outcome is not None:  # the service may have named no run that could be followed
            return self._finish(attempt, outcome)
        if not isinstance(attempt.submission, Confirmed):
            raise RuntimeError(f"{type(attempt.kind).__name__} submitted without RunAccepted")
        return self._wait(attempt)

    def _wait(self, attempt: Attempt) -> Any:
        """Wait for the accepted run, here or in the triggerer."""
        self._kill.refuse()
        if self.deferrable:
            self._defer(attempt)
        try:
            env = self._environment(attempt, attempt.ids)
            outcome = self._run(attempt, attempt.kind.follow, env, attempt.ids)
        except PlatformError as error:
            return self._after_failure(attempt, error)
        return self._finish(attempt, outcome)

    def _defer(self, attempt: Attempt) -> None:
        from airflow_provider_platform.triggers import PlatformRunTrigger

        deadline = self.deadline(attempt, _followed_since(attempt.ids))
        limits = max(0.0, deadline - attempt.now) + BACKSTOP_SECONDS
        attempt.record.flush_pending()
        self._kill.refuse()  # Airflow refuses the deferral of a task that ended during the write
        followed = attempt.kind
        self.defer(
            trigger=PlatformRunTrigger(
                platform_conn_id=self.platform_conn_id,
                kind=path_of(followed),
                arguments={name: getattr(followed, name) for name in followed.followed_with},
                run=attempt.ids,
                deadline=deadline,
                poll_interval=self.poll_interval,
                cancel_on_kill=self.cancel_on_kill,
            ),
            method_name="execute_complete",
            kwargs={"run": attempt.ids},
            timeout=timedelta(seconds=limits + attempt.config.stream_idle_timeout),
        )

    def _after_failure(
        self, attempt: Attempt, error: PlatformError, *, stopped: bool = False
    ) -> Any:
        """Submit a re-attached run again, once, if it will have no result: the stop by the old try
        can land before or after this try began. Every other failure ends the try."""
        if attempt.reattached and error.is_dead_run and not self._kill.happened:
            return self._submit_again(attempt, attempt.ids, error)
        self._give_up(attempt, error, submitted=True, stopped=stopped)
        raise error

    def _finish(self, attempt: Attempt, outcome: Any) -> Any:
        attempt.event_log.close()
        try:
            result = self.finish(attempt, attempt.ids, outcome)
        except PlatformError as error:
            self._give_up(attempt, error, submitted=True)
            raise
        attempt.record.note("done", attempt.ids)
        self.store_result_link(attempt.context, attempt.config, result)
        return result

    def _give_up(
        self,
        attempt: Attempt,
        error: PlatformError,
        *,
        submitted: bool,
        stopped: bool = False,
        earlier: Ids | None = None,
    ) -> None:
        """Leave the record in the state that the next try needs, and stop a run that no try will
        follow. `earlier` are the ids that the submission continues."""
        if self._kill.happened:
            return  # `RunKill.end_try` decides, and the record says what the next try needs
        known = attempt.known
        attempt.record.flush_pending()  # whether a retry finds the run depends on it
        disposition = disposition_of(
            error,
            submitted=submitted,
            named=known is not None,
            last_try=attempt.is_last_try(error),
            can_stop=attempt.kind.can_stop,
        )
        if disposition.stop and not stopped:
            stop_unfollowed(attempt)
        continues = disposition.stop and not attempt.cancel_on_kill
        if disposition.phase is not None and not continues:  # a retry follows a run that continues
            attempt.record.note(disposition.phase, known or earlier or {})
        sent = attempt.submission
        if not isinstance(sent, Unsent) and (disposition.stop or disposition.phase is not None):
            self.run_failed(attempt, sent.ids, error)


class StoppableRunOperator(RemoteRunOperator):
    """Base of the operators whose run can be stopped.

    :param cancel_on_kill: stop the remote run if the task is stopped or exceeds its deadline
    """

    checks: ClassVar[Checks] = {"cancel_on_kill": arguments.boolean}

    def __init__(self, *, cancel_on_kill: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cancel_on_kill = cancel_on_kill


def _followed_since(ids: Ids) -> float:
    """Return the time from which `timeout` counts (Unix time): the run's submission, or the start
    of the try that continues a run which outlives its deadline."""
    since: float = ids["followed_since"] if "followed_since" in ids else ids["submitted_at"]
    return float(since)
