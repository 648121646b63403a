"""What becomes of a remote run whose task is ended from outside: it is stopped, or left to a retry.

`on_kill` is called in a signal handler, which may have interrupted anything. Which of the two it is
follows from what Airflow says of the task (`triggers._killed_tasks`).
"""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import (
    AirflowTaskTimeout,
    get_task_states,
    retry_policy_fails,
)
from airflow_provider_platform.client.errors import PlatformError, PlatformInterruptedError
from airflow_provider_platform.operators._base.operator import PlatformOperator
from airflow_provider_platform.triggers._killed_tasks import UNKNOWN, run_within, stops_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.http.client import PlatformClient
    from airflow_provider_platform.client.operations.program import Clock, Program
    from airflow_provider_platform.operators._submission.attempt import Attempt, Ids

KILL_SECONDS = 4.0
"""What `on_kill` may take in all; Airflow kills the process five seconds after the signal."""
LOOK_UP_SECONDS = 2.0
"""What Airflow may take of these to tell the task's state."""
LOG_SECONDS = 0.2


class KillableOperator(PlatformOperator):
    """Base of the operators whose task may be ended while a run of theirs goes on at the service.

    :param cancel_on_kill: stop the remote run when the task is ended from outside or too late
    """

    def __init__(self, *, cancel_on_kill: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cancel_on_kill = cancel_on_kill
        self._attempt: Attempt | None = None
        self._killed = False
        self._left_to_retry = False
        """Of a killed task: whether its run goes on for another try to take up."""
        self._in_on_kill = False
        self._state_was_unknown = False
        self._deferring = False

    @abstractmethod
    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None
    ) -> Program[bool]:
        """Stop the run, within so many seconds if given; False where there was nothing of ours to
        stop."""

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

    def _stop_quietly(self, client: PlatformClient, ids: Ids) -> None:
        if self.cancel_on_kill:
            with self._stop_logged() as tell:
                tell(client.run(self.stop(client.config, client.clock, ids, seconds=None)))

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

    def _end_interrupted(self, attempt: Attempt) -> None:
        """Again for a kill that could not learn the task's state: the signal may have come in the
        middle of a request to Airflow, so that none could be made; now one can."""
        if self._state_was_unknown:
            self._end_attempt(attempt, time.monotonic() + LOOK_UP_SECONDS)

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

    def _is_last_try(self, attempt: Attempt, error: Exception | None = None) -> bool:
        """Whether no later try will find this try's run: no retry is left, the task's retry policy
        refuses one after this error, or no record names the run (an Airflow without a task state
        store, or one that did not take the record)."""
        ti = attempt.context.get("ti")
        if int(getattr(ti, "try_number", 1) or 1) > int(getattr(ti, "max_tries", 0) or 0):
            return True
        if error is None or attempt.known is None:
            return False
        return not attempt.submission.finds(attempt.known) or retry_policy_fails(
            self, error, attempt.context
        )

    def _refuse_when_killed(self) -> None:
        if self._killed:
            raise PlatformInterruptedError("The task was ended from outside: it goes no further.")

    def _stop_in_time(self, config: PlatformConfig, ids: Ids, seconds: float) -> bool:
        """Stop the run on an event loop of its own. Raises PlatformError, TimeoutError."""
        import asyncio

        from airflow_provider_platform.client.http.client import AsyncPlatformClient

        quick = config.model_copy(update={"request_timeout": seconds, "max_attempts": 1})

        async def stop() -> bool:
            async with AsyncPlatformClient(quick) as client:
                return await client.run(self.stop(quick, client.clock, ids, seconds=seconds))

        return run_within(seconds, lambda: asyncio.run(stop()))

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

    def _tell(self, log: Callable[..., None], message: str, *args: Any) -> None:
        """Log a line. In a signal handler another thread does: the handler may have interrupted
        this one while it held the log's lock."""
        if not self._in_on_kill:
            log(message, *args)
            return
        with suppress(TimeoutError):
            run_within(LOG_SECONDS, lambda: log(message, *args))
