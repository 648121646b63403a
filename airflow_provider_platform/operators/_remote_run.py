"""The flow of all operators that start a run on the service once, and wait for it.

    execute            decide by the record of the last try: submit, find, re-attach, reload
      submit           write `intent`, start the run, write `running`
      follow or defer  on the worker, or in the triggerer until `execute_complete`
    finish             write `done`, return the result

`RemoteRunOperator` waits for a run. A subclass provides a `RunKind` (`resources/`), which says how
its run is submitted, found, followed, stopped and read. `_run_record` decides what a later try
does with the record, and what an error changes in it.

`RunKill` decides what happens to the run of a task that is ended from outside: the run is stopped,
or left to a retry. Airflow's state of the task decides (`resources.stop_decision`); `triggers` does
the same for a deferred task.
"""

from __future__ import annotations

import contextvars
import threading
import time
from abc import abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_provider_platform._airflow import (
    AirflowTaskTimeout,
    count_resumable_job,
    get_task_states,
    retry_policy_action,
)
from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import POLL_INTERVAL
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformError,
    PlatformInterruptedError,
    from_payload,
)
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
from airflow_provider_platform.resources.run_kind import (
    NOT_STOPPED,
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
from airflow_provider_platform.resources.run_log import EventLog, LogLine
from airflow_provider_platform.resources.stop_decision import UNKNOWN, stops_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform._airflow import BaseOperator, Context
    from airflow_provider_platform.client.api import Work
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.platform_client import PlatformClient
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.run_log import Log


T = TypeVar("T")


# One try of a task.


@dataclass
class Attempt:
    """One opening of the connection by one try of a task."""

    task: BaseOperator
    context: Context
    client: PlatformClient
    config: PlatformConfig
    submission: RecordKeeper
    kind: RunKind[Any]
    cancel_on_kill: bool
    log: Log
    earlier: Ids | None = None
    """What a submission continues, if anything."""
    intended: Ids | None = None
    """What was recorded of the last submission that this try sent."""
    named: Ids | None = None
    """Names a submission that the service has not accepted yet, if anything does."""
    ids: Ids | None = None
    """Names the run that the service has accepted."""
    reattached: bool = False

    @cached_property
    def event_log(self) -> EventLog:
        """Logs what the work of this attempt reports."""
        return EventLog(self.log, self.client.secrets)

    @property
    def known(self) -> Ids | None:
        """Return the ids that name the submission or the run now."""
        return self.ids or self.named

    @property
    def is_submitting(self) -> bool:
        """Whether something was sent of which the service has reported nothing yet."""
        if self.ids is None:
            return self.intended is not None and self.named in (None, self.intended)
        return self.kind.is_submitting(self.ids)

    @property
    def now(self) -> float:
        """Unix time."""
        return self.client.clock()

    def warn(self, line: str) -> None:
        """Log a warning, without secrets."""
        LogLine(line, is_warning=True).write(self.log, self.client.secrets)

    def count(self, what: str) -> None:
        """Count what this try does with the record of an earlier one, if there is a store."""
        if self.submission.store is not None:
            count_resumable_job(what, self.task, self.context.get("ti"))

    def forget(self) -> None:
        """Start again with a submission of this try's own."""
        self.intended = self.named = self.ids = None
        self.reattached = False

    def is_last_try(self, error: Exception | None = None) -> bool:
        """Return whether nobody will find this try's run later: no retry is left, the task's retry
        policy refuses a retry after this error, or no record names the run (an Airflow without a
        task state store, or a store that did not store the record). A try that the policy
        reschedules goes on later and finds its run, also without a retry left."""
        ti = self.context.get("ti")
        no_retry_left = int(getattr(ti, "try_number", 1) or 1) > int(
            getattr(ti, "max_tries", 0) or 0
        )
        if error is None or self.known is None:
            return no_retry_left
        if not self.submission.finds(self.known):
            return True
        action = retry_policy_action(self.task, error, self.context)
        return action == "fail" or (no_retry_left and action != "reschedule")


KILL_SECONDS = 4.0
"""How long a killed try may work; Airflow kills the process five seconds after the signal."""
TASK_STATE_SECONDS = 2.0
"""What Airflow may take of these to report the task's state."""
ACCEPTANCE_SECONDS = 1.0
"""How long a killed suite waits until the service accepts the question that it is sending."""


# A task that is ended.


class RunKill:
    """Whether one task was stopped, and what this means for its run.

    Airflow calls `handle` in a signal handler, which may have interrupted anything, also a request
    to Airflow or the writing of a log line. So it only breaks off the wait for the run. The try
    then ends, and `end` decides what becomes of the run.
    """

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        """The try that has the connection open."""
        self.happened = False
        self._until = 0.0

    def handle(self) -> None:
        """Break off the try. One that submits goes on until the service has accepted: if it broke
        off, it would not learn the name of the run. A suite waits a moment only: its other
        questions run, and they are stopped before Airflow kills the process."""
        if not self.happened:
            self.happened, self._until = True, time.monotonic() + KILL_SECONDS
        attempt = self.attempt
        if attempt is None:
            return
        if attempt.is_submitting:
            with suppress(TimeoutError):  # a thread logs it as soon as the log can be written
                run_within(0, partial(attempt.log.warning, NOT_ACCEPTED))
            if attempt.ids is not None:
                timer = threading.Timer(ACCEPTANCE_SECONDS, attempt.client.interrupt)
                timer.daemon = True
                timer.start()
        else:
            attempt.client.interrupt()

    def refuse(self) -> None:
        """Raise PlatformInterruptedError if the task was stopped."""
        if self.happened:
            raise PlatformInterruptedError("The task was stopped, so it sends no further request.")

    def end(self, attempt: Attempt) -> None:
        """Stop the run of a killed try, or leave the run to the retry."""
        if attempt.known is None and attempt.intended is None:
            return  # nothing was sent
        if not attempt.cancel_on_kill or not self._stops_run(attempt):
            attempt.log.warning("The remote run continues. The task's next try re-attaches to it.")
        elif attempt.known is None:
            attempt.log.warning(NOT_ACCEPTED)
        else:
            self.stop_in_time(attempt, self._until - time.monotonic())

    def stop_in_time(self, attempt: Attempt, seconds: float = KILL_SECONDS) -> None:
        """Stop the run within so many seconds, with a client of its own; a failure is logged."""
        if (ids := attempt.known) is None:
            return
        stop = partial(_stop_with_own_client, attempt, ids, seconds)
        _stop_and_log(attempt, lambda: run_within(seconds, stop))

    def stop_quietly(self, attempt: Attempt, ids: Ids) -> None:
        """Stop a run if `cancel_on_kill` is set; a failure is logged."""
        if attempt.cancel_on_kill:
            _stop_and_log(
                attempt, lambda: attempt.client.run(lambda api: attempt.kind.stop(api, ids))
            )

    def _stops_run(self, attempt: Attempt) -> bool:
        """Return whether to stop the run, by Airflow's state of the task."""
        if not attempt.submission.finds(attempt.known):
            return True
        state: str | None = UNKNOWN
        try:
            state = run_within(TASK_STATE_SECONDS, lambda: get_task_states(attempt.context["ti"]))
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody knows the state
            attempt.log.warning(
                "Airflow did not return the state of the task: %s. The task decides without the "
                "state whether to stop the run.",
                str(error) or repr(error),
            )
        else:
            attempt.log.info(
                "The task was asked to stop. Its state in Airflow is %s.",
                state,
            )
        return stops_run(state, last_try=attempt.is_last_try())


NOT_ACCEPTED = (
    "The run cannot be stopped, because the service has not accepted it yet. The service may still "
    "process it."
)


def run_within(seconds: float, function: Callable[[], T]) -> T:
    """Return the function's result from a thread, and wait for it at most so many seconds.

    Raises the error of the function, and TimeoutError. After a TimeoutError the thread continues
    alone; it does not keep the process from ending.
    """
    from concurrent.futures import Future

    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - who waits raises it
            outcome.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="on_kill", daemon=True).start()
    return outcome.result(max(0.0, seconds))


