"""What happens to a remote run when its task is stopped: the run is stopped, or left to a retry.

`on_kill` is called in a signal handler, which may have interrupted anything. Airflow's state of the
task decides whether the run is stopped (`runs.stop_decision`). `triggers` does the same
for a deferred task.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import AirflowTaskTimeout, get_task_states
from airflow_provider_platform.client.errors import PlatformError, PlatformInterruptedError
from airflow_provider_platform.runs.run_kind import NOT_STOPPED
from airflow_provider_platform.runs.stop_decision import UNKNOWN, run_within, stops_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform.operators._submission.attempt import Attempt
    from airflow_provider_platform.runs.run_kind import Ids

KILL_SECONDS = 4.0
"""What `on_kill` may take in all; Airflow kills the process five seconds after the signal."""
TASK_STATE_SECONDS = 2.0
"""What Airflow may take of these to report the task's state."""
LOG_SECONDS = 0.2


class RunKill:
    """Whether one task was stopped, and what this means for its run."""

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        """The try that has the connection open."""
        self.happened = False
        self.leaves_run = False
        """Of a killed task: whether its run goes on for another try to re-attach to."""
        self.is_deferring = False
        self._is_handling = False
        self._state_was_unknown = False

    def handle(self) -> None:
        """Stop the remote run of a task that is stopped, or leave the run to the retry.

        Airflow calls this in a signal handler, which may have interrupted anything, also a request
        to Airflow or the writing of a log line. Work that could block is done in other threads,
        with a client of its own, and this method waits for it at most `KILL_SECONDS`.
        """
        if self._is_handling:
            return  # the signal came twice
        self._is_handling = True
        try:
            self.happened = True
            if self.attempt is not None:
                self._end(self.attempt, time.monotonic() + KILL_SECONDS)
        finally:
            self._is_handling = False

    def judge_again(self, attempt: Attempt) -> None:
        """Decide again about a kill if the task's state was unknown: the signal may have come in
        the middle of a request to Airflow, so that no other request was possible. Now it is."""
        if self._state_was_unknown:
            self._end(attempt, time.monotonic() + TASK_STATE_SECONDS)

    def refuse(self) -> None:
        """Raise PlatformInterruptedError if the task was stopped."""
        if self.happened:
            raise PlatformInterruptedError("The task was stopped, so it sends no further request.")

    def stop_quietly(self, attempt: Attempt, ids: Ids) -> None:
        """Stop a run if `cancel_on_kill` is set; a failure is logged."""
        if not attempt.cancel_on_kill:
            return
        if not attempt.kind.can_stop:
            self._log(attempt.log.info, NOT_STOPPED)
            return
        client = attempt.client
        with self._stop_logged(attempt) as report:
            report(client.run(lambda api: attempt.kind.stop(api, client.config, client.clock, ids)))

    def _end(self, attempt: Attempt, until: float) -> None:
        """Decide and carry out what a kill means for the run; `until` by the monotonic clock."""
        self.leaves_run = not attempt.cancel_on_kill or not self._stops_run(attempt)
        ids = attempt.known
        if self.leaves_run:
            self._log(
                attempt.log.warning,
                "The remote run continues. The task's next try re-attaches to it.",
            )
            if attempt.ids is not None:
                # Else the try goes on until the service has accepted: a try that breaks off now
                # does not learn the name of the run.
                attempt.client.interrupt()
            return
        if ids is None:
            self._log(
                attempt.log.warning,
                "The run cannot be stopped, because the service has not accepted it yet. The "
                "service may still process it.",
            )
            return
        if not attempt.kind.can_stop:
            self._log(attempt.log.warning, NOT_STOPPED)
            if attempt.ids is not None:
                attempt.client.interrupt()
            return
        with self._stop_logged(attempt) as report:
            report(_stop_in_time(attempt, ids, until - time.monotonic()))

    def _stops_run(self, attempt: Attempt) -> bool:
        """Return whether to stop the run, by Airflow's state of the task."""
        if isinstance(sys.exception(), AirflowTaskTimeout):
            return True  # `execution_timeout`: Airflow has ended this try itself
        has_record = attempt.submission.finds(attempt.known)
        state: str | None = UNKNOWN
        if has_record:
            try:
                state = run_within(
                    TASK_STATE_SECONDS, lambda: get_task_states(attempt.context["ti"])
                )
            except Exception as error:  # noqa: BLE001 - whatever it was, nobody knows the state
                self._log(
                    attempt.log.warning,
                    "Airflow did not return the state of the task: %s. The task decides without "
                    "the state whether to stop the run.",
                    str(error) or repr(error),
                )
            else:
                self._log(
                    attempt.log.info,
                    "The task was asked to stop. Its state in Airflow is %s.",
                    state,
                )
            self._state_was_unknown = state == UNKNOWN
        # A trigger that follows is as good as a retry.
        last_try = attempt.is_last_try() and not self.is_deferring
        return stops_run(state, killed="worker", last_try=last_try, has_record=has_record)

    @contextmanager
    def _stop_logged(self, attempt: Attempt) -> Iterator[Callable[[bool], None]]:
        """Log how a stop ended: a failure, or what the block reports."""
        log = attempt.log

        def report(stopped: bool) -> None:
            self._log(
                log.info,
                "The remote run was stopped."
                if stopped
                else "No remote run of this task had to be stopped.",
            )

        try:
            yield report
        except TimeoutError:
            self._log(
                log.warning,
                "The remote run could not be stopped, because no time was left for it. The run may "
                "continue.",
            )
        except PlatformError as error:
            self._log(log.warning, "The remote run could not be stopped: %s", error)

    def _log(self, write: Callable[..., Any], message: str, *args: Any) -> None:
        """Log a line. In a signal handler another thread logs it: the handler may have interrupted
        this thread while it held the log's lock."""
        if not self._is_handling:
            write(message, *args)
            return
        with suppress(TimeoutError):
            run_within(LOG_SECONDS, lambda: write(message, *args))


def _stop_in_time(attempt: Attempt, ids: Ids, seconds: float) -> bool:
    """Stop the run on an event loop of its own. Raises PlatformError, TimeoutError."""
    import asyncio

    from airflow_provider_platform.client.http.client import AsyncPlatformClient

    config = attempt.client.config
    quick = config.model_copy(update={"request_timeout": seconds, "max_attempts": 1})

    async def stop() -> bool:
        async with AsyncPlatformClient(quick) as client:
            return await client.run(
                lambda api: attempt.kind.stop(api, quick, client.clock, ids, seconds=seconds)
            )

    return run_within(seconds, lambda: asyncio.run(stop()))
