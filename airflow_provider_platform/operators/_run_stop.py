"""What becomes of the run of a task that ends before its run.

    a try that fails, or that starts another run     `stop_run`, `stop_unfollowed`
    a task that is killed, a try out of time         `RunKill`

All of them stop a run only with `cancel_on_kill`, and only if the service can stop it. A failed
stop is logged, and the run continues. `resources.stop_decision` lists everybody who stops a run.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_platform._airflow import AirflowTaskTimeout, get_task_states
from airflow_provider_platform.client.errors import PlatformError, PlatformInterruptedError
from airflow_provider_platform.operators._attempt import Confirmed, Unsent
from airflow_provider_platform.resources.run_kind import NOT_STOPPED
from airflow_provider_platform.resources.stop_decision import UNKNOWN, stops_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.operators._attempt import Attempt
    from airflow_provider_platform.resources.run_kind import Ids


T = TypeVar("T")

KILL_SECONDS = 4.0
"""How long a killed try may work; Airflow kills the process five seconds after the signal."""
TASK_STATE_SECONDS = 2.0
"""What Airflow may take of these to report the task's state."""
ACCEPTANCE_SECONDS = 1.0
"""How long a killed suite waits until the service accepts the question that it is sending."""
NOT_ACCEPTED = (
    "The run cannot be stopped, because the service has not accepted it yet. The service may still "
    "process it."
)


# A run that nobody will follow.


def stop_run(attempt: Attempt, ids: Ids) -> None:
    """Stop the run with these ids."""
    if attempt.cancel_on_kill:
        _log_stop(attempt, lambda: attempt.client.run(lambda api: attempt.kind.stop(api, ids)))


def stop_unfollowed(attempt: Attempt) -> None:
    """Stop the run of a try that fails and that no retry will follow, if its ids are known."""
    if attempt.known is not None and attempt.cancel_on_kill:
        attempt.log.warning("No retry will wait for this run. Stopping the run.")
        stop_run(attempt, attempt.known)


# A task that is killed.


class RunKill:
    """Whether one task was killed, and what this means for its run.

    Airflow calls `handle` in a signal handler, which may have interrupted anything, also a request
    to Airflow or the writing of a log line. So it only breaks off the wait for the run. The try
    then ends, and `end_try` decides what becomes of the run.
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
            if isinstance(attempt.submission, Confirmed):
                timer = threading.Timer(ACCEPTANCE_SECONDS, attempt.client.interrupt)
                timer.daemon = True
                timer.start()
        else:
            attempt.client.interrupt()

    def refuse(self) -> None:
        """Raise PlatformInterruptedError if the task was killed."""
        if self.happened:
            raise PlatformInterruptedError("The task was stopped, so it sends no further request.")

    def end_try(self, attempt: Attempt, error: AirflowTaskTimeout | Exception) -> None:
        """Stop the run of a try that ends with an error, or leave the run to the retry. The flow
        has decided about the PlatformErrors of a task that was not killed (`disposition_of`)."""
        if isinstance(error, AirflowTaskTimeout):  # `execution_timeout`: Airflow ends the try
            if attempt.cancel_on_kill:
                _stop_within(attempt, KILL_SECONDS)
        elif self.happened:
            self._end_killed(attempt)
        elif not isinstance(error, PlatformError) and attempt.is_last_try(error):
            stop_unfollowed(attempt)

    def _end_killed(self, attempt: Attempt) -> None:
        if isinstance(attempt.submission, Unsent):
            return
        if not attempt.cancel_on_kill or not _kill_stops_run(attempt):
            attempt.log.warning("The remote run continues. The task's next try re-attaches to it.")
        elif attempt.known is None:
            attempt.log.warning(NOT_ACCEPTED)
        else:
            _stop_within(attempt, self._until - time.monotonic())


def _kill_stops_run(attempt: Attempt) -> bool:
    """Return whether to stop the run of a killed task, by Airflow's state of the task."""
    if not attempt.record.finds(attempt.known):
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
        attempt.log.info("The task was asked to stop. Its state in Airflow is %s.", state)
    return stops_run(state, last_try=attempt.is_last_try())


# The stop itself.


def _log_stop(attempt: Attempt, stop: Callable[[], bool]) -> None:
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


def _stop_within(attempt: Attempt, seconds: float) -> None:
    """Stop the run, if its ids are known, within so many seconds. The client of the attempt is
    interrupted, so this takes a client of its own."""
    from airflow_provider_platform.client.platform_client import AsyncPlatformClient

    if (ids := attempt.known) is None:
        return
    quick = attempt.client.config.model_copy(update={"request_timeout": seconds})

    async def stop() -> bool:
        async with AsyncPlatformClient(quick) as client:
            return await client.run(lambda api: attempt.kind.stop(api, ids, seconds=seconds))

    _log_stop(attempt, lambda: run_within(seconds, lambda: asyncio.run(stop())))


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