def _stop_and_log(attempt: Attempt, stop: Callable[[], bool]) -> None:
    if not attempt.kind.can_stop:
        attempt.log.info(NOT_STOPPED)
        return
    try:
        stopped = stop()
    except TimeoutError:
        attempt.log.warning(
            "The remote run could not be stopped, because no time was left for it. The run may "
            "continue."
        )
    except PlatformError as error:
        attempt.log.warning("The remote run could not be stopped: %s", error)
    else:
        attempt.log.info(
            "The remote run was stopped."
            if stopped
            else "No remote run of this task had to be stopped."
        )


def _stop_with_own_client(attempt: Attempt, ids: Ids, seconds: float) -> bool:
    """Stop the run; the client of the attempt is interrupted. Raises PlatformError."""
    import asyncio

    from airflow_provider_platform.client.platform_client import AsyncPlatformClient

    quick = attempt.client.config.model_copy(update={"request_timeout": seconds, "max_attempts": 1})

    async def stop() -> bool:
        async with AsyncPlatformClient(quick) as client:
            return await client.run(lambda api: attempt.kind.stop(api, ids, seconds=seconds))

    return asyncio.run(stop())


# The flow: submit, follow or defer, finish.


class RemoteRunOperator(PlatformOperator):
    """Base of the operators that wait for a run on the service.

    :param deferrable: wait in the triggerer, which needs no worker slot; None means Airflow's
        `[operators] default_deferrable`
    :param poll_interval: seconds (or a timedelta) between two polls of the run
    :param timeout: seconds (or a timedelta) of wall time from submission; an earlier
        `execution_timeout` counts too
    :param durable: record the run in Airflow's task state store, so that a retry finds it (None
        means True). With False each try starts a run of its own, and a run that its worker loses
        continues until it ends by itself
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

    def run_kind(self) -> RunKind[Any]:
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
        return self._run(attempt, lambda api: attempt.kind.read(api, ids, outcome))

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
            attempt.ids, attempt.reattached = ids, bool(ids.get("reattached"))
            if event_ids.get(attempt.kind.id_field) != ids.get(attempt.kind.id_field):
                self.log.warning("Ignoring the event of another run. This task continues to wait.")
                self._defer(attempt, ids)
            try:
                if event["status"] == "error":
                    raise from_payload(event["error"])
                env = self._environment(attempt, ids)
                known = ids
                outcome, ids = self._run(
                    attempt, lambda api: attempt.kind.read_event(api, env, known, event)
                )
                attempt.ids = ids
            except PlatformError as error:
                return self._after_failure(attempt, ids, error, stopped=event.get("stopped", False))
            if outcome is None:
                return self._wait(attempt, ids)
            return self._finish(attempt, ids, outcome)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Stop a run whose trigger did not report in time, before the task fails."""
        if next_method == "__fail__" and self.cancel_on_kill:
            record = read_record(context)
            if record is not None and record.phase == "running":
                with self._opened(context, record.ids) as attempt:
                    self.log.error("The trigger did not report in time. Stopping the remote run.")
                    self._kill.stop_quietly(attempt, record.ids)
                    if attempt.kind.can_stop and not attempt.kind.limits_each_try:
                        attempt.submission.note("failed", record.ids)
        with ShortTraceback():
            return super().resume_execution(next_method, next_kwargs, context)

    def deadline(self, attempt: Attempt, followed_since: float) -> float:
        """Return when the run must be over (Unix time): the earliest of `timeout` after its
        submission, this try's `execution_timeout`, and the end of the time for which the service
        keeps the run. If a run cannot be stopped, `timeout` counts from the start of the try that
        follows the run."""
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

    def _run(self, attempt: Attempt, work: Work[T]) -> T:
        """Run the work with the attempt's client; its events go to `_hear`."""
        return attempt.client.run(work, partial(self._hear, attempt))

    def _hear(self, attempt: Attempt, event: object) -> None:
        """Update the record by an event of the run, and log its line. A run that notifies of an
        event waits until this method returns."""
        match event:
            case Intended(ids, named):
                self._kill.refuse()  # if the task was ended meanwhile, nobody wants the run
                attempt.submission.write("intent", ids)
                attempt.intended = ids
                attempt.named = ids if named else None
            case Identified(ids):
                attempt.named = ids
                attempt.submission.note("intent", ids)
            case RunAccepted(ids, sends_next):
                self._accepted(attempt, ids, must_be_stored=sends_next)
            case _:
                attempt.event_log(event)

    def _accepted(self, attempt: Attempt, ids: Ids, *, must_be_stored: bool = False) -> None:
        """Record that the service accepted the submission: from now on the run can be followed and
        stopped."""
        attempt.ids = {**ids, "key": attempt.submission.key}
        self.store_link(attempt.context, attempt.config, **ids)
        store = attempt.submission.write if must_be_stored else attempt.submission.note
        store("running", attempt.ids)
        if not attempt.is_submitting:
            self._kill.refuse()

    @contextmanager
    def _opened(self, context: Context, ids: Ids | None = None) -> Iterator[Attempt]:
        """Open the connection and the record. An active run keeps the key with which it began."""
        with airflow_errors():
            self.coerce_arguments()
            with self.hook() as hook, hook.client() as client, client.redacted_errors():
                self._find_named(hook)
                config, run_kind = client.config, self.run_kind()
                key = (ids or {}).get("key") or run_kind.idempotency_key(config)
                durable = self.durable is not False
                attempt = Attempt(
                    task=self,
                    context=context,
                    client=client,
                    config=config,
                    submission=RecordKeeper(context, key, durable=durable),
                    kind=run_kind,
                    cancel_on_kill=self.cancel_on_kill,
                    log=self.log,
                )
                self._kill.attempt = attempt
                self.store_link(context, config, **(ids or {}))
                try:
                    with self.logged_link():
                        yield attempt
                except AirflowTaskTimeout:  # `execution_timeout`: Airflow ends this try itself
                    if self.cancel_on_kill:
                        self._kill.stop_in_time(attempt)
                    raise
                except Exception as error:
                    if self._kill.happened:
                        self._kill.end(attempt)
                    elif not isinstance(error, PlatformError):
                        self._stop_unfollowed(attempt, error)
                    raise
                finally:
                    self._kill.attempt = None
                    attempt.event_log.close()

    def _stop_unfollowed(self, attempt: Attempt, error: Exception) -> None:
        """Stop the run if an error that is not of this package ends the try and no retry will find
        the run. A retry that finds the run follows it."""
        known = attempt.known
        if known is None or not attempt.is_last_try(error):
            return
        self.log.warning("No retry will wait for this run. Stopping the run.")
        self._kill.stop_quietly(attempt, known)

    def _start(self, attempt: Attempt) -> Any:
        record = read_record(attempt.context) if self.durable is not False else None
        step, stop_first = attempt.submission.first_step(record)
        if record is not None and stop_first:
            self.log.info("The input changed or the task was cleared. Stopping the earlier run.")
            self._kill.stop_quietly(attempt, record.ids)
        if record is not None and step is Step.REPORT:
            self._report_lost(attempt, record.ids)
        if record is None or step in (Step.START, Step.REPORT):
            earlier: Ids | None = None
            if record is not None and record.key == attempt.submission.key:
                earlier = attempt.kind.carried_over(record.ids)
            if record is not None and record.phase in ("failed", "lost"):
                attempt.count("reconnect_attempt")
                attempt.count("terminal_resubmit")
            else:
                attempt.count("fresh_submit")
            return self._submit(attempt, earlier)
        attempt.count("reconnect_attempt")
        if step is Step.FIND_OUT:
            return self._recover(attempt, record.ids)
        if step is Step.RELOAD:
            self.log.info("The run already succeeded in an earlier try. Reading its result again.")
            attempt.count("already_succeeded")
            attempt.ids = record.ids
            self.store_link(attempt.context, attempt.config, **record.ids)
            env = self._environment(attempt)  # a new deadline, however late this try begins
            outcome = self._run(attempt, lambda api: attempt.kind.follow(api, env, record.ids))
            return self._finish(attempt, record.ids, outcome)
        return self._reattach(attempt, record.ids)

    def _report_lost(self, attempt: Attempt, ids: Ids) -> None:
        """Report that an earlier try ended while it submitted other input, so that its run may be
        active; stop the run if its ids are known."""
        self.log.warning(
            "An earlier try ended unexpectedly while it started a run with different input, so "
            "that run may be active on the service. This try stops that run if its ids are known. "
            "Then it starts a run with the current input."
        )
        self._kill.stop_quietly(attempt, ids)

    def _recover(self, attempt: Attempt, ids: Ids) -> Any:
        self.log.warning(
            "An earlier try ended unexpectedly while it started a run. Checking whether the "
            "service has this run."
        )
        try:
            env = self._environment(attempt, ids)
            env = replace(env, deadline=max(env.deadline, attempt.now + SINGLE_POLL_SECONDS))
            known = ids
            processed, ids = self._run(attempt, lambda api: attempt.kind.find(api, env, known))
        except PlatformError as error:
            if error.is_dead_run and not self._kill.happened:
                self.run_failed(attempt, ids, error)
                self.log.info("The run of the earlier try is over (%s). Submitting again.", error)
                attempt.count("terminal_resubmit")
                return self._submit(attempt, None)
            self._give_up(attempt, error, submitted=True)
            raise
        if not processed:
            attempt.count("fresh_submit")
            return self._submit(attempt, ids)
        self._accepted(attempt, ids)
        return self._reattach(attempt, {**ids, "key": attempt.submission.key})

    def _reattach(self, attempt: Attempt, ids: Ids) -> Any:
        """Re-attach to a run that an earlier try started. If the run is past its deadline, poll it
        once, unless nothing can stop the run."""
        attempt.ids, attempt.reattached = ids, True
        self.store_link(attempt.context, attempt.config, **ids)
        continues = attempt.kind.limits_each_try or not attempt.kind.can_stop
        if continues:
            ids = {**ids, "followed_since": attempt.now}  # its deadline did not end it
        if continues or attempt.now < _followed_since(ids) + float(self.timeout):
            self.log.info("Re-attaching to the run that an earlier try started.")
            try:
                env, known = self._environment(attempt, ids), ids
                ids = self._run(attempt, lambda api: attempt.kind.resume(api, env, known))
            except PlatformError as error:
                return self._after_failure(attempt, ids, error)
            attempt.count("reconnect_success")
            return self._wait(attempt, {**ids, "reattached": True})
        try:
            env = self._environment(attempt, ids)
            outcome = self._run(attempt, lambda api: attempt.kind.poll_once(api, env, ids))
        except PlatformError as error:
            return self._after_failure(attempt, ids, error)
        if outcome is not None:
            attempt.count("already_succeeded")
            return self._finish(attempt, ids, outcome)
        attempt.count("terminal_resubmit")
        self.log.info(
            "The earlier try's run is past its deadline. Stopping it and starting a new run."
        )
        self._kill.stop_quietly(attempt, ids)
        return self._submit(attempt, None)

    def _submit(self, attempt: Attempt, ids: Ids | None) -> Any:
        attempt.forget()
        attempt.earlier = ids
        try:
            self.check_before(attempt)
            env = self._environment(attempt)
            until_end = not self.deferrable
            outcome = self._run(
                attempt, lambda api: attempt.kind.submit(api, env, ids, until_end=until_end)
            )
        except PlatformError as error:
            self._give_up(attempt, error, submitted=attempt.ids is not None)
            if self.skips_after(error):
                from airflow_provider_platform._airflow import AirflowSkipException

                raise AirflowSkipException(error.message) from None
            raise
        accepted: Ids = attempt.ids or {}
        if outcome is not None:
            return self._finish(attempt, accepted, outcome)
        return self._wait(attempt, accepted)

    def _wait(self, attempt: Attempt, ids: Ids | None) -> Any:
        if ids is None:
            raise RuntimeError("nothing was submitted that could be waited for")
        self._kill.refuse()
        if self.deferrable:
            self._defer(attempt, ids)
        try:
            env = self._environment(attempt, ids)
            outcome = self._run(attempt, lambda api: attempt.kind.follow(api, env, ids))
        except PlatformError as error:
            return self._after_failure(attempt, ids, error)
        return self._finish(attempt, ids, outcome)

    def _defer(self, attempt: Attempt, ids: Ids) -> None:
        from airflow_provider_platform.triggers import PlatformRunTrigger

        deadline = self.deadline(attempt, _followed_since(ids))
        limits = max(0.0, deadline - attempt.now) + BACKSTOP_SECONDS
        attempt.submission.flush_pending()
        followed = attempt.kind
        self.defer(
            trigger=PlatformRunTrigger(
                platform_conn_id=self.platform_conn_id,
                kind=path_of(followed),
                arguments={name: getattr(followed, name) for name in followed.followed_with},
                run=ids,
                deadline=deadline,
                poll_interval=self.poll_interval,
                cancel_on_kill=self.cancel_on_kill,
            ),
            method_name="execute_complete",
            kwargs={"run": ids},
            timeout=timedelta(seconds=limits + attempt.config.stream_idle_timeout),
        )

    def _after_failure(
        self, attempt: Attempt, ids: Ids, error: PlatformError, *, stopped: bool = False
    ) -> Any:
        """Submit a re-attached run again, once, if it will have no result: the stop by the old try
        can land before or after this try began. Every other failure ends the try."""
        if attempt.reattached and error.is_dead_run and not self._kill.happened:
            self.run_failed(attempt, ids, error)
            self.log.info("The re-attached run is over (%s). Submitting again.", error)
            attempt.count("terminal_resubmit")
            return self._submit(attempt, None)
        attempt.ids = ids
        self._give_up(attempt, error, submitted=True, stopped=stopped)
        raise error

    def _finish(self, attempt: Attempt, ids: Ids, outcome: Any) -> Any:
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
        """Leave the record in the state that the next try needs, and stop a run that no try will
        follow."""
        if self._kill.happened:
            return  # `RunKill.end` decides, and the record says what the next try needs
        known = attempt.known
        attempt.submission.flush_pending()  # whether a retry finds the run depends on it
        disposition = disposition_of(
            error,
            submitted=submitted,
            named=known is not None,
            last_try=attempt.is_last_try(error),
            can_stop=attempt.kind.can_stop,
        )
        if disposition.stop and known is not None and not stopped and attempt.cancel_on_kill:
            self.log.warning("No retry will wait for this run. Stopping the run.")
            self._kill.stop_quietly(attempt, known)
        if disposition.phase is not None:
            attempt.submission.note(disposition.phase, known or attempt.earlier or {})
        ids = known or attempt.intended
        if ids is not None and (disposition.stop or disposition.phase is not None):
            self.run_failed(attempt, ids, error)


class StoppableRunOperator(RemoteRunOperator):
    """Base of the operators whose run can be stopped.

    :param cancel_on_kill: stop the remote run if the task is stopped or exceeds its deadline
    """

    checks: ClassVar[Checks] = {"cancel_on_kill": arguments.boolean}

    def __init__(self, *, cancel_on_kill: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cancel_on_kill = cancel_on_kill


def _followed_since(ids: Ids) -> float:
    """Return the time from which `timeout` counts (Unix time): the run's submission, or, if a later
    try follows a run that cannot be stopped, the start of that try."""
    since: float = ids["followed_since"] if "followed_since" in ids else ids["submitted_at"]
    return float(since)
